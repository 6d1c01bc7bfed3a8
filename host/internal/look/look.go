package look

// NewLook will call read.
func NewLook(read func()) *Visit { return &Visit{read: read, ready: make(chan struct{})} }
