package replay

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Session repeats the entries of a file one at a time, as a debugger asks for them. One goroutine at a time may use it.
type Session struct {
	run  run
	done func()
}

// Open loads the module of a file, as Run does. Another one than has failed is refused: its turns are others.
func Open(ctx context.Context, engine *runtime.Engine, f *blackbox.File, o Options) (*Session, error) {
	if f.Inexact != "" {
		return nil, fmt.Errorf("it cannot be repeated: %s", f.Inexact)
	}
	s := &Session{run: run{file: f, report: &Report{}, ctx: ctx, places: true}}
	var err error
	if s.done, err = s.run.open(ctx, engine, o); err != nil {
		return nil, err
	}
	if s.run.other {
		s.done()
		return nil, fmt.Errorf("the module is %.8s, the file is about %.8x: only that can be stepped through", s.run.report.Other, f.Image.Module)
	}
	return s, nil
}

// Close gives back what the session holds.
func (s *Session) Close() { s.done() }

// Instance is the guest.
func (s *Session) Instance() *sandbox.Instance { return s.run.x }

// Module is the guest's module; nil: it was only in the cache, as an image.
func (s *Session) Module() []byte { return s.run.module }

// Begin brings the guest to its state before the first entry.
func (s *Session) Begin() error {
	s.run.x.ForgetKill()
	if err := s.run.x.Reset(); err != nil {
		return err
	}
	return s.run.begin()
}

// State is that of the actor between two entries.
type State struct {
	snapshot sandbox.Snapshot
	ahead    uint64
}

// Bytes is what it takes.
func (s *State) Bytes() int { return s.snapshot.Bytes() }

// Save is the present state. It fails where a guest has none that can be saved.
func (s *Session) Save() (*State, error) {
	saved := State{ahead: s.run.ahead}
	if err := s.run.x.Save(&saved.snapshot); err != nil {
		return nil, err
	}
	return &State{*saved.snapshot.Clone(), saved.ahead}, nil
}

// Restore goes back to a state.
func (s *Session) Restore(to *State) error {
	s.run.x.ForgetKill()
	s.run.ahead = to.ahead
	return s.run.x.Restore(&to.snapshot)
}

// Adopt brings the session to a state of another session of the same file, which may have another engine.
func (s *Session) Adopt(of *Session, to *State) error {
	b, err := sandbox.AppendSnapshot(nil, of.run.x.Image(), &to.snapshot)
	if err != nil {
		return err
	}
	snapshot, err := sandbox.DecodeSnapshot(s.run.x.Image(), b, s.run.file.Memory)
	if err != nil {
		return err
	}
	s.run.x.ForgetKill()
	s.run.ahead = to.ahead
	return s.run.x.Restore(snapshot)
}

// Outcome is what an entry has come to.
type Outcome struct {
	Fuel    uint64       // of its turns
	Turns   int          // that have ended well
	Failure *abi.Failure // of the turn after those
	// Outbox is what its turns have written, the failed one not included, until the next entry.
	Outbox []byte
	// Differs is empty, or says how it is not what the file has.
	Differs string
}

// Steps runs an entry instead of Instance.Run; nil: that.
type Steps func(in *sandbox.Entry, out *sandbox.Result)

// Run repeats the entry that comes; last says that it is the failing one. log may be nil. It fails only when ctx ends, and
// then the state is none that can be gone on from.
func (s *Session) Run(ctx context.Context, e *blackbox.Entry, last bool, log sandbox.LogSink, steps Steps) (*Outcome, error) {
	r := &s.run
	r.ctx, r.steps, r.in.Log, r.report = ctx, steps, log, &Report{}
	defer func() { r.ctx, r.steps, r.in.Log = nil, nil, nil }()
	r.x.ForgetKill()
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		r.x.Kill("the replay was ended")
		close(killed)
	})
	fine := r.entry(e, last)
	if !stop() {
		<-killed // so that it does not end a later run
		return nil, fmt.Errorf("the replay was ended: %w", context.Cause(ctx))
	}
	o := &Outcome{Fuel: r.res.Fuel, Turns: r.res.Turns, Failure: r.report.Failure, Outbox: r.x.Outbox(r.res.Turns)}
	if !fine && !r.report.Reproduced {
		o.Differs = "it does not come out as in the file"
		if len(r.report.Differences) > 0 {
			o.Differs = r.report.Differences[0].String()
		}
	}
	return o, nil
}
