package journal

// SetLooked sets how many chunks of IDs one request looks through, until the returned function is called.
func SetLooked(n int) (restore func()) {
	before := mostLooked
	mostLooked = n
	return func() { mostLooked = before }
}
