package dormant

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
)

// kept is what a test knows of an actor.
type kept struct {
	of Part
	at string // where its part is
}

// diary is a book with what a test knows of it.
type diary struct {
	t      *rapid.T
	book   *Book
	all    []kept // in the order of their start
	next   abi.Ref
	pieces uint64
	chain  [][]byte // indexes since the whole one, and that
}

func (w *diary) draw(of *Part) {
	t := w.t
	of.Turns, of.Busy = rapid.Uint64().Draw(t, "turns"), rapid.IntRange(0, 5).Draw(t, "busy") == 0
	of.Sort = rapid.SampledFrom([]string{"", Sort{Type: "a"}.Text(), Sort{Type: "b", Code: []byte("c")}.Text()}).Draw(t, "sort")
	of.Steady = rapid.Bool().Draw(t, "steady")
	of.Incarnation, of.Held = rapid.Uint64Range(0, 1<<33).Draw(t, "incarnation"), rapid.IntRange(0, 1<<20).Draw(t, "held")
}

// below reports whether an actor is one of some, or below one.
func (w *diary) below(refs map[abi.Ref]bool, of *Part) bool {
	for ; ; of = &w.all[w.find(of.Parent)].of {
		if refs[of.Ref] {
			return true
		}
		if w.find(of.Parent) < 0 {
			return false
		}
	}
}

func (w *diary) find(ref abi.Ref) int {
	for i := range w.all {
		if w.all[i].of.Ref == ref {
			return i
		}
	}
	return -1
}

// step changes the book: actors end, change, begin, and parts are moved. The index is applied to the book as the difference, whatever is
// kept of it.
func (w *diary) step(whole bool) {
	t := w.t
	c := &Change{Busy: rapid.Bool().Draw(t, "busy")}
	ends := map[abi.Ref]bool{}
	for i := range w.all {
		if rapid.IntRange(0, 7).Draw(t, "ends") == 0 {
			ends[w.all[i].of.Ref] = true
		}
	}
	var left []kept
	for i := range w.all {
		if of := &w.all[i].of; w.below(ends, of) {
			c.Gone = append(c.Gone, of.Ref)
		} else {
			left = append(left, w.all[i])
		}
	}
	w.all = left
	slot := 0
	place := func() (frame, at int, where string) {
		if slot == 0 || rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
			f := Frame{Bytes: rapid.IntRange(1, 1000).Draw(t, "bytes")}
			for range rapid.IntRange(1, 3).Draw(t, "pieces") {
				w.pieces += rapid.Uint64Range(1, 1000).Draw(t, "gap")
				f.Spots = append(f.Spots, Spot{w.pieces, w.pieces + rapid.Uint64Range(0, 9).Draw(t, "behind")})
			}
			c.Frames, slot = append(c.Frames, f), 0
		}
		f := &c.Frames[len(c.Frames)-1]
		f.Parts++
		slot++
		return len(c.Frames) - 1, slot - 1, fmt.Sprint(f.Spots, slot-1)
	}
	c.Head, _, _ = place()
	for i := range w.all {
		k := &w.all[i]
		switch rapid.IntRange(0, 3).Draw(t, "changes") {
		case 0:
			w.draw(&k.of)
			p := PartAt{Of: &k.of, Ref: k.of.Ref}
			p.Frame, p.Slot, k.at = place()
			c.Parts = append(c.Parts, p)
		case 1:
			p := PartAt{Ref: k.of.Ref}
			p.Frame, p.Slot, k.at = place()
			c.Parts = append(c.Parts, p)
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "begin") {
		w.next += 2
		k := kept{of: Part{Name: fmt.Sprint("k", w.next), Ref: w.next * 977, Parent: 7, Path: root}}
		if len(w.all) > 0 && rapid.IntRange(0, 2).Draw(t, "below") == 0 {
			up := &w.all[rapid.IntRange(0, len(w.all)-1).Draw(t, "parent")].of
			k.of.Parent, k.of.Path = up.Ref, up.Path
		}
		k.of.Path += "/" + k.of.Name
		w.draw(&k.of)
		w.all = append(w.all, k)
		p := PartAt{Ref: k.of.Ref}
		p.Frame, p.Slot, w.all[len(w.all)-1].at = place()
		c.Parts = append(c.Parts, p)
	}
	for i := range c.Parts { // w.all does not move any more
		if ref := c.Parts[i].Ref; c.Parts[i].Of != nil || w.book.find(ref) < 0 {
			c.Parts[i].Of = &w.all[w.find(ref)].of
		}
	}
	w.book.Settle(c)
	above := map[abi.Ref]bool{}
	for _, k := range w.all {
		above[k.of.Parent] = true
	}
	for _, p := range c.Parts {
		if p.Of != nil && p.Of.Sort != "" && above[p.Of.Ref] {
			t.Fatalf("%s is inert, and others are below it", p.Of.Path)
		}
	}
	if n, err := w.book.After(c); err != nil || n != len(w.all) {
		t.Fatalf("%d actors instead of %d: %v", n, len(w.all), err)
	}
	oldest, _ := w.book.Oldest(c)
	delta := w.book.Delta(c)
	if whole {
		b, err := w.book.Whole(c)
		if err != nil {
			t.Fatal(err)
		}
		w.chain = [][]byte{b}
	} else {
		w.chain = append(w.chain, delta)
	}
	if err := w.book.Apply(delta, false); err != nil {
		t.Fatal(err)
	}
	w.book.Frames(func(_ uint32, f *Frame, share int) bool {
		if f.Spots[0].Batch != oldest || share < 0 || share > f.Bytes {
			t.Fatalf("the oldest frame is %+v, and was said to begin at %d; %d bytes of it", f, oldest, share)
		}
		return false
	})
}

// says is what a book says of all, in their order.
func says(b *Book) (all []string) {
	for _, e := range b.Entries() {
		r := &b.rows[e.Row]
		up, sort := abi.Ref(0), ""
		if r.parent >= 0 {
			up = b.rows[r.parent].ref
		}
		if r.sort > 0 {
			sort = fmt.Sprint(b.sorts[r.sort-1].text, r.turns, r.life, r.held)
		}
		all = append(all, fmt.Sprintf("%d %s below %d, %x stays %v at %v", r.ref, b.name(r), up, sort, b.Stays(r.ref), fmt.Sprint(e.Spots, e.Slot)))
	}
	live := map[string]int{}
	for i := range b.rows {
		if r := &b.rows[i]; r.state&gone == 0 && r.sort > 0 {
			live[b.sorts[r.sort-1].text]++
		}
	}
	b.Codes(func([]byte) {})
	for _, s := range b.sorts {
		if live[s.text] != s.live {
			all = append(all, fmt.Sprintf("the sort %x has %d actors of %d", s.text, s.live, live[s.text]))
		}
	}
	return append(all, fmt.Sprint("busy ", b.busy, " head ", b.frame(b.head).Spots))
}

// The book that indexes are applied to, and the one that is read from a whole one and the differences since then, say of each actor what a
// checkpoint has said of it last.
func TestBooksSayWhatWasWrittenLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &diary{t: t, book: NewBook()}
		for i := range rapid.IntRange(1, 8).Draw(t, "checkpoints") {
			w.step(i == 0 || rapid.IntRange(0, 3).Draw(t, "whole") == 0)
			read := NewBook()
			for j, index := range w.chain {
				if err := read.Apply(index, j == 0); err != nil {
					t.Fatal(err)
				}
			}
			got, again := says(w.book), says(read)
			if !reflect.DeepEqual(got, again) {
				t.Fatalf("the book\n%s\nand the one that was read\n%s", strings.Join(got, "\n"), strings.Join(again, "\n"))
			}
			for i, k := range w.all {
				up, sort := k.of.Parent, ""
				if up == 7 {
					up = 0
				}
				if k.of.Sort != "" {
					sort = fmt.Sprint(k.of.Sort, k.of.Turns, k.of.Incarnation, k.of.Held)
				}
				if want := fmt.Sprintf("%d %s below %d, %x stays %v at %v", k.of.Ref, k.of.Name, up, sort, k.of.Steady || sort != "" && up == 0, k.at); got[i] != want {
					t.Fatalf("actor %d: %s, want %s", i, got[i], want)
				}
				if !w.book.Has(k.of.Ref) || w.book.Place(k.of.Ref) >= w.book.Place(1) {
					t.Fatalf("%+v is not there", k.of)
				}
			}
			inert := 0
			for _, k := range w.all {
				if k.of.Sort != "" && k.of.Parent == 7 && !w.book.busy { // else /user may be about to do something with them
					inert++
				}
			}
			if d := New(read, func(*Row) bool { return true }); d.Len() != inert {
				t.Fatalf("%d are away of %d, and /user decides: %v", d.Len(), inert, w.book.busy)
			}
			if w.book.Len() != len(w.all) || len(w.book.Refs()) != len(w.all) {
				t.Fatalf("%d actors of %d", w.book.Len(), len(w.all))
			}
		}
	})
}

// A book stays small, however many actors have come and gone, and those that are away are found by their names in it.
func TestBooksForgetWhoIsGone(t *testing.T) {
	b := NewBook()
	text := Sort{Type: "t"}.Text()
	var before []abi.Ref
	for round := range uint64(50) {
		c := &Change{Frames: []Frame{{Spots: []Spot{{1000 * (round + 1), 1000 * (round + 1)}}, Parts: 301, Bytes: 10}}, Gone: before}
		if round > 0 {
			c.Gone = before[1:] // one of each round stays
		}
		before = nil
		for i := range 300 {
			ref := abi.Ref(1000*round + uint64(i) + 1)
			before = append(before, ref)
			c.Parts = append(c.Parts, PartAt{Of: &Part{Path: fmt.Sprint(root, "/", ref), Name: fmt.Sprint("n", uint64(ref)), Ref: ref, Sort: text}, Ref: ref, Slot: i + 1})
		}
		if err := b.Apply(b.Delta(c), false); err != nil {
			t.Fatal(err)
		}
		if round == 9 {
			d := New(b, func(r *Row) bool { return r.Ref%1000 == 1 })
			if d.Len() != 10 {
				t.Fatalf("%d are away", d.Len())
			}
		}
	}
	if b.Len() != 300+49 || len(b.rows) > 2200 || len(b.frames) > 50 || b.names.Len() > 20_000 || len(b.refs) > 8192 {
		t.Errorf("%d actors: %d rows, %d frames, %d bytes of names, %d places", b.Len(), len(b.rows), len(b.frames), b.names.Len(), len(b.refs))
	}
	for round := range 10 {
		if i := b.awayNamed(fmt.Sprint("n", 1000*round+1)); i < 0 || b.rows[i].ref != abi.Ref(1000*round+1) {
			t.Errorf("who is away from round %d is at %d", round, i)
		}
	}
	if i := b.awayNamed("n2"); i >= 0 || b.away != 10 {
		t.Error("one that is gone is found", i, b.away)
	}
}

// change is an index of one frame with two parts, and the rows.
func change(flags byte, rows ...[]byte) []byte {
	b := []byte{changeVersion, flags, 1, 9, 2, 1, 100, 3, 0, 1, byte(len(Sort{Type: "t"}.Text()))}
	b = append(append(b, Sort{Type: "t"}.Text()...), byte(len(rows)))
	return append(append(b, bytes.Join(rows, nil)...), 0)
}

// An index of version 2 says nothing of who is steady, and one of version 3 goes on from it.
func TestBooksOfVersion2(t *testing.T) {
	ref := func(n byte, more ...byte) []byte { return append([]byte{n, 0, 0, 0, 0, 0, 0, 0}, more...) }
	old := change(wholeBook, append(ref(5, 0, 0), 0, 1, 'k', 0), append(ref(6, 0, 0), append(append([]byte{2}, ref(5)...), 1, 'l', 0)...))
	old[0] = 2
	b := NewBook()
	if err := b.Apply(old, true); err != nil {
		t.Fatal(err)
	}
	if b.Stays(5) || b.Stays(6) || b.rows[b.find(6)].parent != 0 || len(b.Passing()) != 2 {
		t.Errorf("%+v", b.rows)
	}
	if err := b.Apply(change(0, append(ref(5, 0, 1), rowSteady, 1, 'k', 0)), false); err != nil {
		t.Fatal(err)
	}
	if !b.Stays(5) || b.Stays(6) || b.Len() != 2 {
		t.Errorf("%+v", b.rows)
	}
	if err := b.Apply(change(0, append(ref(5, 0, 1), 0, 1, 'k', 0)), false); err != nil || b.Stays(5) {
		t.Errorf("it is steady still, %v", err)
	}
}

// What cannot be is refused, with the reason.
func TestForgedBooks(t *testing.T) {
	ref := func(n byte, more ...byte) []byte { return append([]byte{n, 0, 0, 0, 0, 0, 0, 0}, more...) }
	inert := []byte{0, 1, 'k', 1, 9, 9, 9}
	row := append(ref(5, 0, 1), inert...)
	whole := change(1, row)
	if err := NewBook().Apply(whole, true); err != nil {
		t.Fatal(err)
	}
	with := func(flags byte, rows ...[]byte) func() []byte {
		return func() []byte { return change(flags, rows...) }
	}
	for what, c := range map[string]struct {
		after bool // as a difference to the book of whole
		index func() []byte
	}{
		"version 4":                   {false, func() []byte { return append([]byte{4}, whole[1:]...) }},
		"flags that none has":         {false, with(1, ref(5, 0, 1, 4, 1, 'k', 0, 0, 0, 0))},
		"flags that no index has":     {false, with(5)},
		"the reverse":                 {false, with(0)},
		"whole book where the diff":   {true, with(1)},
		"it is cut":                   {false, func() []byte { return []byte{3, 1} }},
		"bytes behind its end":        {false, func() []byte { return append(bytes.Clone(whole), 0) }},
		"without a place or a ref":    {false, with(1, append(ref(5, 2, 1), inert...))},
		"actor without a place":       {false, with(1, append(ref(5, 0, 2), inert...))},
		"a place or a ref":            {false, with(1, append(ref(0, 0, 1), inert...))},
		"an actor that was not there": {false, with(1, ref(5, 1, 1))},
		"an actor before its parent":  {false, with(1, ref(5, 0, 1, 1, 8, 0, 0, 0, 0, 0, 0, 0, 1, 'k', 0))},
		"two actors with one ref":     {false, with(1, row, row)},
		"an actor of no sort":         {false, with(1, ref(5, 0, 1, 0, 1, 'k', 2, 0, 0, 0))},
		"without a name":              {false, with(1, ref(5, 0, 1, 0, 0, 0))},
		"out of range":                {false, with(1, ref(5, 0, 1, 0, 1, 'k', 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0))},
		"an actor that was another one": {true, func() []byte {
			return bytes.Replace(change(0, append(ref(5, 0, 1), 0, 1, 'x', 0)), []byte{100, 3}, []byte{101, 3}, 1)
		}},
		"gone that was not there":        {true, func() []byte { b := change(0); b[len(b)-1] = 1; return append(b, ref(6)...) }},
		"a head in no frame":             {false, func() []byte { return []byte{3, 1, 0, 0, 0, 0, 0} }},
		"a frame without pieces":         {false, func() []byte { return []byte{3, 1, 1, 9, 0, 1, 5, 5, 0, 0, 0, 0} }},
		"before the one that was before": {true, func() []byte { return bytes.Replace(change(0), []byte{100, 3}, []byte{99, 3}, 1) }},
		"more than its bytes can hold":   {false, func() []byte { return []byte{3, 1, 200, 1} }},
		"a sort that cannot be read":     {false, func() []byte { return []byte{3, 1, 1, 9, 2, 1, 100, 3, 0, 1, 1, 'x', 0, 0} }},
	} {
		b := NewBook()
		if c.after {
			if err := b.Apply(whole, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Apply(c.index(), !c.after); !errors.Is(err, ErrIndex) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A change that does not fit its book is found before anything is written.
func TestChangesThatDoNotFit(t *testing.T) {
	frame := []Frame{{Spots: []Spot{{100, 100}}, Parts: 3, Bytes: 1}}
	part := func(path string, ref, parent abi.Ref) PartAt {
		return PartAt{Of: &Part{Path: root + path, Name: path[strings.LastIndexByte(path, '/')+1:], Ref: ref, Parent: parent}, Ref: ref}
	}
	b := NewBook()
	if err := b.Apply(b.Delta(&Change{Frames: frame, Parts: []PartAt{part("/a", 5, 7), part("/a/b", 6, 5)}}), false); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]*Change{
		"moved":  {Parts: []PartAt{{Ref: 9}}},
		"orphan": {Parts: []PartAt{part("/c/d", 9, 8)}},
	} {
		if _, err := b.After(c); !errors.Is(err, errChange) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Whole(&Change{Frames: frame, Gone: []abi.Ref{5}}); !errors.Is(err, errChange) {
		t.Errorf("a child without its parent: %v", err)
	}
}

// FuzzBook: bytes are refused, or make a book whose whole index makes the same.
func FuzzBook(f *testing.F) {
	f.Add(change(1))
	f.Add(change(1, append([]byte{5, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0, 1, 'k', 1, 9, 9, 9)))
	f.Add(change(3, append([]byte{5, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0, 1, 'k', 1, 9, 9, 9), append([]byte{6, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 5, 0, 0, 0, 0, 0, 0, 0, 1, 'x', 0)))
	f.Fuzz(func(t *testing.T, index []byte) {
		b := NewBook()
		if err := b.Apply(index, true); err != nil {
			if !errors.Is(err, ErrIndex) {
				t.Fatal(err)
			}
			_ = NewBook().Apply(index, false)
			return
		}
		for i, r := range b.rows {
			if int(r.parent) >= i || int(r.sort) > len(b.sorts) || int(r.name)+int(r.length) > b.names.Len() || r.frame < b.first || int(r.slot) >= b.frame(r.frame).Parts {
				t.Fatalf("actor %d: %+v", i, r)
			}
		}
		if spots := b.frames[len(b.frames)-1].Spots; spots[len(spots)-1].Batch > 1<<61 {
			return // no frame can be behind it
		}
		again := NewBook()
		whole, err := b.Whole(&Change{Frames: []Frame{{Spots: []Spot{{1 << 61, 1 << 61}}, Parts: 1, Bytes: 1}}, Busy: b.busy})
		if err == nil {
			err = again.Apply(whole, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a, b := says(b), says(again); !reflect.DeepEqual(a[:len(a)-1], b[:len(b)-1]) {
			t.Fatalf("%v, then %v", a, b)
		}
	})
}
