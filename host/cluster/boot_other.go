//go:build !linux

package cluster

import "time"

// sinceBoot counts the time that the machine sleeps, unless somebody sets its clock meanwhile: it takes whichever of the
// wall clock and the monotonic one has gone further.
func sinceBoot() func() time.Duration {
	start := time.Now()
	return func() time.Duration {
		now := time.Now()
		return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
	}
}
