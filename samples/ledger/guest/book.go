package main

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// book is what an account of a cluster knows, and what its entry says.
type book struct {
	balance int64
	seq     int64            // of the last payment
	clerks  map[string]order // the last order of each
	payers  map[string]int64 // the last payment of each
	way     []payment        // on their way, oldest first
}

const begins = 1_000_000 // cents, of an account that has no entry yet

// order is what became of one.
type order struct {
	id      int64
	refused bool
}

// payment is one that has left this account, and has not come to the other, as far as this one knows.
type payment struct {
	seq    int64
	to     string
	amount int64
	clerk  string
	id     int64
	change uint64 // with which it came into the book; 0: it was read with it
}

func newBook() book {
	return book{balance: begins, clerks: map[string]order{}, payers: map[string]int64{}}
}

func (o order) status() string {
	if o.refused {
		return "refused"
	}
	return "done"
}

func (b *book) onWay(clerk string, id int64) bool {
	for _, p := range b.way {
		if p.clerk == clerk && p.id == id {
			return true
		}
	}
	return false
}

// sum is what is on its way.
func (b *book) sum() (sum int64) {
	for _, p := range b.way {
		sum += p.amount
	}
	return sum
}

// encode is the entry: always the same bytes for the same book.
func (b *book) encode() []byte {
	w := abi.NewWriter(nil)
	w.Array(5)
	w.Int(b.balance)
	w.Int(b.seq)
	var clerks, payers []string
	for name := range b.clerks {
		clerks = append(clerks, name)
	}
	for name := range b.payers {
		payers = append(payers, name)
	}
	slices.Sort(clerks)
	slices.Sort(payers)
	w.Array(len(clerks))
	for _, name := range clerks {
		w.Array(3)
		w.Text(name)
		w.Int(b.clerks[name].id)
		w.Bool(b.clerks[name].refused)
	}
	w.Array(len(payers))
	for _, name := range payers {
		w.Array(2)
		w.Text(name)
		w.Int(b.payers[name])
	}
	w.Array(len(b.way))
	for _, p := range b.way {
		w.Array(5)
		w.Int(p.seq)
		w.Text(p.to)
		w.Int(p.amount)
		w.Text(p.clerk)
		w.Int(p.id)
	}
	return w.Bytes()
}

// read reads an entry.
func (b *book) read(entry []byte) error {
	*b = newBook()
	r := abi.NewReader(entry)
	r.Array()
	b.balance, b.seq = r.Int(), r.Int()
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		r.Array()
		name := r.Text()
		b.clerks[name] = order{r.Int(), r.Bool()}
	}
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		r.Array()
		name := r.Text()
		b.payers[name] = r.Int()
	}
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		r.Array()
		p := payment{seq: r.Int()}
		p.to, p.amount, p.clerk, p.id = r.Text(), r.Int(), r.Text(), r.Int()
		b.way = append(b.way, p)
	}
	return r.Done()
}
