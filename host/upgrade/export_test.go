package upgrade

import "time"

// SetVisit sets how long is waited for a turn that is under way, until the returned function is called.
func SetVisit(d time.Duration) (restore func()) {
	before := visit
	visit = d
	return func() { visit = before }
}
