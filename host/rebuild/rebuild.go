// Package rebuild brings a new system to the state of one that was recorded (host.Config.WithRecorder), from the records
// up to any position: those that a crash has left.
//
// Each actor takes in again what the records say: messages in the same batches at the same time, orders, signals. So its
// memory, timers, children, stash and failures come out the same, and what it sends then is compared with what it has
// sent. Nothing of it leaves: mailboxes hold what the records say was accepted and not yet handled. Actors in Go are called
// again; what they do outside of the system, they do again. How an actor in Go, or one that Go has spawned, is made the
// records do not say: see Props.
package rebuild

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
)

// Props says how to make an actor that was spawned from Go and not by an actor: the props that it was spawned with. Its
// arguments are the recorded ones. nil leaves the actor out, with all below it: what was sent to it is dropped, and what it
// has sent is as the records say. It is for actors that begin anew in each process, such as services. What it returns is copied before it
// is called again; it is for one goroutine at a time.
type Props func(*record.Life) (*host.Props, error)

// Rebuilt is a system that waits to go on.
type Rebuilt struct{ port rebuild.Port }

// Prepare makes a system and repeats the records, which must be in the order in which the recorder was told of them, and
// whole up to the last one. The config is that of the recorded system: name, node, strategies, and its secret
// (host.Config.WithSecret); its clock must not be behind the records. The system's own recorder is told of nothing that is
// repeated.
//
// The error says what has come out differently from the records: the actor, the turn and the command. The system is closed
// then.
func Prepare(config host.Config, records []record.Record, props Props) (*Rebuilt, error) {
	r, err := Open(config, props)
	if err != nil {
		return nil, err
	}
	if err := r.Repeat(records); err != nil {
		return nil, err
	}
	return r, nil
}

// Open makes a system that repeats nothing yet. Actors that are not rebuilt can be spawned before [Rebuilt.Repeat]; they
// begin when the system is released.
func Open(config host.Config, props Props) (*Rebuilt, error) {
	port, err := rebuild.Open(config, func(l *record.Life) (any, error) {
		if p, err := props(l); err != nil || p != nil {
			return p, err
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &Rebuilt{port}, nil
}

// Restore makes the durable actors of a checkpoint. It is called once at most, before [Rebuilt.Repeat], which is given the
// records after the checkpoint then. After an error the system can only be closed.
func (r *Rebuilt) Restore(parts [][]byte) error {
	if err := r.port.Restore(parts); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// Rest has actors of a checkpoint stay there until something comes for them. It is called once at most, before [Rebuilt.Restore], which is
// given the others.
func (r *Rebuilt) Rest(x *dormant.Actors) error {
	if err := r.port.Rest(x); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// Repeat repeats the records. It is called once. After an error the system can only be closed.
func (r *Rebuilt) Repeat(records []record.Record) error {
	turns, last := causes(records)
	r.port.Resumes(resumed(records))
	born, latest := births(records)
	fates := fates(records)
	notBack := notBack(records)
	again, dropped := hadAgain(records)
	for i := range records {
		x := &records[i]
		if own(x) && turns[i] == nil || x.Kind == record.Decided {
			continue // it comes with its signal
		}
		ahead := rebuild.Ahead{Last: last[x.Actor] == i, Latest: latest[x.Actor] == i, Born: born[i], Fates: fates, NotBack: notBack[i], Again: again[i], Dropped: dropped[i]}
		if x.Kind == record.Took {
			ahead.Turns = turns[i]
		}
		if err := r.port.Apply(x, ahead); err != nil {
			return fmt.Errorf("rebuild: record %d (%v): %w", i, x.Kind, err)
		}
	}
	if err := r.port.Repeated(); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// Forget says that an actor below /user has had a ref, and is not rebuilt: no later actor at the path gets that ref. It is
// called before [Rebuilt.Repeat].
func (r *Rebuilt) Forget(path string, ref abi.Ref) error { return r.port.Forgotten(path, ref) }

// own reports whether a turn was no message's.
func own(r *record.Record) bool { return r.Kind == record.Turned && len(r.Entry.Mail) == 0 }

// resumed are the actors that have gone on after a failure of their own.
func resumed(records []record.Record) map[abi.Ref]bool {
	all := map[abi.Ref]bool{}
	for i := range records {
		if r := &records[i]; r.Kind == record.Took && r.Signal.What == "resume" {
			all[r.Actor] = true
		}
	}
	return all
}

// notBack are the places of the orders to go on after a failure that could not be carried out.
func notBack(records []record.Record) map[int]bool {
	all, told := map[int]bool{}, map[abi.Ref]int{} // the last such order of each actor, while nothing has come of it
	for i := range records {
		switch r := &records[i]; {
		case r.Kind == record.Turned:
			delete(told, r.Actor)
		case r.Kind != record.Took:
		case r.Signal.What == "resume":
			told[r.Actor] = i
		case r.Signal.What == "child-failed" && sysmail.How(r.Signal.How).Has(sysmail.Again):
			if at, ok := told[r.Signal.From]; ok {
				all[at] = true
				delete(told, r.Signal.From)
			}
		}
	}
	return all
}

// causes finds for each signal the turns that it has led to and what was decided about it, by its place, and the place of the last thing that each actor
// has done: after a signal, its turn or its end. An own turn of an actor without a signal has an entry of its own.
func causes(records []record.Record) (turns map[int][]*record.Record, last map[abi.Ref]int) {
	turns, last = map[int][]*record.Record{}, map[abi.Ref]int{}
	taken := map[abi.Ref]int{} // the last signal or message's turn
	for i := range records {
		r := &records[i]
		at, before := taken[r.Actor]
		switch {
		case r.Kind == record.Accepted, r.Kind == record.Refused, r.Kind == record.Changed:
			continue
		case r.Kind == record.Decided:
			if before && records[at].Kind == record.Took && (r.Decision.Child == 0 || r.Decision.Child == records[at].Signal.From) {
				turns[at] = append(turns[at], r)
			}
			continue
		case own(r) && before && records[at].Kind == record.Took:
			turns[at] = append(turns[at], r)
		case own(r):
			turns[i] = []*record.Record{}
		case r.Kind == record.Took, r.Kind == record.Turned:
			taken[r.Actor] = i
		}
		last[r.Actor] = i
	}
	return turns, last
}

// births finds the children that have begun, or could not be started, since the start of their parent or its last turn, by the place of that or of the signal that has
// led to it, and the last such place of each actor. Between the turn of a start and its children the actor may take signals: they wait
// until the turn is durable.
func births(records []record.Record) (born map[int][]*record.Record, latest map[abi.Ref]int) {
	born, latest = map[int][]*record.Record{}, map[abi.Ref]int{}
	taken := map[abi.Ref]int{}
	for i := range records {
		r := &records[i]
		at, before := taken[r.Actor]
		switch {
		case r.Kind == record.Began, r.Kind == record.Ended && len(r.Life.Args) == 0:
			if at, known := latest[r.Life.Parent]; known {
				born[at] = append(born[at], r)
			}
		case r.Kind == record.Took:
			taken[r.Actor] = i
			switch r.Signal.What {
			case "start", "begin", "restart", "restart-due":
				latest[r.Actor] = i
			}
		case own(r) && before && records[at].Kind == record.Took:
			latest[r.Actor] = at
		case r.Kind == record.Turned:
			taken[r.Actor], latest[r.Actor] = i, i
		}
	}
	return born, latest
}

// fates are those of all actors that records are about.
func fates(records []record.Record) map[abi.Ref]rebuild.Fate {
	all := map[abi.Ref]rebuild.Fate{}
	for i := range records {
		r := &records[i]
		f := all[r.Actor]
		f.Known = true
		if s := r.Signal; r.Kind == record.Took && sysmail.How(s.How).Has(sysmail.Order) {
			f.Orders = append(f.Orders, s)
		}
		switch s := r.Signal; {
		case r.Kind == record.Accepted && r.Message.Kind == abi.KindSpawnFailed:
			child := all[r.Message.Sender]
			child.Refused = true
			all[r.Message.Sender] = child
		case r.Kind == record.Began:
			f.Began, f.Name = true, r.Life.Path[strings.LastIndexByte(r.Life.Path, '/')+1:]
		case r.Kind == record.Ended:
			f.Ended = true
		case r.Kind != record.Took:
		case s.What == "stop" && sysmail.How(s.How).Has(sysmail.Order) && s.Reason == rebuild.RemovedReason: // other reasons may be a guest's words
			f.Removed = true
		case s.What == "restart" && sysmail.How(s.How).Has(sysmail.Renews):
			f.Renewed++
		case s.What == "child-ended" && !sysmail.How(s.How).Has(sysmail.Again):
			child := all[s.From]
			child.Quits++
			all[s.From] = child
		}
		all[r.Actor] = f
	}
	return all
}

// System is the system. Its actors can be looked at, and are held.
func (r *Rebuilt) System() *host.System { return r.port.System().(*host.System) }

// Release lets the system go on. What the records say was sent and not that it has arrived is delivered first: what nobody
// knows to have arrived arrives once more, or for the first time. It is called once.
func (r *Rebuilt) Release() { r.port.Release() }
