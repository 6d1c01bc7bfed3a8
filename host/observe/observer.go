package observe

import (
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Defaults of [Options].
const (
	DefaultEvents  = 1000
	DefaultSharing = 250 * time.Millisecond
)

// Options say how an [Observer] works. They are immutable: every With method returns a
// changed copy. The zero value is ready.
type Options struct {
	bundle, dir string
	events      int
	sharing     time.Duration
	started     time.Time
	services    func() []*service.Running // nil: none
	store       func() *Store             // nil: none
	codes       func() []Code             // nil: none
	crashes     int
	folder      *CrashFolder
	latencies   func() []Latency
	history     bool
}

// WithBundle sets the name of the bundle that runs and the folder that it was started from, for display.
func (o Options) WithBundle(name, dir string) Options { o.bundle, o.dir = name, dir; return o }

// WithEvents sets how many events are kept, DefaultEvents if n is not above 0; MaxEventBytes
// bound them, too.
func (o Options) WithEvents(n int) Options { o.events = n; return o }

// WithCrashes sets about how many bytes of crash reports are kept, DefaultCrashBytes if n is not
// above 0, and where they are on disk, too; nil: nowhere. The observer closes the folder.
func (o Options) WithCrashes(n int, on *CrashFolder) Options { o.crashes, o.folder = n, on; return o }

// WithSharing sets for how long all callers share the same walk over the actors; 0 is
// DefaultSharing; below 0 every caller gets a walk of its own.
func (o Options) WithSharing(d time.Duration) Options { o.sharing = d; return o }

// WithCodes makes the observer tell which code the actors run. f is called by any goroutine.
func (o Options) WithCodes(f func() []Code) Options { o.codes = f; return o }

// WithServices makes the observer tell which of the services are down.
func (o Options) WithServices(f func() []*service.Running) Options { o.services = f; return o }

// Observer looks at one system. All methods are for any goroutine.
type Observer struct {
	sys     *host.System
	o       Options
	events  *events
	crashes *crashes
	history history
	mu      sync.RWMutex
	snap    *snapshot // nil: nobody has looked of late
	idle    *time.Timer
	closed  bool
	waiting waits
	traces  traces

	endHistory sync.Once
}

// New begins to observe. Close ends it.
func New(sys *host.System, o Options) *Observer {
	if o.events <= 0 {
		o.events = DefaultEvents
	}
	if o.crashes <= 0 {
		o.crashes = DefaultCrashBytes
	}
	if o.sharing == 0 {
		o.sharing = DefaultSharing
	}
	o.started = sys.Clock().Now()
	x := &Observer{sys: sys, o: o}
	x.events = observeEvents(sys, o.events)
	x.crashes = observeCrashes(sys, o.crashes, o.folder)
	if o.history {
		x.keepHistory()
	}
	return x
}

// Close ends the observer and its streams. It is idempotent.
func (o *Observer) Close() {
	o.endHistory.Do(o.history.close)
	o.mu.Lock()
	o.closed, o.snap = true, nil
	if o.idle != nil {
		o.idle.Stop()
	}
	o.mu.Unlock()
	o.traces.close()
	o.events.close()
	o.crashes.close()
}
