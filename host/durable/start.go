package durable

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// Starting is a system whose durable actors are about to come back. Actors that are spawned now begin when they have.
type Starting struct {
	store  *Store
	built  *rebuild.Rebuilt
	left   []record.Record
	parts  [][]byte     // of a checkpoint before them; nil: there is none
	first  wal.Position // of the log
	mark   wal.Position // of the checkpoint, or first
	low    wal.Position // what is before it is not needed
	size   int64        // of the checkpoint, compressed
	gone   []life       // of actors below /user that are forgotten
	find   func(name string) *host.Props
	names  func() iter.Seq[string] // for which there are props, at least of those that are there
	system *host.System
	old    *done           // of the checkpoint, if it is of an earlier release and has an index
	away   *dormant.Actors // that stay in it

	chained bool // the checkpoint is of this release: its pieces are read later

	released bool
}

// Props are the props of the durable actors below /user, by name. They must have Props.WithDurable.
type Props map[string]host.Props

// Prepare makes a system with the store. It is called once. The config's clock must not be behind what was recorded. The
// system must be closed before the store.
func (s *Store) Prepare(cfg host.Config, props Props) (*Starting, error) {
	var found host.Props // of the last question: there may be as many as actors
	find := func(name string) *host.Props {
		p, ok := props[name]
		if !ok {
			return nil
		}
		found = p
		return &found
	}
	return s.prepare(cfg, find, func() iter.Seq[string] { return maps.Keys(props) })
}

// PrepareBy is Prepare for actors that are many: find says how to make the durable actor below /user with a name, and is nil for a name that is
// none. So actors that are made alike can share props, and nobody has to keep the names of all. The props must not change. find is asked for
// each actor of the store before PrepareBy or [Starting.Return] returns, and again when one returns late: by one goroutine at a time, until
// the system has ended. It must not call the system or the store.
func (s *Store) PrepareBy(cfg host.Config, find func(name string) *host.Props) (*Starting, error) {
	var one sync.Mutex // also when the store fails while an actor returns
	return s.prepare(cfg, func(name string) *host.Props {
		one.Lock()
		defer one.Unlock()
		return find(name)
	}, nil)
}

func (s *Store) prepare(cfg host.Config, find func(string) *host.Props, names func() iter.Seq[string]) (*Starting, error) {
	x := &Starting{store: s, find: find, names: names}
	if err := x.read(); err != nil {
		return nil, err
	}
	built, err := rebuild.Open(cfg.WithStore(s).WithSecret(s.secret).WithEpoch(s.log.Epoch()), func(l *record.Life) (*host.Props, error) {
		_, path, _ := strings.Cut(strings.TrimPrefix(l.Path, ref.Scheme), "/")
		name, top := strings.CutPrefix(path, "user/")
		if !top {
			return nil, forgottenAt(path)
		}
		return x.propsOf(name)
	})
	if err != nil {
		return nil, err
	}
	if x.built, x.system = built, built.System(); names == nil {
		x.names = x.below
	}
	return x, nil
}

// propsOf are the props of an actor below /user.
func (x *Starting) propsOf(name string) (*host.Props, error) {
	if p := x.find(name); p != nil {
		return p, nil
	}
	return nil, forgottenAt("user/" + name)
}

func forgottenAt(path string) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "user/"), "/")
	return fmt.Errorf("the store has the state of /%s, which is no durable actor now: %w %s, with all below it", path, ErrForgotten, name)
}

// below are the names of the actors below /user that there are props for, also of those that have not returned.
func (x *Starting) below() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, i := range x.system.View().AppendInfo(nil) {
			if name, top := strings.CutPrefix(i.Ref.Path(), "/user/"); top && !strings.Contains(name, "/") && x.find(name) != nil && !yield(name) {
				return
			}
		}
	}
}

// ErrForgotten says that an actor must be made durable again, or its state forgotten (Store.Forget, `wasmactors store forget`).
var ErrForgotten = errors.New("bring it back as it was, or have the store forget")

// read reads the log: the last checkpoint, and what came after it. Of what came before it only events are looked at.
func (x *Starting) read() error {
	events := &replays{store: x.store}
	if err := events.open(); err != nil {
		return err
	}
	if p := x.pointed(events); p != nil {
		later, err := x.gather(p, events)
		if err == nil && !later {
			return nil
		}
		x.forgets() // it says what is wrong, or where the later one is
	}
	from, err := x.scan(events)
	if err != nil {
		return err
	}
	_, err = x.gather(&pointer{mark: spot{batch: from}}, nil)
	return err
}

// pointed is the pointer of the store; nil: there is none that can be used.
func (x *Starting) pointed(events *replays) *pointer {
	p, err := x.store.pointer()
	if err != nil {
		return nil
	}
	if x.store.events.Load() != nil && events.had < p.mark.batch { // what it lacks is before the mark
		return nil
	}
	x.first, x.mark, x.chained = x.store.log.First(), p.mark.at, true
	return p
}

// forgets forgets what was read.
func (x *Starting) forgets() {
	s := x.store
	s.probation = nil
	s.begin(dormant.NewBook(), chain{})
	*x = Starting{store: s, find: x.find, names: x.names}
}

// gather reads the log from the mark of a checkpoint, or from its beginning. Events are told to events, unless that is nil. later says that
// there is a later checkpoint than the pointer says, and not all was read.
func (x *Starting) gather(p *pointer, events *replays) (later bool, err error) {
	gone := map[string]wal.Position{} // forgotten since the checkpoint, and until when
	var at []wal.Position             // of x.left
	var g gathered
	var lazily *gatherLazily
	var last *ended // of the checkpoint
	var lastAt spot
	var all records
	var batch wal.Position
	for r, err := range x.store.log.ReadWithout(p.mark.batch, p.spans) {
		if err != nil {
			return false, err
		}
		if r.First {
			batch = r.At
		}
		v, err := all.next(&r)
		if err == nil && events != nil && hasEvents(r.Data) {
			err = events.take(r.At, v)
		}
		if err == nil && r.At >= x.mark {
			switch v := v.(type) { // of events others are told
			case *record.Record:
				x.left, at = append(x.left, *v), append(at, r.At)
			case *forgotten:
				if topLevel(v.Path) { // earlier releases took others, which a start cannot leave out
					gone[v.Path] = r.At
				}
			case *record.Probation:
				x.store.probation = v // nobody else has the store yet
			case *mark:
				g = gathered{at: r.At}
				if x.old != nil && x.old.mark == r.At && x.store.opt.Lazy {
					lazily = &gatherLazily{end: x.old}
				}
			case *piece:
				if lazily != nil && v.mark == x.old.mark {
					lazily.add(spot{batch, r.At}, v)
				} else if !x.chained {
					g.add(v)
				}
			case *done:
				var parts [][]byte
				if lazily != nil && v.mark == x.old.mark {
					parts = [][]byte{}
				} else if parts, err = g.end(v); parts == nil {
					break
				}
				at = x.begins(parts, g.at, int64(v.bytes), at, gone)
				g = gathered{}
			case *ended:
				if v.mark != g.at {
					break // of one whose mark the log has not any more
				}
				if p.ended != nil && g.at != p.mark.at {
					return true, nil
				}
				last, lastAt, lazily = v, spot{batch, r.At}, nil
				at = x.begins([][]byte{}, g.at, int64(v.bytes), at, gone)
				g = gathered{}
			}
		}
		if err != nil {
			return false, fmt.Errorf("position %d: %w", r.At, err)
		}
	}
	if x.parts == nil && x.first > firstPosition {
		return false, fmt.Errorf("%w: the log begins at position %d, and no checkpoint has what came before", ErrRecord, x.first)
	}
	s := x.store
	if x.low = x.mark; last != nil {
		book, chain, err := s.readBook(last, lastAt)
		if err != nil {
			return false, err
		}
		x.low = last.low
		s.begin(book, chain)
	} else if lazily != nil {
		book, err := lazily.open()
		if err != nil {
			return false, err
		}
		s.begin(book, chain{})
	}
	if s.book.Len() > 0 || last != nil {
		if err := x.rest(gone); err != nil {
			return false, err
		}
	}
	for i := range x.left {
		s.touched.of(&x.left[i]) // nobody else has the store yet
	}
	return false, x.forget(at, gone)
}

// begins begins with a checkpoint: what came before its mark is not needed. at are the positions of x.left.
func (x *Starting) begins(parts [][]byte, mark wal.Position, size int64, at []wal.Position, gone map[string]wal.Position) []wal.Position {
	x.parts, x.mark, x.size = parts, mark, size
	n, _ := slices.BinarySearch(at, mark)
	x.left = slices.Clone(x.left[n:])
	maps.DeleteFunc(gone, func(_ string, until wal.Position) bool { return until < mark })
	return slices.Clone(at[n:])
}

// rest reads the parts of a checkpoint that actors need at once.
func (x *Starting) rest(gone map[string]wal.Position) (err error) {
	concerned := map[abi.Ref]bool{}
	for i := range x.left {
		r := &x.left[i]
		if concerned[r.Actor] = true; r.Signal != nil {
			concerned[r.Signal.From], concerned[r.Signal.Other] = true, true
		}
	}
	names := map[string]bool{}
	for path := range gone {
		names[path[strings.LastIndexByte(path, '/')+1:]] = true
	}
	s := x.store
	if p := s.probation; s.opt.Lazy && (p == nil || p.Over) {
		x.away = dormant.New(s.book, func(r *dormant.Row) bool { return !concerned[r.Ref] && !names[r.Name] })
		s.away = x.away
		x.away.Props = func(name string) (any, error) { return x.propsOf(name) }
		shelf := s.shelf
		x.away.Load = shelf.part
		x.away.Failed = func(err error) { _ = s.fail(err) } // also if it has no room: others must not find that there is no such actor
	}
	x.parts, err = s.shelf.parts(s.book.Here())
	s.shelf.clear()
	return err
}

// scan reads the log as far as that finds the last checkpoint, and brings the index of events up to it. It returns where the batch
// begins that has the checkpoint's mark.
func (x *Starting) scan(events *replays) (from wal.Position, err error) {
	var batch, begins, last wal.Position // of this record, of the last mark, and that mark
	for r, err := range x.store.log.Read(0) {
		if err != nil {
			return 0, err
		}
		if x.first == 0 {
			x.first, x.mark = r.At, r.At
		}
		if r.First {
			batch = r.At
		}
		switch {
		case hasEvents(r.Data):
			v, err := decode(r.Data)
			if err == nil {
				err = events.take(r.At, v)
			}
			if err != nil {
				return 0, fmt.Errorf("position %d: %w", r.At, err)
			}
		case len(r.Data) < 2 || r.Data[0] != version && r.Data[0] != laterVersion:
		case r.Data[0] == laterVersion:
			v, err := decode(r.Data)
			if err != nil {
				return 0, fmt.Errorf("position %d: %w", r.At, err)
			}
			if e := v.(*ended); last != 0 && e.mark == last {
				from, x.mark, x.old, x.chained = begins, last, nil, true
			}
		case r.Data[1] == tagMark:
			last, begins = r.At, batch
		case r.Data[1] == tagDone || r.Data[1] == tagKept:
			v, err := decode(r.Data)
			if err != nil {
				return 0, fmt.Errorf("position %d: %w", r.At, err)
			}
			if d := v.(*done); last != 0 && d.mark == last {
				from, x.mark, x.old, x.chained = begins, last, nil, false
				if d.frames > 0 {
					x.old = d
				}
			}
		}
	}
	return from, nil
}

// forget leaves out actors, and all below them, up to a position each. at are the positions of the records.
func (x *Starting) forget(at []wal.Position, gone map[string]wal.Position) error {
	if len(gone) == 0 {
		return nil
	}
	until := map[abi.Ref]wal.Position{} // of actors that are left out
	parts := x.parts[:0]
	for _, b := range x.parts {
		of, err := port.Part(b)
		if err != nil {
			return err
		}
		end, top := gone[of.Path]
		if top {
			x.gone = append(x.gone, life{of.Path, of.Ref})
		} else if end, top = until[of.Parent]; !top {
			parts = append(parts, b)
			continue
		}
		until[of.Ref] = end
		x.store.touched.add(of.Ref) // the next checkpoint does not have it
	}
	x.parts = parts
	left := x.left[:0]
	for i := range x.left {
		r := &x.left[i]
		if r.Kind == record.Began {
			end, top := gone[r.Life.Path]
			if top && at[i] < end {
				x.gone = append(x.gone, life{r.Life.Path, r.Actor})
			} else {
				end = until[r.Life.Parent]
			}
			if at[i] < end {
				until[r.Actor] = end
			}
		}
		if at[i] < until[r.Actor] || r.Kind == record.Took && strings.HasPrefix(r.Signal.What, "child-") && at[i] < until[r.Signal.From] || r.Kind == record.Decided && at[i] < until[r.Decision.Child] {
			continue // also what the guardian was told of one
		}
		left = append(left, *r)
	}
	x.left = left
	return nil
}

// topLevel reports whether a path is that of an actor below /user.
func topLevel(path string) bool {
	return strings.Count(strings.TrimPrefix(path, ref.Scheme), "/") == 2
}

// life is one of an actor below /user.
type life struct {
	path string
	ref  abi.Ref
}

// firstPosition is behind that of the first record of a log.
const firstPosition = 8 << 10

// System is the system.
func (x *Starting) System() *host.System { return x.system }

// Recover brings the durable actors back. It returns the names of those that are there again; others can be spawned now.
// After an error the system can only be abandoned.
func (x *Starting) Recover() (back map[string]bool, err error) {
	if err := x.Return(); err != nil {
		return nil, err
	}
	back = map[string]bool{}
	for name := range x.names() {
		if x.Back(name) {
			back[name] = true
		}
	}
	return back, nil
}

// Back reports whether an actor below /user is there, between Return and Release. It has none return.
func (x *Starting) Back(name string) bool {
	if x.away.HasNamed(name) {
		return true
	}
	_, err := x.system.Lookup("/user/" + name)
	return err == nil
}

// Return is [Starting.Recover] without the names, of which there may be many: see [Starting.Back].
func (x *Starting) Return() (err error) {
	defer func() { x.left, x.parts, x.gone = nil, nil, nil }()
	if x.away.Len() > 0 {
		if err := x.built.Rest(x.away); err != nil {
			return err
		}
	}
	if x.parts != nil {
		if err := x.built.Restore(x.parts); err != nil {
			return err
		}
		x.parts = nil
	}
	for _, l := range x.gone {
		if err := x.built.Forget(l.path, l.ref); err != nil {
			return err
		}
	}
	began := x.store.opt.Clock.Now()
	if err := x.built.Repeat(x.left); err != nil {
		return err
	}
	x.store.repeated(x, x.store.opt.Clock.Now().Sub(began))
	if err := x.store.giveBack(x.low); err != nil { // the last life may have ended before it could
		return err
	}
	x.store.mu.Lock()
	x.store.failed = x.fail
	err = x.store.err
	x.store.mu.Unlock()
	if m := x.store.opt.Sim; m != nil && m.Recovered != nil {
		m.Recovered(x.system)
	}
	return err
}

// Release lets the system go on. It is called once.
func (x *Starting) Release() {
	x.release()
	if m := x.store.opt.Sim; m != nil && m.Released != nil {
		m.Released()
	}
}

func (x *Starting) release() {
	x.released = true
	x.built.Release()
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	// A manual system is stepped by one goroutine only, which calls Store.Checkpoint between two steps.
	if s.system = x.system; s.kept == nil && s.opt.Sim == nil && !swap.Manual(x.system) {
		s.kept = make(chan struct{})
		go s.keep(x.system)
	}
}

// Abandon is for a system that cannot go on: it can be closed afterwards, and nothing of its end is recorded. After Release
// it does nothing.
func (x *Starting) Abandon() {
	if !x.released {
		port.Freeze(x.system)
		x.release()
	}
}

// fail stops the durable actors: nothing of what they do can be recorded.
func (x *Starting) fail(error) {
	port.Freeze(x.system)
	x.stopEvents()
	for _, name := range slices.Sorted(x.names()) {
		if ref, err := x.system.Lookup("/user/" + name); err == nil {
			x.system.Stop(ref)
		}
	}
}

// keyID tells keys apart.
func keyID(key []byte) uint32 {
	sum := sha256.Sum256(append([]byte("wasmactors store key\x00"), key...))
	return max(1, binary.LittleEndian.Uint32(sum[:]))
}
