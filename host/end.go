package host

// Ended returns a channel that is closed when the actor has stopped. It fails with ErrUnknown if the actor has stopped
// already or never existed. However often it is called, it costs about 300 bytes until the actor has stopped. To be able to
// stop waiting, use [System.WatchEnd].
func (s *System) Ended(ref Ref) (<-chan struct{}, error) {
	c, _, err := s.WatchEnd(ref)
	return c, err
}

// WatchEnd is Ended with a way to stop waiting: call forget, once or more often. When all waiters of an actor have called
// it, nothing is kept. Waiters may share the channel; forget does not close it.
func (s *System) WatchEnd(ref Ref) (ended <-chan struct{}, forget func(), err error) {
	return s.outside.WatchEnd(ref.UID())
}
