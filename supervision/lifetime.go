package supervision

import "slices"

// Lifetime says after which kinds of end a child is restarted by its supervisor, as in
// OTP. A stop that was ordered, by the supervisor or with System.Stop, never leads to a
// restart.
type Lifetime uint8

// The lifetimes.
const (
	Transient Lifetime = iota // restarted when it fails; its own stop is the end. The default, and Akka's only one
	Permanent                 // restarted when it fails and when it stops itself
	Temporary                 // never restarted
)

var lifetimeNames = [...]string{"transient", "permanent", "temporary"}

// String is the name that manifests use.
func (l Lifetime) String() string {
	if int(l) < len(lifetimeNames) {
		return lifetimeNames[l]
	}
	return "unknown"
}

// Lifetimes are the names of the lifetimes.
func Lifetimes() []string { return slices.Clone(lifetimeNames[:]) }

// ParseLifetime is the inverse of String.
func ParseLifetime(name string) (Lifetime, bool) {
	i := slices.Index(lifetimeNames[:], name)
	return Lifetime(max(i, 0)), i >= 0
}

// Shutdown says when a supervisor stops because significant children have ended by
// themselves, like OTP's auto_shutdown.
type Shutdown uint8

// When supervisors shut down.
const (
	ShutdownNever Shutdown = iota
	ShutdownAny            // with the first significant child that has ended
	ShutdownAll            // with the last
)

var shutdownNames = [...]string{"never", "any", "all"}

// String is the name that manifests use.
func (s Shutdown) String() string {
	if int(s) < len(shutdownNames) {
		return shutdownNames[s]
	}
	return "unknown"
}

// Shutdowns are the names.
func Shutdowns() []string { return slices.Clone(shutdownNames[:]) }

// ParseShutdown is the inverse of String.
func ParseShutdown(name string) (Shutdown, bool) {
	i := slices.Index(shutdownNames[:], name)
	return Shutdown(max(i, 0)), i >= 0
}
