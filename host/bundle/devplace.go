package bundle

import "context"

// DevPlace is where [Dev] has a bundle run in place of a system in this process, such as on the nodes of a cluster. Dev builds and
// checks, and calls one method at a time.
type DevPlace interface {
	// Start has the bundle run as its files are, and returns when it is up. After an error nothing runs.
	Start(ctx context.Context, b *Bundle) error
	// Change has what runs take a change whose Whole is empty, and calls [Change.Replace]. why, if it is not empty, says that all
	// has to start again; then nothing has changed.
	Change(ctx context.Context, c *Change) (done []ActorChange, why []string)
	// Ended is closed when nothing runs any more of what was started last, although Stop was not called. Cause is why.
	Ended() <-chan struct{}
	Cause() error
	// Stop ends what runs. It may be called when nothing does.
	Stop()
}
