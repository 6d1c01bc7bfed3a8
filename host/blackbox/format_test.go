package blackbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// sample is a file with something in each part.
func sample() *File {
	entry := func(e Entry) []byte {
		b := appendEntry(nil, &e)
		for i := range e.Pushed {
			b = appendMail(b, abi.KindMessage, abi.Ref(i+1), 300, []byte{0xa0}, []byte("hello"))
		}
		return b
	}
	f := &File{
		Version: "v1", Time: 17, Path: "wasm://s/user/a#1", Type: "cart", Ref: 99, Incarnation: 3, Seed: [16]byte{1, 2}, Prepare: [16]byte{3},
		Fuel: 1000, Memory: 1 << 20, Outbox: 4096, Deadline: 5, Spawned: 2, Exact: 7,
		Image: Image{Name: "shop", Module: [32]byte{9}, Identity: [96]byte{8}, Config: sandbox.ImageConfig{
			Name: "shop", MemoryLimit: 1 << 22, StackLimit: 77, RawNaNs: true, InitDeadline: 12, Env: []string{"A=b", "LONG=0123456789"}}},
		Start:   entry(Entry{Now: 1, First: 0, Pushed: 1, Done: 1}),
		Base:    []byte("snapshot"),
		Failure: abi.Failure{Kind: abi.FailureTrap, Reason: "unreachable", Message: "m", Stack: []string{"f", "g"}, Turn: 9, Fuel: 33},
		Module:  []byte("module"),
	}
	f.entries = append(entry(Entry{Now: 5, First: 7, Pushed: 3, Done: 2, Fuel: 500, Outbox: []byte("out")}),
		entry(Entry{Now: 6, First: 9, Pushed: 1, Done: 1, Hashed: true, Outbox: []byte("12345678")})...)
	b := &Box{log: f.entries, begin: f.Start, follows: true, recorder: &Recorder{cfg: Config{ActorBytes: 1 << 20}}}
	b.recorder.room.Store(1 << 20)
	b.Turn(7, 200, []byte("out"), &mailbox.Envelope{Kind: abi.KindMessage, Sender: 1, Correlation: 300, Headers: []byte{0xa0}, Payload: []byte("hello")})
	f.entries = b.log
	f.failing = entry(Entry{Now: 8, First: 11, Pushed: 2, Done: 0, Failed: true, Ended: true, Cut: &sandbox.Cut{Stage: sandbox.StageGrowth, Phase: 1, At: 4, Kind: abi.FailureKilled, Reason: "r"}})
	return f
}

func TestFilesAreReadAsTheyWereWritten(t *testing.T) {
	want := sample()
	b := want.Append(nil)
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
	if again := got.Append(nil); !bytes.Equal(again, b) {
		t.Error("equal files have other bytes")
	}
	n, mail := 0, 0
	got.Entries(func(e *Entry) bool {
		n++
		e.Mail(func(env *abi.Envelope) bool {
			mail++
			if env.Time != e.Now || string(env.Payload) != "hello" || env.Correlation != 300 {
				t.Errorf("%+v", env)
			}
			return true
		})
		return true
	})
	failing, ok := got.Failing()
	if n != 3 || mail != 5 || !ok || failing.Cut == nil || failing.Cut.At != 4 {
		t.Errorf("%d entries, %d messages, failing %+v", n, mail, failing)
	}
}

// sealed is a body with the right length and sum, as somebody writes it who wants to deceive.
func sealed(body []byte) []byte {
	b := append([]byte(magic), version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// A file with any byte flipped or cut off at any place is refused, with the place.
func TestDamagedFiles(t *testing.T) {
	b := sample().Append(nil)
	refused := func(what string, at int, b []byte) {
		if _, err := Decode(b); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "at byte ") {
			t.Fatalf("%s %d: %v", what, at, err)
		}
	}
	for i := range b {
		for _, flip := range []byte{1, 0x80, 0xff} {
			c := bytes.Clone(b)
			c[i] ^= flip
			refused("flipped", i, c)
		}
		refused("cut", i, b[:i])
	}
	refused("longer", 1, append(bytes.Clone(b), 0))
	body := b[headSize : len(b)-sumSize]
	module := len(body) - len("module") - 2
	for i := range body { // with the sum made right again
		if i != module { // it is a file without a module then
			refused("forged cut", i, sealed(body[:i]))
		}
		for _, flip := range []byte{1, 0x80, 0xff} {
			c := bytes.Clone(body)
			c[i] ^= flip
			if f, err := Decode(sealed(c)); err == nil { // what it says now is another file, but a whole one
				walk(f)
			} else if !errors.Is(err, ErrFile) {
				t.Fatalf("forged %d: %v", i, err)
			}
		}
	}
}

// walk reads all of a file.
func walk(f *File) (n int) {
	look := func(e *Entry) bool {
		e.Mail(func(*abi.Envelope) bool { n++; return true })
		return true
	}
	f.Entries(look)
	if e, ok := f.Failing(); ok {
		look(&e)
	}
	if e, ok := f.Begin(); ok {
		look(&e)
	}
	return n
}

// spent is how many bytes a function allocates.
func spent(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Huge counts in small files take no memory.
func TestForgedCounts(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<62)
	b := sample().Append(nil)
	body := b[headSize : len(b)-sumSize]
	for i := range body {
		c := append(append(bytes.Clone(body[:i]), huge...), body[i:]...)
		file := sealed(c)
		if n := spent(func() { _, _ = Decode(file) }); n > uint64(4*len(file)+slack) {
			t.Fatalf("a number at %d: %d bytes are allocated for a file of %d", i, n, len(file))
		}
	}
	env := sample()
	env.Image.Config.Env = make([]string, 100_000) // a byte each
	file := env.Append(nil)
	if n := spent(func() { _, _ = Decode(file) }); n > uint64(4*len(file)+slack) {
		t.Errorf("%d bytes are allocated for a file of %d", n, len(file))
	}
}

// slack is what reading takes besides the file: its parts, errors, and what other goroutines of the test allocate.
const slack = 32 << 10

func FuzzDecode(f *testing.F) {
	b := sample().Append(nil)
	f.Add(b[headSize : len(b)-sumSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = Decode(body)
		file := sealed(body)
		var x *File
		var err error
		if crc32.ChecksumIEEE(body)%64 != 0 { // to measure takes a hundred times as long
			x, err = Decode(file)
		} else if n := spent(func() { x, err = Decode(file) }); n > uint64(4*len(file)+slack) {
			t.Errorf("%d bytes are allocated for a file of %d", n, len(file))
		}
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Errorf("%v", err)
			}
			return
		}
		walk(x)
		if again, err := Decode(x.Append(nil)); err != nil || !reflect.DeepEqual(again, x) {
			t.Errorf("it is read otherwise when it is written again: %v", err)
		}
	})
}
