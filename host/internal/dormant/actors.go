package dormant

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Actors are the actors of a checkpoint, of which some have not returned. Now these are children of /user that are inert. A nil one
// has none. All methods are for any goroutine; the functions are set before anybody else knows of it.
type Actors struct {
	// Load reads the part of a row. Back makes the actor of a part, which others find when it returns. Failed is told of an error of
	// either: the actor has not returned.
	Load   func(row int) ([]byte, error)
	Back   func(row *Row, part []byte) error
	Failed func(error)
	// Props are what makes the actor of a name, a *host.Props. It is valid until the next call.
	Props func(name string) (any, error)
	Room  Room // where those that have not returned have room reserved

	Above        ref.Ref // /user
	Base, Letter int64   // what an actor holds without a guest's state: so much, and so much for each byte of its path

	left      atomic.Int64
	returning sync.Mutex // one is on its way, or none may be

	b *Book // its mu is taken behind returning
}

// Room is the pool of a system, see package account. Reserve counts actors and bytes, unless there is no room; negative numbers give back.
type Room interface {
	Reserve(actors, bytes int64) error
}

// Row is what is known of an actor that has not returned. Its name shares the memory of all names.
type Row struct {
	N           int // its place among all
	Name        string
	Ref         abi.Ref
	Turns       uint64
	Incarnation uint64
	Held        int // bytes of its guest's state
	Sort        *Sort
}

// New are those of a book. stays says of each that may whether it has not returned.
func New(b *Book, stays func(*Row) bool) *Actors {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &Actors{b: b}
	var row Row
	for i := range b.rows {
		r := &b.rows[i]
		if r.state&^steady != 0 || r.sort == 0 || r.parent >= 0 || b.busy {
			continue
		}
		if row = d.row(i); stays(&row) {
			r.state |= away
			b.away++
		}
	}
	b.nameAway()
	d.left.Store(int64(b.away))
	return d
}

// row is the row of an actor that is away. The caller holds mu.
func (d *Actors) row(i int) Row {
	r := &d.b.rows[i]
	return Row{N: i, Name: d.b.name(r), Ref: r.ref, Turns: r.turns, Incarnation: uint64(r.life), Held: int(r.held), Sort: d.b.sorts[r.sort-1].Sort}
}

// away is the row of a ref that is away; -1: there is none. The caller holds mu.
func (d *Actors) away(ref abi.Ref) int {
	if i := d.b.find(ref); i >= 0 && d.b.rows[i].state&away != 0 {
		return i
	}
	return -1
}

// Len is how many have not returned.
func (d *Actors) Len() int {
	if d == nil {
		return 0
	}
	return int(d.left.Load())
}

// Return has the actor of a ref return; false if it is not one of those that have not, or cannot.
func (d *Actors) Return(ref abi.Ref) bool {
	if d.Len() == 0 {
		return false
	}
	return d.Has(ref) && d.bring(ref)
}

// Bring has actors return, unless they have.
func (d *Actors) Bring(refs []abi.Ref) error {
	d.returning.Lock()
	defer d.returning.Unlock()
	for _, ref := range refs {
		if _, err := d.returns(ref); err != nil {
			return err
		}
	}
	return nil
}

// ReturnNamed is Return for the child of /user with a name.
func (d *Actors) ReturnNamed(name string) bool {
	if d.Len() == 0 {
		return false
	}
	ref := abi.Ref(0)
	d.b.mu.RLock()
	if i := d.b.awayNamed(name); i >= 0 {
		ref = d.b.rows[i].ref
	}
	d.b.mu.RUnlock()
	return ref != 0 && d.bring(ref)
}

// HasNamed reports whether the child of /user with a name has not returned.
func (d *Actors) HasNamed(name string) bool {
	if d.Len() == 0 {
		return false
	}
	d.b.mu.RLock()
	defer d.b.mu.RUnlock()
	return d.b.awayNamed(name) >= 0
}

// Has reports whether the actor of a ref has not returned.
func (d *Actors) Has(ref abi.Ref) bool {
	if d.Len() == 0 {
		return false
	}
	d.b.mu.RLock()
	defer d.b.mu.RUnlock()
	return d.away(ref) >= 0
}

// ReturnAll has all return, in their order; false if there was none.
func (d *Actors) ReturnAll() bool {
	all := d.Rows()
	for _, row := range all {
		d.bring(row.Ref)
	}
	return len(all) > 0
}

// Rows are those that have not returned, in their order.
func (d *Actors) Rows() (all []Row) {
	d.Each(func(r *Row) { all = append(all, *r) })
	return all
}

// Each calls f for those that have not returned, in their order. f must not call a method, nor keep the row.
func (d *Actors) Each(f func(*Row)) {
	if d.Len() == 0 {
		return
	}
	d.b.mu.RLock()
	defer d.b.mu.RUnlock()
	var row Row
	for i := range d.b.rows {
		if d.b.rows[i].state&away != 0 {
			row = d.row(i)
			f(&row)
		}
	}
}

// bring has an actor return. It is true if the actor is there then, also because another goroutine was first.
func (d *Actors) bring(ref abi.Ref) bool {
	d.returning.Lock()
	there, err := d.returns(ref)
	d.returning.Unlock()
	if err != nil {
		d.Failed(err)
	}
	return there
}

// returns is bring. The caller holds returning.
func (d *Actors) returns(ref abi.Ref) (there bool, err error) {
	d.b.mu.RLock()
	i := d.away(ref)
	if i < 0 {
		there = d.b.find(ref) >= 0
		d.b.mu.RUnlock()
		return there, nil
	}
	row := d.row(i)
	row.Name = strings.Clone(row.Name)
	d.b.mu.RUnlock()
	part, err := d.Load(i)
	if err == nil {
		err = d.Back(&row, part)
	}
	if err != nil && d.Has(ref) {
		return false, fmt.Errorf("%s: the checkpoint: %w", d.path(&row), err)
	} else if err != nil {
		return false, nil // dropped: the system ends
	}
	_ = d.Room.Reserve(0, -d.held(&row)) // it takes what it holds itself now
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.b.rows[i].state&away != 0 { // not dropped
		d.b.rows[i].state &^= away
		d.b.away--
		d.left.Add(-1)
	}
	return true, nil
}

// Hold has nobody return until release is called: those that are on their way have returned.
func (d *Actors) Hold() (release func()) {
	if d == nil {
		return func() {}
	}
	d.returning.Lock()
	return d.returning.Unlock
}

// Drop forgets those that have not returned: their system ends, or their store has failed. It waits for none that is on its way.
func (d *Actors) Drop() {
	if d == nil {
		return
	}
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	for i := range d.b.rows {
		d.b.rows[i].state &^= away
	}
	d.b.away = 0
	d.left.Store(0)
}

// path is the path of an actor, with scheme and system.
func (d *Actors) path(r *Row) string { return d.Above.URI() + "/" + r.Name }

// InOrder has children of /user stand in the order of their start again, also those that have returned late.
func InOrder[C comparable](d *Actors, f *family.Family[C], uid func(C) abi.Ref) {
	if d != nil {
		f.Sort(func(c C) int { return d.b.Place(uid(c)) })
	}
}

// Once is f with its answers remembered. It is for one goroutine.
func Once[K comparable, V any](f func(K) V) func(K) V {
	known := map[K]V{}
	return func(k K) V {
		v, ok := known[k]
		if !ok {
			v = f(k)
			known[k] = v
		}
		return v
	}
}

// held is about what an actor holds when it has returned, in bytes: it is reserved for it.
func (d *Actors) held(r *Row) int64 {
	return 12<<10 + d.Base + d.Letter*int64(len(d.Above.URI())+1+len(r.Name)) + int64(r.Held)
}

// Held is what is reserved for all that have not returned, in bytes.
func (d *Actors) Held() (sum int64) {
	d.Each(func(r *Row) { sum += d.held(r) })
	return sum
}

// Below is how many children of an actor have not returned.
func (d *Actors) Below(ref abi.Ref) int {
	if d == nil || ref != d.Above.UID() {
		return 0
	}
	return d.Len()
}

// Check asks of each that has not returned whether it can stay, in their order. It returns those that cannot, and the first error.
func (d *Actors) Check(stays func(*Row) (bool, error)) (now []abi.Ref, err error) {
	d.Each(func(r *Row) {
		if err != nil {
			return
		}
		ok, wrong := stays(r)
		if wrong != nil {
			err = fmt.Errorf("%s: the checkpoint: %w", d.path(r), wrong)
		} else if !ok {
			now = append(now, r.Ref)
		}
	})
	return now, err
}

// surely is how many bytes the part of an actor may have besides its guest's state before it is read to see how many it has.
const surely = 1 << 20

// Within reports whether the part of an actor has at most so many bytes; most 0: any number. It may be read for that.
func (d *Actors) Within(r *Row, most int64) (bool, error) {
	if most <= 0 || int64(r.Held)+surely <= most {
		return true, nil
	}
	if int64(r.Held) > most {
		return false, nil
	}
	part, err := d.Load(r.N)
	return int64(len(part)) <= most, err
}
