package durable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// written is a store without a system, to which a test writes.
type written struct {
	*Store
	t    rapid.TB
	fs   *crashfs.FS
	r    *rand.Rand
	busy bool // others write while the disk does
	next abi.Ref

	differences int // checkpoints whose index is a difference
	moved       int // parts that were as they are
}

func openWritten(t rapid.TB, fs *crashfs.FS, seed uint64, key []byte, late bool) *written {
	t.Helper()
	var salt [32]byte
	salt[0], salt[1] = byte(seed), byte(seed>>8)
	s, err := Open(Options{Dir: "store", FS: fs, Lazy: late, Key: key, Sim: &Sim{Rand: rand.NewChaCha8(salt), Segment: 1 << 20, Secret: host.Secret{5}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &written{Store: s, t: t, fs: fs, r: rand.New(rand.NewPCG(seed, 1)), next: abi.Ref(seed << 32)}
	fs.Fail(func(_ int, what string) error {
		if w.busy && (what == "write" || what == "sync") {
			w.note()
		}
		return nil
	})
	return w
}

// note writes some records, or none.
func (w *written) note() {
	for range w.r.IntN(4) {
		x := randomRecord(w.r)
		for x.Entry != nil {
			x = randomRecord(w.r)
		}
		if err := w.Store.note(x); err != nil {
			w.t.Fatal(err)
		}
	}
}

// making begins a checkpoint with a head.
func (w *written) making(head []byte) *making {
	w.t.Helper()
	c := &making{store: w.Store, packer: newPacker()}
	var err error
	if c.begin, c.touched, err = w.appendMark(); err != nil {
		w.t.Fatal(err)
	}
	if c.touched == nil {
		c.touched = map[abi.Ref]uint64{}
	}
	c.packer.add(&port.PartOf{Busy: w.r.IntN(8) == 0}, head)
	return c
}

// actor is what a part of an actor is about.
func (w *written) actor(ref abi.Ref) *port.PartOf {
	of := &port.PartOf{Path: fmt.Sprint("wasm://w/user/a", uint64(ref)), Name: fmt.Sprint("a", uint64(ref)), Ref: ref, Parent: 1, Turns: w.r.Uint64N(1 << 40), Incarnation: 1}
	if w.r.IntN(3) > 0 {
		of.Sort = dormant.Sort{Type: fmt.Sprint("t", w.r.IntN(3))}.Text()
	}
	return of
}

// checkpoint writes a checkpoint in which some actors have changed, begun or gone, to its end or a part of it, and returns its pointer.
func (w *written) checkpoint(whole bool) *pointer {
	noise := func() []byte {
		b := make([]byte, w.r.IntN([]int{100, 60 << 10, 400 << 10}[w.r.IntN(3)]))
		var seed [32]byte
		seed[0] = byte(w.r.Uint32())
		_, _ = rand.NewChaCha8(seed).Read(b)
		return b
	}
	w.space = []space{usualSpace, {}, {slack: 1 << 20}, {slack: 8 << 20}}[w.r.IntN(4)]
	c := w.making(noise())
	if w.r.IntN(2) == 0 {
		w.Work()
	}
	for _, e := range w.book.Entries() {
		switch w.r.IntN(8) {
		case 0:
			c.touched[e.Ref] = 0
		case 1, 2:
			c.packer.add(w.actor(e.Ref), noise())
			c.actors++
		default:
			delete(c.touched, e.Ref) // random records are about anybody
			c.actors++
		}
	}
	for range w.r.IntN(8) {
		w.next++
		c.packer.add(w.actor(w.next), noise())
		c.actors++
	}
	if !whole {
		for n := range w.r.IntN(4) {
			head := append((&done{mark: c.begin.at}).encode()[:10], byte(n), 0, 0, 0)
			head[1] = tagPiece
			if _, err := w.appendAs(n, head, []byte{1}); err != nil {
				w.t.Fatal(err)
			}
		}
		return nil
	}
	if w.busy {
		c.between = func() {
			switch w.r.IntN(6) {
			case 0:
				w.note()
			case 1, 2:
				w.Work()
			}
		}
	}
	return w.finish(c)
}

// finish writes a checkpoint to its end, and goes on from it.
func (w *written) finish(c *making) *pointer {
	w.t.Helper()
	if err := c.fill(); err != nil {
		w.t.Fatal(err)
	}
	x, err := w.write(c)
	if err == nil {
		err = w.turnTo(c, x.last)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if x.ended.before != (spot{}) {
		w.differences++
	}
	w.moved += c.moved
	low, frames := x.ended.low, 0
	w.book.Frames(func(_ uint32, f *dormant.Frame, _ int) bool {
		if frames++; wal.Position(f.Spots[0].Batch) < low {
			w.t.Fatalf("a frame at position %d is needed, and the log from %d on", f.Spots[0].Batch, low)
		}
		return true
	})
	if frames == 0 || w.chain.begins < low || x.mark.batch < low {
		w.t.Fatalf("the log is needed from %d on: %d frames, index %d, mark %d", low, frames, w.chain.begins, x.mark.batch)
	}
	return x
}

// readAs is what a start reads of a disk. pointed says that it has used the pointer.
func readAs(t rapid.TB, fs *crashfs.FS, key []byte, late bool) (read string, pointed bool) {
	t.Helper()
	w := openWritten(t, fs.Copy(), 999, key, late)
	defer func() { _ = w.Close() }()
	_, err := w.pointer()
	pointed = err == nil
	x := &Starting{store: w.Store}
	if err := x.read(); err != nil {
		return "refused: " + err.Error(), pointed
	}
	read = fmt.Sprintf("%d %d %d %d %+v\n%+v\n", x.first, x.mark, x.low, x.size, w.chain, x.gone)
	for _, r := range x.left {
		c := &shared{}
		c.begin()
		b, _ := appendRecord(c, nil, &r)
		read += fmt.Sprintf("%x\n", b)
	}
	for _, b := range x.parts {
		read += fmt.Sprintf("part %x\n", sumOf(nil, b).Sum(nil))
	}
	for _, r := range x.away.Rows() {
		part, err := x.away.Load(r.N)
		read += fmt.Sprintf("%+v %x %v\n", r.Ref, sumOf(nil, part).Sum(nil), err)
	}
	return read, pointed
}

// A start with a pointer reads the same as one that looks for the last checkpoint, whatever is written while checkpoints are, wherever the
// process has died, and whatever has become of the pointer.
func TestPointersLeadToTheSame(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine steps the system, and takes a minute")
	}
	thorough.Checks(t, 20)
	used, skipped, stale, differences, moved := 0, 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var key []byte
		if rapid.IntRange(0, 3).Draw(rt, "sealed") == 0 {
			key = bytes.Repeat([]byte{7}, 32)
		}
		late := rapid.Bool().Draw(rt, "late")
		fs := crashfs.New()
		seed := rapid.Uint64Range(1, 900).Draw(rt, "seed")
		var old [][]byte // pointers
		for life := range rapid.IntRange(1, 3).Draw(rt, "lives") {
			w := openWritten(rt, fs, seed+uint64(life), key, late)
			if err := (&Starting{store: w.Store}).read(); err != nil {
				rt.Fatal(err)
			}
			for _, do := range rapid.SliceOfN(rapid.SampledFrom([]string{"note", "work", "checkpoint", "busy", "unpointed", "given up"}), 1, 8).Draw(rt, "steps") {
				switch do {
				case "note":
					w.note()
				case "work":
					w.Work()
				case "given up":
					w.checkpoint(false)
				default:
					w.busy = do != "checkpoint"
					p := w.checkpoint(true)
					if w.busy = false; do == "unpointed" {
						break
					}
					if w.point(p); len(p.spans) > 0 {
						skipped++
					}
					old = append(old, w.fs.Bytes(pointerName))
					if w.r.IntN(2) == 0 {
						if err := w.log.Trim(p.ended.low); err != nil {
							rt.Fatal(err)
						}
					}
				}
			}
			fs = fs.After(fs.Done(), rand.New(rand.NewPCG(seed, 2)))
			if len(old) > 0 { // it is not synced
				fs.Put(pointerName, old[len(old)-1])
			}
			_ = w.Close()
			differences, moved = differences+w.differences, moved+w.moved
		}
		without := fs.Copy()
		if len(old) > 0 {
			_ = without.Remove(pointerName)
		}
		want, _ := readAs(rt, without, key, late)
		if want[:7] == "refused" {
			rt.Fatal(want)
		}
		check := func(what string, pointer []byte) {
			x := fs.Copy()
			x.Put(pointerName, pointer)
			got, pointed := readAs(rt, x, key, late)
			if got != want {
				rt.Fatalf("%s, late %v: with the pointer\n%.2000s\nwithout it\n%.2000s", what, late, got, want)
			}
			if what == "flipped" && pointed {
				rt.Fatal("a pointer that has changed is used")
			}
			if pointed {
				used++
			}
		}
		for i, b := range old {
			if check("as it was", b); i+1 < len(old) {
				stale++
			}
			b = bytes.Clone(b)
			bit := rapid.IntRange(0, 8*len(b)-1).Draw(rt, "bit")
			b[bit/8] ^= 1 << (bit % 8)
			check("flipped", b)
			check("cut", old[i][:rapid.IntRange(0, len(b)-1).Draw(rt, "cut")])
		}
	})
	t.Logf("%d pointers used, %d with spans, %d old ones; %d differences, %d parts moved", used, skipped, stale, differences, moved)
	if used == 0 || skipped == 0 || stale == 0 || differences == 0 || moved == 0 && thorough.Slow {
		t.Error("too little has happened")
	}
}

// The pointer of a copy that has gone another way is not used, whatever the two have in common: here the same checkpoint is at the same
// place, and beside one of its pieces only one of them has a record.
func TestPointersOfOtherCopies(t *testing.T) {
	fs := crashfs.New()
	w := openWritten(t, fs, 1, nil, true)
	w.note()
	w.point(w.checkpoint(true))
	_ = w.Close()
	var pointers [2]*pointer
	var disks [2]*crashfs.FS
	for i := range disks {
		disks[i] = fs.Copy()
		w := openWritten(t, disks[i], uint64(10+i), nil, true)
		if err := (&Starting{store: w.Store}).read(); err != nil {
			t.Fatal(err)
		}
		w.r = rand.New(rand.NewPCG(1, 1))
		c, n := w.making(make([]byte, frameBytes)), 0
		w.Work()
		for _, e := range w.book.Entries() {
			delete(c.touched, e.Ref)
		}
		c.actors = w.book.Len()
		for w.next = 1001; w.next < 1003; w.next++ {
			c.packer.add(w.actor(w.next), make([]byte, frameBytes))
			c.actors++
		}
		c.between = func() {
			if n++; n == 2 && i == 1 {
				if err := w.Store.note(&record.Record{Kind: record.Accepted, Actor: 7, Message: &record.Message{Position: 1}}); err != nil {
					t.Fatal(err)
				}
			}
			w.Work()
		}
		pointers[i] = w.finish(c)
		w.point(pointers[i])
		_ = w.Close()
	}
	a, b := pointers[0], pointers[1]
	if a.last != b.last || !bytes.Equal(a.end, b.end) || slices.Equal(a.spans, b.spans) {
		t.Fatalf("the copies have too little in common, or too much: %+v, %+v", a, b)
	}
	for i := range disks {
		if _, pointed := readAs(t, disks[i], nil, true); !pointed {
			t.Errorf("copy %d does not use its own", i)
		}
		own := disks[i].Copy()
		_ = own.Remove(pointerName)
		want, _ := readAs(t, own, nil, true)
		own.Put(pointerName, disks[1-i].Bytes(pointerName))
		if got, pointed := readAs(t, own, nil, true); pointed || got != want {
			t.Errorf("copy %d uses that of the other one: %v", i, pointed)
		}
	}
}

// Bytes that somebody has made are no pointer, or one that is well formed.
func FuzzPointer(f *testing.F) {
	key := []byte("key")
	d := &ended{mark: 1024, low: 512, actors: 1, bytes: 9, size: 5, before: spot{600, 601}, index: []spot{{1000, 1030}, {2000, 2000}}}
	p := &pointer{mark: spot{1000, 1024}, last: spot{9000, 9001}, end: d.encode(), spans: []wal.Span{{From: 2000, To: 3000}}}
	b := p.encode(key)
	f.Add(b[:len(b)-32])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = sumOf(key, b).Sum(bytes.Clone(b))
		p, err := decodePointer(b, key)
		if err != nil {
			return
		}
		q, err := decodePointer(p.encode(key), key)
		if err != nil || fmt.Sprint(p.mark, p.last, p.ended, p.spans) != fmt.Sprint(q.mark, q.last, q.ended, q.spans) {
			t.Errorf("%+v, then %+v: %v", p, q, err)
		}
	})
}
