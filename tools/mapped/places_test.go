package mapped

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
	"pgregory.net/rapid"
)

// sample is a struct that is read and written by its table: texts differ by a number.
func sample(n int) *mapped.Usual {
	return &mapped.Usual{
		U8: 200, U16: 60_000, U32: 1 << 31, U64: 1 << 63, I8: -128, I16: -32_768, I32: -1 << 31, I64: -1 << 63, Word: -n, Yes: true, Price: 2.5,
		Text: mapped.Name(fmt.Sprintf("the name %06d", n)), Blob: fmt.Appendf(nil, "blob %06d", n), Tags: []string{"", fmt.Sprintf("tag %06d", n)}, More: []string{},
	}
}

// roomy is the encoding of a value, with bytes behind it as they are behind a guest's inbox.
func roomy(v generated) []byte {
	data := encode(v)
	return append(data, make([]byte, 16)...)[:len(data)]
}

// In WebAssembly tables are used, so that the tests of generated code are tests of the assembly there; elsewhere they
// are not.
func TestPlacesAreUsed(t *testing.T) {
	wasm := runtime.GOARCH == "wasm"
	for _, v := range []*mapped.Usual{sample(1), {}} {
		var got mapped.Usual
		r := abi.NewReader(roomy(v))
		if read := got.ReadByTable(r); read != wasm || read && (!bytes.Equal(encode(&got), encode(v)) || r.Done() != nil) {
			t.Errorf("read: %v, %+v, %v", read, got, r.Err())
		}
		w := abi.NewWriter(make([]byte, 0, 1024))
		if ok := v.WriteByTable(w); ok != wasm || ok && !bytes.Equal(w.Bytes(), encode(v)) {
			t.Errorf("written: %v, %x", ok, w.Bytes())
		}
	}
}

// Whatever room there is behind what a writer has, the same is written.
func TestPlacesWriteTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &mapped.Usual{}
		fill(t, reflect.ValueOf(v).Elem(), 5)
		if rapid.Bool().Draw(t, "long") {
			v.Text = mapped.Name(strings.Repeat("long", rapid.IntRange(0, 40_000).Draw(t, "length")))
		}
		want := encode(v)
		before := rapid.IntRange(0, 9).Draw(t, "before")
		for _, room := range []int{0, 7, len(want), len(want) + before, len(want) + before + rapid.IntRange(0, 40).Draw(t, "room"), 2*len(want) + 64} {
			buf := bytes.Repeat([]byte{0xaa}, room+32)
			w := abi.NewWriter(append(buf[:0:room], "123456789"[:min(before, room)]...))
			v.MarshalCBOR(w)
			if got := w.Bytes(); string(got) != "123456789"[:min(before, room)]+string(want) {
				t.Fatalf("with room for %d: %x\nwant %x", room, got, want)
			}
			if !bytes.Equal(buf[room:], bytes.Repeat([]byte{0xaa}, 32)) {
				t.Fatalf("with room for %d something was written behind it: %x", room, buf[room:])
			}
		}
	})
}

// held is the struct that is read while the collector marks.
var held *mapped.Usual

// collect starts the collector, and returns when it marks and has looked at next to nothing. The channel says when it has ended.
func collect(t *testing.T) (ended chan struct{}) {
	if runtime.GOARCH != "wasm" {
		t.Skip("structs are not read by a table here")
	}
	for {
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			runtime.GC()
		}()
		for over := false; !over; {
			if marking() {
				return ended
			}
			runtime.Gosched()
			select {
			case <-ended: // it has marked all before anything else could run
				over = true
			default:
			}
		}
	}
}

// The collector must hear of a pointer that is written: of a stack that it has not looked at, it may not find the pointer
// there any more, and in a struct that is new it looks for none. What it does not hear of it frees, and fills with rubbish.
func TestPlacesTellWhatIsWritten(t *testing.T) {
	for n := range 30 {
		ended := readIntoNew(t, n)
		<-ended
		check(t, n, held.Text, held.Tags[1], held.Blob)
	}
}

// readIntoNew reads a struct with a reader that nobody else has. What it copies to was made before the collector began.
//
//go:noinline
func readIntoNew(t *testing.T, n int) (ended chan struct{}) {
	r, data := reader(sample(n))
	ended = collect(t)
	held = new(mapped.Usual)
	r.Reset(data)
	held.UnmarshalCBOR(r)
	return ended
}

// The collector must hear of a pointer that is written over: a stack may have it that has been looked at, as that of a
// new goroutine is from its beginning.
func TestPlacesTellWhatIsWrittenOver(t *testing.T) {
	for n := range 30 {
		checked := make(chan struct{})
		readOver(t, n, checked)
		<-checked
		check(t, n+1, held.Text, held.Tags[1], held.Blob)
	}
}

//go:noinline
func readOver(t *testing.T, n int, checked chan struct{}) {
	held = new(mapped.Usual)
	r, data := reader(sample(n))
	r.Reset(data)
	held.UnmarshalCBOR(r)
	r, data = reader(sample(n + 1))
	ended := collect(t)
	go func() {
		defer close(checked)
		name, tag, blob := held.Text, held.Tags[1], held.Blob
		r.Reset(data)
		held.UnmarshalCBOR(r)
		<-ended
		check(t, n, name, tag, blob)
	}()
}

// reader has read the struct before, and has room for another one.
//
//go:noinline
func reader(m *mapped.Usual) (r *abi.Reader, data []byte) {
	r, data = new(abi.Reader), roomy(m)
	for range 2 { // the second time it makes more room than it needs
		r.Reset(data)
		new(mapped.Usual).UnmarshalCBOR(r)
	}
	r.Reset(nil)
	return r, data
}

func check(t *testing.T, n int, text mapped.Name, tag string, blob []byte) {
	t.Helper()
	want := sample(n)
	if text != want.Text || tag != want.Tags[1] || !bytes.Equal(blob, want.Blob) {
		t.Errorf("%d is %q, %q, %q", n, text, tag, blob)
	}
}
