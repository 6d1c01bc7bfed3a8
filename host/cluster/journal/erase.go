package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/persist"
)

// Kept is what the log has of a key, without its contents.
type Kept struct {
	persist.Kept
	Records int   // in the log
	Bytes   int64 // of them
}

// Look reads what the log has of a key of a kind, on any node: of the copy of the log that answers, so it may be a moment old. name is
// that of the key's actor. It does not block; done is called once, by any goroutine.
func (j *Journal) Look(kind, name string, done func(Kept, error)) {
	id := "/user/" + kind + "/" + name
	j.mu.Lock()
	p, _ := j.partOf(id)
	j.mu.Unlock()
	if p == nil {
		done(Kept{}, errKind)
		return
	}
	// A copy that finds neither the key nor a fence of its shard cannot say that it has all: there is nothing then.
	j.opt.Log.Last(p.kind, p.no, onceLast(func(_ []byte, at uint64, err error) {
		if err != nil || at == 0 {
			done(Kept{}, err)
			return
		}
		j.look(p, id, name, done)
	}))
}

func (j *Journal) look(p *part, id, name string, done func(Kept, error)) {
	j.opt.Log.Read(p.kind, p.no, name, 0, onceRead(func(list []cluster.LogEntry, err error) {
		if err != nil {
			done(Kept{}, err)
			return
		}
		h, err := j.history(list, ^uint64(0), ^uint64(0))
		if err != nil {
			done(Kept{}, fmt.Errorf("%w: %s: %w", ErrSpoilt, id, err))
			return
		}
		x := Kept{Records: len(list), Bytes: h.bytes}
		if x.Kept, err = persist.Describe(id, h.whole, h.records); err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrSpoilt, id, err)
		}
		done(x, err)
	}))
}

// Erase erases what the log has of a key, on the node that has its shard; on others it fails with ErrMoved, and with ErrLives while the
// key's actor is there. What is written is a record of all that has nothing, under the fence of the shard, so no other owner is between.
// name is that of the key's actor. It is tried for the time of within; after an error that is none of these the key may be erased, or not:
// then it may be called again. It does not block; done is called once, by any goroutine.
func (j *Journal) Erase(kind, name string, within time.Duration, done func(error)) {
	id := "/user/" + kind + "/" + name
	j.mu.Lock()
	p, _ := j.partOf(id)
	var err error
	switch {
	case p == nil:
		err = errKind
	case !p.served || j.closed:
		err = ErrMoved
	case p.erased[name]:
		err = errErased
	default:
		for k := range p.keys {
			if k.name == name {
				err = ErrLives
			}
		}
	}
	if err != nil {
		j.mu.Unlock()
		done(err)
		return
	}
	if p.erased == nil {
		p.erased = map[string]bool{}
	}
	p.erased[name] = true
	e := &erasure{part: p, name: name, id: id, until: j.opt.Clock.Now().Add(within), done: done}
	f := j.fenced(p, func(err error) { j.erase(e, err) })
	j.mu.Unlock()
	f()
}

// erasure is a key that is being erased.
type erasure struct {
	part     *part
	name, id string
	until    time.Time
	fence    uint64
	record   []byte
	tries    int
	maybe    bool // it may be in the log, or come there
	spare    bool // the log has no room for others
	spoilt   bool // what is before it keeps the key from being read
	done     func(error)
}

// erase reads whether there is anything, and then writes that there is nothing.
func (j *Journal) erase(e *erasure, err error) {
	p := e.part
	j.mu.Lock()
	e.fence = p.fence
	if err == nil && e.fence == 0 {
		err = ErrMoved
	}
	least := p.high
	j.mu.Unlock()
	if err != nil {
		j.erased(e, err)
		return
	}
	j.opt.Log.Read(p.kind, p.no, e.name, least, onceRead(func(list []cluster.LogEntry, err error) {
		switch {
		case err == nil && len(list) == 0:
			j.erased(e, ErrNothing)
		case err == nil || errors.Is(err, cluster.ErrLong):
			j.mu.Lock()
			p.number++ // whatever there is of the key is before it, also what no node writes
			under := p.under
			f := frame{form: wholeForm, epoch: under, number: p.number, data: persist.Nothing(e.id)}
			j.mu.Unlock()
			if e.record, e.spoilt = f.encode(), err != nil; !e.spoilt {
				_, err = j.history(list, e.fence, under)
				e.spoilt = err != nil
			}
			j.writeErasure(e)
		case j.late(e):
			j.erased(e, err)
		default:
			e.tries++
			j.again(e.tries, func() { j.erase(e, nil) })
		}
	}))
}

func (j *Journal) late(e *erasure) bool { return !j.opt.Clock.Now().Before(e.until) }

func (j *Journal) writeErasure(e *erasure) {
	p, put := e.part, j.opt.Log.Append
	if e.spare {
		put = j.opt.Log.Spare
	}
	put(p.kind, p.no, e.fence, e.name, e.record, onceAt(func(at uint64, err error) {
		switch {
		case errors.Is(err, cluster.ErrFull) && !e.spare: // what is erased gives room
			e.spare = true
			j.writeErasure(e)
		case err == nil:
			j.mu.Lock()
			p.high = max(p.high, at)
			j.mu.Unlock()
			j.dropErased(e, at)
		case errors.Is(err, cluster.ErrFenced):
			j.mu.Lock()
			if p.fence == e.fence {
				p.fence = 0
			}
			p.outdated(e.fence)
			j.mu.Unlock()
			j.erased(e, ErrMoved)
		case errors.Is(err, cluster.ErrFull), j.late(e):
			if e.maybe || !errors.Is(err, cluster.ErrFull) && !errors.Is(err, cluster.ErrBusy) {
				j.mu.Lock()
				if p.fence == e.fence {
					p.fence = 0 // behind another fence it is known: a key that begins now must not have it come later
				}
				j.mu.Unlock()
			}
			j.erased(e, err)
		default:
			e.maybe = e.maybe || !errors.Is(err, cluster.ErrBusy)
			e.tries++
			j.again(e.tries, func() { j.writeErasure(e) })
		}
	}))
}

// dropErased drops what is before the record. It counts already: that only gives room, and if it fails the next record of all does it. But
// where something there is spoilt the key cannot be read before.
func (j *Journal) dropErased(e *erasure, at uint64) {
	j.opt.Log.Replace(e.part.kind, e.name, e.record, at, onceAt(func(_ uint64, err error) {
		switch {
		case err == nil || !e.spoilt:
			j.erased(e, nil)
		case j.late(e):
			j.erased(e, fmt.Errorf("%w: %s: it is not dropped yet: %w", ErrSpoilt, e.id, err))
		case errors.Is(err, cluster.ErrFenced): // a copy of the record came
			j.writeErasure(e)
		default:
			e.tries++
			j.again(e.tries, func() { j.dropErased(e, at) })
		}
	}))
}

// erased lets the key begin again, and tells how it went.
func (j *Journal) erased(e *erasure, err error) {
	j.mu.Lock()
	delete(e.part.erased, e.name)
	j.mu.Unlock()
	e.done(err)
}
