package durable

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
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

// checkpoint writes a checkpoint of some actors, to its end or a part of it, and returns its pointer.
func (w *written) checkpoint(whole bool) *pointer {
	begin, err := w.appendAs(noPiece, []byte{version, tagMark})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.r.IntN(2) == 0 {
		w.Work()
	}
	p := newPacker()
	noise := func() []byte {
		b := make([]byte, w.r.IntN([]int{100, 60 << 10, 400 << 10}[w.r.IntN(3)]))
		var seed [32]byte
		seed[0] = byte(w.r.Uint32())
		_, _ = rand.NewChaCha8(seed).Read(b)
		return b
	}
	p.add(&port.PartOf{}, noise())
	for i := range w.r.IntN(8) {
		of := &port.PartOf{Path: fmt.Sprint("wasm://w/user/a", i), Name: fmt.Sprint("a", i), Parent: 1, Turns: 3, Incarnation: 1}
		w.next++
		if of.Ref = w.next; w.r.IntN(3) > 0 {
			of.Sort = dormant.Sort{Type: "t"}.Text()
		}
		p.add(of, noise())
	}
	if !whole {
		for n := range w.r.IntN(4) {
			head := append((&done{mark: begin.at}).encode()[:10], byte(n), 0, 0, 0)
			head[1] = tagPiece
			if _, err := w.appendAs(n, head, []byte{1}); err != nil {
				w.t.Fatal(err)
			}
		}
		return nil
	}
	if !w.busy {
		x, err := w.write(begin, p)
		if err != nil {
			w.t.Fatal(err)
		}
		return x
	}
	return w.slowly(begin, p, func() {
		switch w.r.IntN(6) {
		case 0:
			w.note()
		case 1, 2:
			w.Work()
		}
	})
}

// slowly is write, with something else between any two pieces.
func (w *written) slowly(begin spot, p *packer, between func()) *pointer {
	x, end := &pointer{mark: begin}, &done{mark: begin.at, actors: uint32(p.n - 1)}
	end.frames, end.states = p.end()
	end.bytes, end.sum = uint64(len(p.to)), crc32.Checksum(p.to, castagnoli)
	before := 0
	for _, to := range p.ends {
		for b := range slices.Chunk(p.to[before:to], pieceBytes) {
			if _, err := w.writePiece(x, b); err != nil {
				w.t.Fatal(err)
			}
			between()
			end.pieces++
		}
		before = to
	}
	if err := w.writeEnd(x, end); err != nil {
		w.t.Fatal(err)
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
	read = fmt.Sprintf("%d %d %d %+v\n%+v\n", x.first, x.mark, x.size, x.end, x.gone)
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
	used, skipped, stale := 0, 0, 0
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
						if err := w.log.Trim(p.mark.at); err != nil {
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
	t.Logf("%d pointers used, %d with spans, %d old ones", used, skipped, stale)
	if used == 0 || skipped == 0 || stale == 0 {
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
		begin, err := w.appendAs(noPiece, []byte{version, tagMark})
		if err != nil {
			t.Fatal(err)
		}
		w.Work()
		p, n := newPacker(), 0
		p.add(&port.PartOf{}, make([]byte, frameBytes))
		for w.next = 1; w.next < 3; w.next++ {
			p.add(&port.PartOf{Path: "wasm://w/user/a", Name: fmt.Sprint("a", w.next), Ref: w.next, Parent: 1, Sort: dormant.Sort{Type: "t"}.Text()}, make([]byte, frameBytes))
		}
		pointers[i] = w.slowly(begin, p, func() {
			if n++; n == 2 && i == 1 {
				if err := w.Store.note(&record.Record{Kind: record.Accepted, Actor: 7, Message: &record.Message{Position: 1}}); err != nil {
					t.Fatal(err)
				}
			}
			w.Work()
		})
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
	d := &done{mark: 1024, pieces: 2, bytes: 9, frames: 1, states: 5}
	p := &pointer{mark: spot{1000, 1024}, last: spot{9000, 9001}, end: d.encode(), pieces: []spot{{1000, 1030}, {2000, 2000}}, spans: []wal.Span{{From: 2000, To: 3000}}}
	b := p.encode(key)
	f.Add(b[:len(b)-32])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = sumOf(key, b).Sum(bytes.Clone(b))
		p, err := decodePointer(b, key)
		if err != nil {
			return
		}
		q, err := decodePointer(p.encode(key), key)
		if err != nil || fmt.Sprint(p.mark, p.last, p.pieces, p.spans) != fmt.Sprint(q.mark, q.last, q.pieces, q.spans) {
			t.Errorf("%+v, then %+v: %v", p, q, err)
		}
	})
}
