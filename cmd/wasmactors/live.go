package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// stopGrace bounds the wait for actors that stop.
const stopGrace = 10 * time.Second

// live is the bundle of a run, which can be read again while it runs.
type live struct {
	c         *cli.Context
	path      string
	vars      bundle.Variables
	options   bundle.Options
	consent   *consent
	console   *console
	door      *adminDoor
	telemetry *telemetry
	fed       bool // with lines of input

	membership *membership // nil: it is alone

	running context.Context // ends with the run, and what is being built for it

	changing sync.Mutex // held while the bundle changes, before mu

	mu     sync.Mutex // held while the bundle starts, and while it changes by a reload
	bundle *bundle.Bundle
	sys    *host.System // nil: neither version could be started, or the node is apart
	before host.Stats   // of the systems that have ended

	// Without the lock.
	seen  atomic.Pointer[seen] // nil: there is no system
	apart atomic.Bool          // the run has ended while the node was lost and could not join again
}

// seen is what runs, for those that must not wait while it changes.
type seen struct {
	sys    *host.System
	spread []string         // see bundle.Bundle.Spread
	kept   *journal.Journal // see bundle.Bundle.Kept

	observer *observe.Observer // nil: nobody can reach it
}

// unready is why the system is not ready; "": it is.
func (s *seen) unready() string {
	select {
	case <-s.sys.Terminated():
		return "it ends"
	default:
	}
	if s.observer == nil {
		return ""
	}
	switch x := s.observer.System(); {
	case x.Ended != "":
		return "it ends: " + x.Ended
	case len(x.Down) > 0:
		return "the service " + x.Down[0].Service + " is down"
	case !x.Ready:
		return "it starts"
	}
	return ""
}

// show notes what runs; with the lock.
func (l *live) show() {
	if l.sys == nil {
		l.seen.Store(nil)
		return
	}
	l.seen.Store(&seen{l.sys, l.bundle.Spread(), l.bundle.Kept(), l.door.observer})
}

// start starts the bundle's actors.
func (l *live) start() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.show()
	l.sys, err = l.bundle.Start(l.system, l.watch)
	return err
}

// first is what the lines of input are for: the system that was started, and its manifest.
func (l *live) first() (*bundle.Manifest, *host.System) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundle.Manifest, l.sys
}

// watch shows a system, and opens it to the commands that look at it.
func (l *live) watch(sys *host.System) {
	l.console.finished.Wait()
	l.console.endings.Wait()
	l.console.died = nil // of a system that was ended on purpose
	l.console.follow(sys)
	l.door.open(sys, l.bundle, l.telemetry)
	l.membership.attach(sys)
}

// now is the system that runs, and the actor whose end ends it; nil if there is none.
func (l *live) now() (sys *host.System, main <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sys == nil || l.bundle.Manifest.Main == "" {
		return l.sys, nil
	}
	ref, err := l.sys.Lookup("/user/" + l.bundle.Manifest.Main)
	if err != nil {
		return l.sys, over
	}
	main, _ = l.sys.Ended(ref)
	return l.sys, main
}

// over is the end of a main actor that has ended before.
var over = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait waits until the run is over: ctx ends, the system, or its main actor. A reload ends neither.
func (l *live) wait(ctx context.Context) {
	for {
		sys, main := l.now()
		if sys == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-sys.Terminated():
			if now, _ := l.now(); now == sys {
				return
			}
		case <-main:
			if now, again := l.now(); now == sys && (again == over || again == main) {
				return
			}
		}
	}
}

// reload reads the bundle again and changes what runs. An error says why everything is as it was.
func (l *live) reload(ctx context.Context, r admin.Reload) (admin.Reloaded, error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.show()
	done := admin.Reloaded{PID: os.Getpid(), Restarted: r.Restart, Modules: []string{}, Actors: []admin.ReloadedActor{}, Why: []string{}}
	if l.sys == nil || l.running.Err() != nil {
		return done, host.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.running, cancel)()
	change, err := l.prepare(ctx)
	if err != nil {
		return done, err
	}
	if err := l.check(change, r); err != nil {
		change.Discard()
		return done, err
	}
	for _, m := range change.Modules {
		done.Modules = append(done.Modules, m.Name)
	}
	done.Why = append(done.Why, change.Whole...)
	if !r.Restart {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		for _, a := range change.Apply(within, l.sys) {
			one := admin.ReloadedActor{Path: a.Path, Did: a.Did, Why: a.Why, Module: a.Module}
			if a.Err != nil {
				one.Error = a.Err.Error()
			}
			done.Actors = append(done.Actors, one)
		}
		l.console.reloaded(done)
		return done, nil
	}
	last := l.sys
	l.sys, err = change.Restart(stopGrace, systemOf(l.c, l.telemetry), l.watch)
	l.before = sumOf(l.before, last.View().Stats())
	switch {
	case l.sys == nil:
		l.console.fail(err)
		return done, notLoaded(fmt.Errorf("nothing runs any more: %w", err), "")
	case err != nil:
		return done, notLoaded(err, "the version before was started again, with new state")
	}
	l.console.reloaded(done)
	return done, nil
}

// prepare reads, checks and builds the bundle as it is on disk, and opens nothing that was not allowed.
func (l *live) prepare(ctx context.Context) (*bundle.Change, error) {
	const unchanged = "the version before keeps running"
	m, err := bundle.LoadWith(l.path, l.vars, l.options.Services...)
	if err != nil {
		return nil, notLoaded(err, unchanged)
	}
	if m.Name != l.bundle.Manifest.Name {
		return nil, &admin.Problem{Status: http.StatusConflict, Code: "other_name", Message: fmt.Sprintf("the bundle is called %s, and %s runs", oneLine(m.Name), l.bundle.Manifest.Name), Hint: "stop it, and run the other one"}
	}
	l.consent.busy = true // nobody is at the terminal to be asked
	change, err := l.bundle.Prepare(ctx, m, l.options, func(string) bool { return true })
	var outside *bundle.OutsideError
	switch {
	case errors.Is(err, bundle.ErrProbation):
		return nil, onProbation(err)
	case errors.As(err, &outside):
		return nil, &admin.Problem{Status: http.StatusForbidden, Code: "outside", Message: outside.Error() + "\n" + howToAllow(outside.Reaches), Hint: "stop it, and run it with these flags; " + unchanged}
	case err != nil:
		return nil, notLoaded(err, unchanged)
	}
	return change, nil
}

// check says whether a change can be made in the way that is asked for.
func (l *live) check(change *bundle.Change, r admin.Reload) error {
	switch {
	case r.Restart && l.membership != nil:
		return &admin.Problem{Status: http.StatusConflict, Code: "in_cluster", Message: "it is a node of a cluster, where others know its actors", Hint: "reload changes it in place; or stop it, and run it again"}
	case r.Restart && l.fed:
		return &admin.Problem{Status: http.StatusConflict, Code: "has_input", Message: "it handles lines of input, which would be lost", Hint: "reload changes it in place; or stop it, and run it again"}
	case !r.Restart && len(change.Whole) > 0:
		return &admin.Problem{Status: http.StatusConflict, Code: "needs_restart", Message: "this cannot be changed while the bundle runs: " + strings.Join(change.Whole, "; "),
			Hint: "wasmactors restart --all starts it anew, with new state; nothing has changed"}
	}
	return nil
}

// mostTrouble bounds the text about a bundle that does not load, in bytes.
const mostTrouble = 16 << 10

func notLoaded(err error, hint string) error {
	return &admin.Problem{Status: http.StatusUnprocessableEntity, Code: "not_loaded", Message: printable.Clip(shown(err), mostTrouble), Hint: hint}
}

// stats are the totals of the run.
func (l *live) stats() host.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sys == nil {
		return l.before
	}
	return sumOf(l.before, l.sys.View().Stats())
}

// close ends what still runs, and returns why it has ended by itself.
func (l *live) close() (cause, late error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.sys == nil && l.apart.Load():
		return nil, nil
	case l.sys == nil:
		return errors.New("no version of it could be started"), nil
	}
	cause = l.sys.Cause()
	stop, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return cause, l.sys.Close(stop)
}

// sumOf are the totals of systems that ran one after the other, as the summary shows them.
func sumOf(s, t host.Stats) host.Stats {
	s.Turns += t.Turns
	s.Crashes += t.Crashes
	s.Restarts += t.Restarts
	s.DeadLetters += t.DeadLetters
	s.Fuel += t.Fuel
	return s
}
