package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// shelf is the code of other nodes that a node has taken.
type shelf struct {
	mu     sync.Mutex
	on     *life
	have   map[string]bool
	loads  int
	pins   int
	events []string
	bad    error // what the check says
}

const mostOfShelf = 3 << 20

func (h *shelf) May(_, typ string) (as string, most int64, err error) {
	if typ != "worker" {
		return "", 0, fmt.Errorf("%w: no code of others for this type", host.ErrDenied)
	}
	return "m", mostOfShelf, nil
}

func (h *shelf) Load(_ context.Context, _ uint16, digest []byte, as string, code []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loads++
	if sum := sha256.Sum256(code); as != "m" || !bytes.Equal(sum[:], digest) {
		return errors.New("code with another hash has come to the check")
	}
	if h.bad == nil {
		h.have[string(digest)] = true
	}
	return h.bad
}

func (h *shelf) Pin([]byte, string, string) (func(), error) {
	h.pins++
	return func() { h.pins-- }, nil
}

func (h *shelf) find(digest []byte, module, typ string) (host.Props, []string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(digest) > 0 && !h.have[string(digest)] {
		return host.Props{}, nil, fmt.Errorf("%w: %w", host.ErrDenied, ErrLacks)
	}
	return h.on.find(digest, module, typ)
}

// shelves are two nodes, of which the second one takes code.
func shelves(t *testing.T) (s *sim, front *life, h *shelf) {
	t.Helper()
	h = &shelf{have: map[string]bool{}}
	s, front, back := two(t, func(a *Accept) {
		a.Code, a.Find = h, h.find
		a.Refused = func(node uint16, why string) { h.events = append(h.events, fmt.Sprintf("%d: %s", node, why)) }
	})
	h.on = back
	return s, front, h
}

// until passes time slowly: other goroutines read and check code meanwhile.
func (s *sim) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if s.pass(2 * time.Millisecond); time.Now().After(end) || s.failure != "" {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// spawnCode has a parent spawn a child with code.
func (s *sim) spawnCode(t *testing.T, by *life, code []byte, read func(context.Context) ([]byte, error)) *spawn {
	t.Helper()
	s.count++
	x := &spawn{by: by}
	id := s.count
	s.spawns[id] = x
	sum := sha256.Sum256(code)
	if _, err := by.system.Spawn(fmt.Sprint("p", id), host.Native(func() host.Actor {
		return &codeParent{t: t, x: x, id: id, digest: sum[:], read: read, node: by}
	})); err != nil {
		t.Fatal(err)
	}
	return x
}

type codeParent struct {
	t      *testing.T
	x      *spawn
	id     int
	digest []byte
	read   func(context.Context) ([]byte, error)
	node   *life
}

func (c *codeParent) Started(ctx *host.Context) error {
	args, err := host.Encode(c.id)
	if err != nil {
		return err
	}
	p, err := Props(c.node.node, Place{Role: "back"}, Child{Digest: c.digest, Code: c.read, Module: "m", Type: "worker", Args: args, Parent: ctx.Self(), Supervision: supervision.Default()})
	if err == nil {
		c.x.ref, err = ctx.Spawn("c", p)
	}
	for range 3 {
		c.x.tell(ctx)
	}
	return err
}

func (c *codeParent) Receive(_ *host.Context, m host.Message) error {
	if m.Kind == abi.KindSpawnFailed {
		_ = m.Decode(&c.x.missed)
	}
	return nil
}

func reads(code []byte) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return code, nil }
}

// Children of code that the node lacks run there, in any number, and the code travels once: whole, whatever its size.
func TestCodeTravels(t *testing.T) {
	for _, size := range []int{1, partSize - 1, partSize, partSize + 1, mostOfShelf} {
		s, front, h := shelves(t)
		code := bytes.Repeat([]byte{7}, size)
		all := []*spawn{s.spawnCode(t, front, code, reads(code)), s.spawnCode(t, front, code, reads(code)), s.spawnCode(t, front, code, reads(code))}
		s.until(t, "children", func() bool {
			for _, x := range all {
				if x.missed != "" {
					t.Fatal(x.missed)
				}
				if len(x.living) != 1 || x.last != 3 {
					return false
				}
			}
			return true
		})
		if h.loads != 1 || h.pins != 3 || h.on.count.Fetched.Load() != 1 || len(h.events) != 0 {
			t.Errorf("size %d: %d were checked, %d pins, %v", size, h.loads, h.pins, h.events)
		}
		for _, x := range all {
			front.system.Stop(x.ref)
		}
		s.until(t, "ends", func() bool { return h.on.count.Here.Load() == 0 })
		if s.pass(time.Minute); h.pins != 0 {
			t.Errorf("%d pins are left", h.pins)
		}
		if left := h.on.system.Select("/system/remote.*/*"); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	}
}

// Code that a node has dropped again is fetched again, also at once.
func TestCodeThatWasDroppedTravelsAgain(t *testing.T) {
	s, front, h := shelves(t)
	code := []byte("code")
	for n := range 2 {
		x := s.spawnCode(t, front, code, reads(code))
		s.until(t, "a child", func() bool { return len(x.living) == 1 || x.missed != "" })
		if x.missed != "" || h.loads != n+1 {
			t.Errorf("%d loads, %s", h.loads, x.missed)
		}
		h.mu.Lock()
		clear(h.have)
		h.mu.Unlock()
	}
}

// What cannot be given, is too large, has changed, or is refused by the check is told to the parent, and nothing is kept of it.
func TestCodeThatIsNotTaken(t *testing.T) {
	code := []byte("code")
	for name, c := range map[string]struct {
		code []byte
		read func(context.Context) ([]byte, error)
		bad  error
		why  string
		told bool
	}{
		"none":    {code: code, why: "no module here has the code"},
		"gone":    {code: code, read: func(context.Context) ([]byte, error) { return nil, errors.New("no such file") }, why: "no such file"},
		"changed": {code: []byte("other"), read: reads(code), why: "has changed since"},
		"large":   {code: make([]byte, mostOfShelf+1), read: reads(make([]byte, mostOfShelf+1)), why: "from 1 to 3145728 are taken", told: true},
		"wrong":   {code: code, read: reads(code), bad: errors.New("no module"), why: "no module", told: true},
	} {
		s, front, h := shelves(t)
		h.bad = c.bad
		x := s.spawnCode(t, front, c.code, c.read)
		s.until(t, name, func() bool { return x.missed != "" || len(x.living) > 0 })
		if !strings.Contains(x.missed, c.why) || len(h.have) != 0 || len(h.events) > 0 != c.told {
			t.Errorf("%s: %q, %v", name, x.missed, h.events)
		}
	}
}

// liar asks for a child, and answers with what it likes when it is asked for the code.
type liar struct {
	door   host.Ref
	digest []byte
	answer func(n int, p part) any // nil: none
	asked  int
	said   string
}

func (l *liar) Receive(ctx *host.Context, m host.Message) error {
	switch {
	case m.Kind == abi.KindMessage && m.Correlation == 0:
		r, err := requestOf(&Child{Digest: l.digest, Module: "m", Type: "worker", Parent: ctx.Self(), Supervision: supervision.Default()})
		if err != nil {
			return err
		}
		return ctx.Ask(l.door, host.Headed{Value: host.Raw(r.encode("x")), Headers: map[string]string{Header: version, offering: version}}, 1, time.Second)
	case m.Kind == abi.KindMessage:
		p, err := decodePart(m.Payload)
		if err != nil {
			return err
		}
		l.asked++
		if v := l.answer(l.asked, p); v != nil {
			return ctx.Reply(v)
		}
		_, err = ctx.Later()
		return err
	case m.Kind == abi.KindReply && m.Correlation == 1:
		a, _ := decodeAnswer(m.Payload)
		f, err := ctx.System().RefOf(a.Fetch, host.Ref{})
		if err != nil {
			return err
		}
		return ctx.Ask(f, nil, 2, 5*time.Minute)
	default:
		l.said = string(m.Payload)
	}
	return nil
}

// A member that offers other code, too much, parts that were not asked for, or nothing at all for ever is refused with an event; it keeps
// nobody from being served, and nothing of it stays.
func TestAHostileMemberOffersCode(t *testing.T) {
	const size = 2 * partSize
	good := func(p part) part { return part{At: p.At, Size: size, Code: make([]byte, partSize)} }
	for name, answer := range map[string]func(n int, p part) any{
		"other code":    func(_ int, p part) any { return good(p) },
		"nothing":       func(int, part) any { return part{} },
		"huge":          func(int, part) any { return part{Size: 1 << 60, Code: make([]byte, partSize)} },
		"negative":      func(int, part) any { return part{Size: -1} },
		"short":         func(int, part) any { return part{Size: size, Code: make([]byte, 7)} },
		"long":          func(_ int, p part) any { return part{At: p.At, Size: size, Code: make([]byte, partSize+1)} },
		"very long":     func(int, part) any { return part{Size: size, Code: make([]byte, 4*partSize)} },
		"another place": func(_ int, p part) any { p = good(p); p.At++; return p },
		"grows":         func(n int, p part) any { p = good(p); p.Size += int64(n); return p },
		"no part":       func(int, part) any { return "what?" },
		"no answer":     func(int, part) any { return nil },
	} {
		s, front, h := shelves(t)
		door, err := h.on.system.Lookup("/system/" + Door)
		if err != nil {
			t.Fatal(err)
		}
		door, err = front.system.RefOf(door.UID(), host.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(name))
		l := &liar{door: door, digest: sum[:], answer: answer}
		ref, err := front.system.Spawn("liar", host.Native(func() host.Actor { return l }))
		if err != nil {
			t.Fatal(err)
		}
		if err := front.system.Tell(ref, nil); err != nil {
			t.Fatal(err)
		}
		s.pass(5 * time.Minute)
		if l.said == "" || l.asked == 0 || h.loads != 0 || len(h.events) != 1 && name != "no answer" {
			t.Errorf("%s: asked %d times, %q, %d checks, events %v", name, l.asked, l.said, h.loads, h.events)
		}
		if left := h.on.system.Select("/system/remote.*/*"); len(left) != 0 {
			t.Errorf("%s: %v are left", name, left)
		}
		x := s.spawnCode(t, front, []byte("good"), reads([]byte("good")))
		s.until(t, "an honest child", func() bool { return len(x.living) == 1 || x.missed != "" })
		if x.missed != "" {
			t.Errorf("%s: after it %s", name, x.missed)
		}
	}
}

// lie has actors of a node ask for children of code, and answer with what answer says when they are asked for it.
func (s *sim) lie(t *testing.T, by, at *life, digest []byte, n int, answer func(int, part) any) (all []*liar) {
	t.Helper()
	door, err := at.system.Lookup("/system/" + Door)
	if err != nil {
		t.Fatal(err)
	}
	if door, err = by.system.RefOf(door.UID(), host.Ref{}); err != nil {
		t.Fatal(err)
	}
	for range n {
		l := &liar{door: door, digest: digest, answer: answer}
		s.count++
		ref, err := by.system.Spawn(fmt.Sprint("liar", s.count), host.Native(func() host.Actor { return l }))
		if err != nil {
			t.Fatal(err)
		}
		if err := by.system.Tell(ref, nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// Many who never give a part have no more time together than one has: then the next fetch of the node begins.
func TestManyWhoGiveNothingHaveTheTimeOfOne(t *testing.T) {
	s, front, h := shelves(t)
	sum := sha256.Sum256([]byte("never"))
	all := s.lie(t, front, h.on, sum[:], mostWaiting, func(int, part) any { return nil })
	s.pass(fetchTime + 2*partTime)
	told := 0
	for _, l := range all {
		if l.said != "" {
			told++
		}
	}
	if told != len(all) {
		t.Errorf("%d of %d were told within %v", told, len(all), fetchTime+2*partTime)
	}
	x := s.spawnCode(t, front, []byte("good"), reads([]byte("good")))
	s.until(t, "an honest child", func() bool { return len(x.living) == 1 || x.missed != "" })
	if x.missed != "" {
		t.Error(x.missed)
	}
}

// Who is not of the node for which code is fetched is neither asked for it nor told what has become of it.
func TestOthersHaveNoPartInAFetch(t *testing.T) {
	s, front, h := shelves(t)
	other := s.start("other", nil)
	s.pass(5 * time.Second)
	sum := sha256.Sum256([]byte("never"))
	s.lie(t, front, h.on, sum[:], 1, func(int, part) any { return nil })
	s.pass(time.Second)
	left := h.on.system.Select("/system/remote.*/*")
	if len(left) != 1 {
		t.Fatalf("%v", left)
	}
	l := &meddler{}
	for _, by := range []*life{other, h.on} {
		to, err := by.system.RefOf(left[0].UID(), host.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		l.to = to
		if _, err := by.system.Spawn("meddler", host.Native(func() host.Actor { return l })); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(5 * time.Minute)
	if l.asked != 0 || l.told != 0 {
		t.Errorf("others were asked %d times, and told %d times", l.asked, l.told)
	}
}

// meddler asks a fetch for its outcome.
type meddler struct {
	to          host.Ref
	asked, told int
}

func (l *meddler) Started(ctx *host.Context) error { return ctx.Ask(l.to, nil, 1, time.Minute) }

func (l *meddler) Receive(_ *host.Context, m host.Message) error {
	switch m.Kind {
	case abi.KindMessage:
		l.asked++
	case abi.KindReply:
		l.told++
	}
	return nil
}

// A member may have one fetch under way, some may wait, and the others are refused.
func TestFetchesAreBounded(t *testing.T) {
	s, front, h := shelves(t)
	door, err := h.on.system.Lookup("/system/" + Door)
	if err != nil {
		t.Fatal(err)
	}
	door, err = front.system.RefOf(door.UID(), host.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*liar
	for i := range 50 {
		sum := sha256.Sum256([]byte{byte(i)})
		l := &liar{door: door, digest: sum[:], answer: func(int, part) any { return nil }}
		ref, err := front.system.Spawn(fmt.Sprint("liar", i), host.Native(func() host.Actor { return l }))
		if err != nil {
			t.Fatal(err)
		}
		if err := front.system.Tell(ref, nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	s.pass(3 * time.Second)
	asked := 0
	for _, l := range all {
		asked += l.asked
	}
	if left := h.on.system.Select("/system/remote.*/*"); len(left) != mostFetches || asked != 1 {
		t.Errorf("%d fetches, %d are under way", len(left), asked)
	}
	s.pass(10 * time.Minute)
	if left := h.on.system.Select("/system/remote.*/*"); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	door, err = h.on.system.Lookup("/system/" + Door)
	if err != nil || door.IsZero() {
		t.Error(err)
	}
}

// FuzzPart reads parts of other nodes: whatever they are, no more is kept than was agreed to, and only in order.
func FuzzPart(f *testing.F) {
	for _, p := range []part{{}, {Size: 3, Code: []byte("abc")}, {At: 1, Size: 3, Code: []byte("bc")}, {At: -1, Size: 1 << 62}} {
		b, err := host.Encode(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var code []byte
		var size int64
		for _, b := range [][]byte{first, second} {
			p, err := decodePart(b)
			if err != nil {
				continue
			}
			before := len(code)
			if code, err = p.join(code, &size, 1<<20); err != nil {
				return
			}
			if size <= 0 || size > 1<<20 || int64(len(code)) > size || len(code)-before > partSize || p.At != int64(before) {
				t.Fatalf("%d of %d bytes after a part at %d of %d", len(code), size, p.At, len(p.Code))
			}
		}
	})
}
