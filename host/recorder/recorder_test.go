package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

func image(t testing.TB) *sandbox.Image {
	t.Helper()
	engine, err := sandbox.New(context.Background(), sandbox.NewConfig().WithInterpreter(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := engine.Load(context.Background(), code, sandbox.ImageConfig{Name: "puppet"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = image.Close() })
	return image
}

// write records something of every kind on two lanes, and returns the lines that a reader has to see.
func write(r *Recorder, image *sandbox.Image, turns int) {
	a, b := r.NewLane(), r.NewLane()
	mail := func(e mailbox.Envelope) []*mailbox.Envelope { return []*mailbox.Envelope{&e} }
	one := a.Begin(&Incarnation{Path: "wasm://w/user/one", Type: "puppet", Ref: 1<<32 | 7, Turns: 3}, image)
	if one == nil {
		return // it has ended
	}
	a.Run(one, &Run{Now: 1000, Done: 1, Fuel: 5, Outbox: []byte("xx")}, mail(mailbox.Envelope{Kind: abi.KindStart, Payload: []byte("start")}), nil)
	from := a.Origin(one)
	two := b.Begin(&Incarnation{Path: "wasm://w/user/two", Type: "puppet", Ref: 1<<32 | 8}, image)
	b.Run(two, &Run{Now: 2000, Done: 1, Fuel: 5}, mail(mailbox.Envelope{Kind: abi.KindMessage, Sender: 9, Correlation: 300, Payload: []byte("hello"), Headers: []byte("h")}), nil)
	last := b.Origin(two)
	for i := range turns {
		b.Turn(two, 2000+int64(i), 77, []byte("out"), &mailbox.Envelope{Kind: abi.KindMessage, Origin: from + uint64(i%2)})
		last = b.Origin(two)
		a.Turn(one, 1500+int64(i), 77, []byte("out"), &mailbox.Envelope{Kind: abi.KindMessage, Origin: last})
		from = a.Origin(one)
		if i%7 == 0 {
			a, b = b, a // the actors go on on the other worker
		}
	}
	f := &abi.Failure{Kind: abi.FailureTrap, Reason: "unreachable", Fuel: 12}
	a.Run(one, &Run{Now: 9000, Done: 1, Outbox: []byte("o"), Failure: f, Cut: &sandbox.Cut{Kind: abi.FailureKilled, At: 3}}, []*mailbox.Envelope{
		{Kind: abi.KindMessage, Origin: from}, {Kind: abi.KindMessage, Origin: last + 2}, {Kind: abi.KindTimer, Payload: []byte("t")},
	}, nil)
	one.Rewound()
	a.Run(one, &Run{Now: 9001, Done: 1}, mail(mailbox.Envelope{Kind: abi.KindMessage}), nil)
	a.End(one, 9002)
	b.Leave(two, "why not")
	b.Refuse("wasm://w/user/three", "it has directories")
}

func recording(t testing.TB, image *sandbox.Image, turns int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.wrec")
	r, err := Open(Config{Path: path, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	write(r, image, turns)
	r.Ending(9500)
	r.Ending(9600) // the first one counts
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// walk reads all records.
func walk(b []byte, f func(*Record)) (*Recording, error) {
	r, err := Read(b)
	if err != nil {
		return nil, err
	}
	c := r.Cursor()
	for {
		x, err := c.Next()
		if err != nil || x == nil {
			return r, err
		}
		if f != nil {
			f(x)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	b := recording(t, image(t), 50)
	var lines []string
	turns := 0
	last := map[uint64]int64{}
	r, err := walk(b, func(x *Record) {
		if x.Kind != Entry {
			lines = append(lines, fmt.Sprint(x.Kind, " ", x.Life, " ", x.Why, x.Path))
			return
		}
		turns += x.Done
		if x.Now < last[x.Life] {
			t.Errorf("life %d goes back in time", x.Life)
		}
		last[x.Life] = x.Now
		x.Mail(func(m *Message) bool {
			if !m.Sent && x.Done == 1 && !x.Failed {
				lines = append(lines, fmt.Sprintf("%d %s %s %d %d", m.Envelope.Kind, m.Envelope.Payload, m.Envelope.Headers, m.Envelope.Sender, m.Envelope.Correlation))
			}
			return true
		})
		if x.Failed {
			lines = append(lines, fmt.Sprint(x.Failure.Reason, x.Failure.Fuel, x.Pushed, x.Done, x.Cut.At))
		}
		if x.Rewound {
			lines = append(lines, "rewound")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Missing != nil || r.Host != "v1" || r.Ending != 9500 || len(r.Images) != 1 || r.Images[0].Name != "puppet" || turns != 104 {
		t.Errorf("%v, host %q, %d images, %d turns", r.Missing, r.Host, len(r.Images), turns)
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{"1 0 ", "1 1 ", "start", "hello h 9 300", "unreachable12 3 1 3", "rewound", "4 0 ", "5 1 why not", "6 0 it has directorieswasm://w/user/three"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A message of another recorded guest takes at most 12 bytes, one from outside its payload and 24.
func TestBytesOfAMessage(t *testing.T) {
	i := image(t)
	less, more := len(recording(t, i, 1000)), len(recording(t, i, 11000))
	if per := float64(more-less) / 20000; per > 12 {
		t.Errorf("%.1f bytes a message", per)
	} else {
		t.Logf("%.1f bytes a message", per)
	}
	path := filepath.Join(t.TempDir(), "x")
	r, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l := r.NewLane()
	track := l.Begin(&Incarnation{Path: "p"}, i)
	before := l.at
	for n := range 100 {
		l.Run(track, &Run{Now: int64(n) * 5000, Done: 1, Fuel: 1}, []*mailbox.Envelope{{Kind: abi.KindMessage, Sender: 1 << 60, Payload: make([]byte, 32)}}, nil)
	}
	if per := float64(l.at-before)/100 - 32; per > 24 {
		t.Errorf("%.1f bytes and the payload", per)
	} else {
		t.Logf("%.1f bytes and the payload", per)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// Each cut and each flipped byte is told with its offset. What is before a cut can be read.
func TestDamage(t *testing.T) {
	b := recording(t, image(t), 20)
	whole, _ := walk(b, nil)
	for n := range b {
		r, err := walk(b[:n:n], nil)
		switch {
		case err != nil && errors.Is(err, ErrFile) && strings.Contains(err.Error(), "at byte "):
		case err == nil && r.Missing != nil && errors.Is(r.Missing, ErrFile) && r.Cut > 0 && r.Cut <= n:
		default:
			t.Fatalf("cut at %d of %d: %v", n, len(b), err)
		}
	}
	for n := range b {
		bad := append([]byte(nil), b...)
		bad[n] ^= 1 << (n % 8)
		r, err := walk(bad, nil)
		if err == nil && r.Missing == nil {
			t.Fatalf("byte %d of %d is flipped, and nobody notices", n, len(b))
		}
		if err == nil { // a length beyond the end looks like a cut
			err = r.Missing
		}
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "at byte ") {
			t.Fatalf("byte %d: %v", n, err)
		}
	}
	other := append([]byte(nil), b...)
	other[4] = 99
	if _, err := Read(other); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("another version: %v", err)
	}
	_ = whole
}

// forged is a file with the given records on one lane, and right checksums.
func forged(t testing.TB, image *sandbox.Image, lane uint32, records []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	r, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l := r.NewLane()
	l.Begin(&Incarnation{Path: "p", Type: "puppet"}, image)
	r.writing.Lock()
	g := r.now.Load()
	if err := errors.Join(r.write(g), r.block(g, blockLane, lane, records)); err != nil {
		t.Fatal(err)
	}
	g.seen[lane] += uint64(len(records))
	if lane == 1 {
		g.lanes = 2
	}
	r.writing.Unlock()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Forged counts are refused, and take no memory.
func TestForged(t *testing.T) {
	i := image(t)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	many := func(b []byte, n int) (all []byte) {
		for range n {
			all = append(all, b...)
		}
		return all
	}
	for name, c := range map[string]struct {
		lane    uint32
		records []byte
		want    string
	}{
		"messages":    {0, append(append([]byte{byte(Entry), 0, 0, 2}, huge...), 1), "messages"},
		"text":        {0, append([]byte{byte(Left), 0}, huge...), "cut off"},
		"life":        {0, []byte{byte(End), 99, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "not begun"},
		"later":       {0, []byte{byte(turn) | tagFirst, 0, 2, 5, 8, 1, 2, 3}, "not there"},
		"itself":      {0, []byte{byte(turn) | tagOwn | tagFirst, 0, 2, 0, 1, 2, 3}, "0 records before"},
		"far back":    {0, []byte{byte(turn) | tagOwn | tagFirst, 0, 2, 9, 1, 2, 3}, "9 records before"},
		"image":       {0, []byte{byte(Life), 5, 77}, "image 77"},
		"again":       {0, []byte{byte(Left), 0, 0, byte(Left), 0, 0}, "is over"},
		"tag":         {0, []byte{0xff}, "tag 0xff"},
		"lanes":       {1 << 31, []byte{byte(None), 0, 0}, "lane 2147483648"},
		"never comes": {1, append([]byte{byte(End) | tagMoved, 0, 50}, make([]byte, 9)...), "not there"},
		"many":        {0, many([]byte{byte(None), 0, 0}, 100_000), ""},
		"entries":     {0, many(append([]byte{byte(Entry), 0, 0, 0, 60, 60, 1, 2, 3}, many([]byte{mailOwn, 1, 0}, 60)...), 1000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := forged(t, i, c.lane, c.records)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := walk(b, nil)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > uint64(4*len(b)+1<<20) {
				t.Errorf("reading %d bytes allocates %d", len(b), n)
			}
			if err == nil && r != nil && c.want == "" || err != nil && errors.Is(err, ErrFile) && c.want != "" && strings.Contains(err.Error(), c.want) {
				return
			}
			t.Errorf("%v, instead of %q", err, c.want)
		})
	}
}

func FuzzRead(f *testing.F) {
	i := image(f)
	f.Add(recording(f, i, 3))
	f.Add(recording(f, i, 100)[:1500])
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		r, err := walk(b, func(x *Record) {
			n++
			if x.Kind == Entry {
				x.Mail(func(*Message) bool { return true })
			}
		})
		if err != nil && !errors.Is(err, ErrFile) {
			t.Fatalf("%v", err)
		}
		if err == nil && uint64(n) > r.Bytes() {
			t.Fatalf("%d records in %d bytes", n, r.Bytes())
		}
	})
}

// FuzzRecords takes the bytes for records, in blocks with right checksums.
func FuzzRecords(f *testing.F) {
	i := image(f)
	whole, err := Read(recording(f, i, 5))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole.lanes[0].parts[0].b, whole.lanes[1].parts[0].b)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := &Recording{Images: whole.Images, lanes: []lane{{parts: []part{{0, a}}}, {parts: []part{{len(a), b}}}}}
		c := r.Cursor()
		for {
			x, err := c.Next()
			if err != nil && !errors.Is(err, ErrFile) {
				t.Fatalf("%v", err)
			}
			if err != nil || x == nil {
				return
			}
			if x.Kind == Entry {
				x.Mail(func(*Message) bool { return true })
			}
		}
	})
}

// full is a disk with room for some bytes. With brief there is room again after the first write that fails.
type full struct {
	*os.File
	left  int
	brief bool
}

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		n, _ := f.File.Write(b[:max(0, len(b)+f.left)])
		if f.brief {
			f.left = 1 << 30
		}
		return n, errors.New("no space left on device")
	}
	return f.File.Write(b)
}

// A full disk ends the recording: the workers go on, and what is in the file can be read. So it is if others make room at once.
func TestFullDisk(t *testing.T) {
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprint(brief), func(t *testing.T) { fullDisk(t, brief) })
	}
}

func fullDisk(t *testing.T, brief bool) {
	path := filepath.Join(t.TempDir(), "x")
	told := make(chan error, 1)
	r, err := Open(Config{Path: path, Ended: func(err error) { told <- err }, create: func(path string) (file, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return &full{f, 100_000, brief}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	i := image(t)
	write(r, i, 10)
	r.Flush()
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	for range 10 {
		write(r, i, 3000)
	}
	r.Flush()
	if err := <-told; err == nil || !strings.Contains(err.Error(), "no space") || r.Err() == nil {
		t.Errorf("%v, %v", err, r.Err())
	}
	write(r, i, 100) // nothing happens
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	x, err := walk(b, func(*Record) { n++ })
	if err != nil || n < 30 || len(b) > 100_000 {
		t.Errorf("%d records in %d bytes: %v", n, len(b), err)
	} else if x.Missing == nil {
		t.Error("the file does not say that it is cut")
	}
}

// stuck is a disk that takes nothing until go is closed.
type stuck struct {
	*os.File
	begins int
	goes   chan struct{}
}

func (f *stuck) Write(b []byte) (int, error) {
	if f.begins++; f.begins > 1 { // behind the head
		<-f.goes
	}
	return f.File.Write(b)
}

// A disk that hangs ends the recording, and takes no more memory than it may: the workers go on, and what is in the file can
// be read.
func TestStuckDisk(t *testing.T) {
	path, goes := filepath.Join(t.TempDir(), "x"), make(chan struct{})
	r, err := Open(Config{Path: path, create: func(path string) (file, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return &stuck{File: f, goes: goes}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	i := image(t)
	a, b := r.NewLane(), r.NewLane()
	one, two := a.Begin(&Incarnation{Path: "one"}, i), b.Begin(&Incarnation{Path: "two"}, i)
	payload := make([]byte, 1<<20)
	for n := range 200 {
		a.Run(one, &Run{Now: int64(n), Done: 1}, []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: payload}}, nil)
		b.Turn(two, int64(n), 1, nil, &mailbox.Envelope{Kind: abi.KindMessage, Origin: a.Origin(one)})
	}
	if n := r.waiting.Load(); n > mostWaiting+4<<20 {
		t.Errorf("%d MiB wait", n>>20)
	}
	if r.Err() == nil {
		t.Error("it is recorded still")
	}
	close(goes)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	x, err := walk(file, func(*Record) { n++ })
	if err != nil || n == 0 {
		t.Errorf("%d records in %d bytes: %v", n, len(file), err)
	} else if x.Missing == nil {
		t.Error("the file does not say that it is cut")
	}
}

// When a further file has begun, both can be read. An entry that is written to neither of them is the origin of nothing: others
// may have written to the lane before it.
func TestFurtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r, err := Open(Config{Path: path, Bytes: MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	i := image(t)
	l, other := r.NewLane(), r.NewLane()
	one, two := l.Begin(&Incarnation{Path: "one"}, i), other.Begin(&Incarnation{Path: "two"}, i)
	mail := []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: make([]byte, 10_000)}}
	for n := range 60 {
		l.Run(one, &Run{Now: int64(n), Done: 1}, mail, nil)
		other.Turn(two, int64(n), 1, nil, &mailbox.Envelope{Kind: abi.KindMessage, Origin: l.Origin(one)})
	}
	before := l.Origin(one)
	r.Flush()
	for _, x := range []struct {
		t *Track
		l *Lane
	}{{one, l}, {two, other}} {
		if !x.l.Run(x.t, &Run{Done: 1}, mail, nil) {
			t.Fatal("there is no further file")
		}
		x.l.Resume(x.t, &Incarnation{Path: "again", Snapshot: []byte("state")}, i)
	}
	third := l.Begin(&Incarnation{Path: "third"}, i)
	l.Run(third, &Run{Done: 1}, mail, nil)
	for g, n := r.now.Load(), 0; g == r.now.Load() && n < 100; n++ { // and one more
		l.Run(third, &Run{Done: 1}, mail, nil)
		r.Flush()
	}
	if !l.Run(third, &Run{Done: 1}, mail, nil) {
		t.Fatal("there is no third file")
	}
	l.Resume(third, &Incarnation{Path: "third", Snapshot: []byte("state")}, i)
	l.Run(third, &Run{Done: 1}, mail, nil)
	if l.Run(one, &Run{Done: 1, Failure: &abi.Failure{Kind: abi.FailureTrap}}, mail, nil) {
		t.Error("the state after a failure is to be written")
	}
	if o := l.Origin(one); o != 0 {
		t.Errorf("what it has sent is taken for what %#x has sent", o)
	}
	l.Turn(third, 1, 1, nil, &mailbox.Envelope{Kind: abi.KindMessage, Origin: before}) // it has waited since the first file
	l.Resume(two, &Incarnation{Path: "two", Snapshot: make([]byte, mostSnapshot+1)}, i)
	l.Resume(one, &Incarnation{Path: "one", Snapshot: make([]byte, MinBytes/4)}, i)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	refused := ""
	for _, name := range []string{path, path + Old} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		x, err := walk(b, func(x *Record) {
			n++
			if x.Kind == None {
				refused += x.Path + " " + x.Why + "\n"
			}
		})
		if err != nil || x.Missing != nil || n < 3 {
			t.Errorf("%s: %d records, %v, %v", name, n, err, x)
		}
	}
	for _, want := range []string{"two its state of 16777217 bytes is too large", "one the states of other guests have half"} {
		if !strings.Contains(refused, want) {
			t.Errorf("%q instead of %q", refused, want)
		}
	}
}

// Files that begin after the system has begun to stop its actors say so, too: with the time of the first call.
func TestFurtherFilesKnowTheEnding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r, err := Open(Config{Path: path, Bytes: MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	i := image(t)
	l := r.NewLane()
	one := l.Begin(&Incarnation{Path: "one"}, i)
	mail := []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: make([]byte, 20_000)}}
	further := func() {
		t.Helper()
		for before := r.now.Load(); r.now.Load() == before; r.Flush() {
			if l.Run(one, &Run{Done: 1}, mail, nil) {
				l.Resume(one, &Incarnation{Path: "one", Snapshot: []byte("state")}, i)
			}
		}
	}
	ending := func(path string) int64 {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := walk(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return x.Ending
	}
	further()
	r.Flush()
	if n := ending(path + Old); n != 0 {
		t.Errorf("%d in a file that was over before", n)
	}
	r.Ending(9500)
	for n := range 3 {
		further()
		r.Ending(9600 + int64(n))
		r.Flush()
		if was, is := ending(path+Old), ending(path); was != 9500 || is != 9500 {
			t.Errorf("further file %d: %d in it, %d in the one before", n+1, is, was)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if was, is := ending(path+Old), ending(path); was != 9500 || is != 9500 {
		t.Errorf("at the end: %d, %d in the file before", is, was)
	}
}

// A second recording replaces nothing.
func TestFilesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for _, there := range []string{path, path + Old} {
		if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Config{Path: path}); err == nil {
			t.Errorf("%s was replaced", there)
		}
		if err := os.Remove(there); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(Config{Path: path, Bytes: 5}); err == nil {
		t.Error("a recording of 5 bytes")
	}
}

// Both files together never have more than their bound and a record, however much is written.
func TestBoundOfTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r, err := Open(Config{Path: path, Bytes: MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	i := image(t)
	l := r.NewLane()
	track := l.Begin(&Incarnation{Path: "one"}, i)
	const size = 20_000
	mail := []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: make([]byte, size)}}
	for range 500 {
		if l.Run(track, &Run{Done: 1}, mail, nil) {
			l.Resume(track, &Incarnation{Path: "one", Snapshot: []byte("state")}, i)
		}
		r.Flush()
		sum := int64(0)
		for _, name := range []string{path, path + Old} {
			info, err := os.Stat(name)
			if err != nil && name == path {
				t.Fatal(err)
			}
			if err == nil {
				if sum += info.Size(); info.Mode().Perm() != 0o600 {
					t.Fatalf("%s has mode %v", name, info.Mode())
				}
			}
		}
		if sum > MinBytes+2*(size+200) {
			t.Fatalf("the files have %d bytes", sum)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := r.now.Load(); n != nil {
		t.Error("it goes on")
	}
}
