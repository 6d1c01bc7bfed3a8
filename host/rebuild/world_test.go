package rebuild

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

const ms = uint64(time.Millisecond)

var start = time.Unix(1_700_000_000, 0)

var engine = sync.OnceValues(func() (*runtime.Engine, error) {
	return runtime.New(context.Background(), runtime.NewConfig().WithCacheDir(filepath.Join(servicetest.CacheDir(), "images")))
})

func load(t testing.TB, name string, code []byte) *runtime.Image {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	image, err := e.Load(context.Background(), code, runtime.ImageConfig{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// puppetImage is the guest in WAT that does what it is told, and batches.
func puppetImage(t testing.TB) *runtime.Image {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return load(t, "puppet", code)
}

// familyImage is the guest in Go, built by standard Go or by TinyGo.
func familyImage(t testing.TB, compiler string) *runtime.Image {
	t.Helper()
	if compiler != "go" {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skip(err)
		}
	}
	code, err := guesttest.BuildWith(compiler, filepath.Join("..", "testdata", "family"))
	if err != nil {
		t.Fatal(err)
	}
	return load(t, "family", code)
}

// The records that a puppet does, see host/testdata/puppet.wat.
func rec(kind, flag byte, commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return append(binary.LittleEndian.AppendUint16([]byte{kind, flag}, uint16(len(all))), all...)
}

const (
	recAdd, recReport    = 255, 254
	trap, last, spinning = 1, 2, 4
)

func script(records ...[]byte) host.Raw {
	b, err := cbor.Marshal(slices.Concat(records...))
	if err != nil {
		panic(err)
	}
	return b
}

// send is a command to an actor at a path, with a message for it.
func send(path string, m []byte) []byte { return abi.AppendSend(nil, 0, path, 0, 0, nil, m) }

func text(s string) []byte { b, _ := cbor.Marshal(s); return b }

func puppet(image *runtime.Image, records ...[]byte) host.Props {
	return host.Guest(image, "puppet").WithArgs(script(records...)).
		WithCapabilities(host.Capabilities{Send: []string{"/**"}, Spawn: []string{"*"}, Stop: []string{"/user/**"}})
}

// sink is an actor in Go with children and timers.
type sink struct {
	n    int
	kids []host.Ref
}

func (s *sink) Started(ctx *host.Context) error {
	return ctx.After(1, 7*time.Millisecond, 0, "once")
}

func (s *sink) Receive(ctx *host.Context, m host.Message) error {
	if s.n++; s.n%5 == 4 {
		kid, err := ctx.Spawn(fmt.Sprint("kid", s.n), host.Native(func() host.Actor { return &sink{n: 1000} }))
		if err != nil {
			return err
		}
		s.kids = append(s.kids, kid)
		return errors.Join(ctx.Watch(kid), ctx.After(uint64(s.n), time.Hour, 0, s.n))
	}
	if s.n == 13 {
		return errors.New("thirteen")
	}
	if len(s.kids) > 2 {
		ctx.Stop(s.kids[0])
		s.kids = s.kids[1:]
	}
	if len(s.kids) > 0 && m.Kind == abi.KindMessage {
		return ctx.Tell(s.kids[len(s.kids)-1], s.n)
	}
	return nil
}

// interrupted is a mailbox that does something when a message is taken out.
type interrupted struct {
	host.HostedMailbox
	do *func()
}

func (b *interrupted) Pop() *host.Envelope {
	e := b.HostedMailbox.Pop()
	if e != nil && e.Kind == abi.KindMessage && *b.do != nil {
		f := *b.do
		*b.do = nil
		f()
	}
	return e
}

// world is a system with a journal on a virtual clock.
type world struct {
	*host.System
	t     testing.TB
	clock *host.VirtualClock
	j     *journal
	props map[string]host.Props // of what Go spawns
	onPop *func()               // see interrupted
	looks func()                // at the twin

	looking bool
}

// cast is what is spawned in a world.
func cast(t testing.TB, puppets, family *runtime.Image, onPop *func()) map[string]host.Props {
	t.Helper()
	slow, err := backoff.Spec{Min: 20 * time.Millisecond, Max: 10 * time.Second, Jitter: "full"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(*host.Context, host.Message) error { return nil }
	p := map[string]host.Props{
		"sink":  host.Native(func() host.Actor { return &sink{} }),
		"wat":   puppet(puppets, rec(1, 0, abi.AppendTimer(nil, 1, 9*ms, 11*ms, text("tick"))), rec(byte(abi.KindTimer), 0, send("/user/sink", text("ticked")))),
		"other": puppet(puppets, rec(byte(abi.KindStop), 0, send("/user/sink", text("stopping"))), rec(byte(abi.KindPreRestart), 0, send("/user/sink", text("again")))),
		"victim": puppet(puppets).WithMailbox(func(l host.MailboxLimits) host.Mailbox {
			return &interrupted{mailbox.New(mailbox.Bounded).Make(l).(host.HostedMailbox), onPop}
		}),
		"top": host.Func(nothing).WithSupervision(supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{Policy: slow})).
			WithChildren(host.Child{Name: "p", Props: puppet(puppets)}),
		"soft": host.Func(nothing).WithSupervision(supervision.Default().WithOtherwise(supervision.Resume)).
			WithChildren(host.Child{Name: "q", Props: puppet(puppets)}),
	}
	if family != nil {
		caps := host.Capabilities{Send: []string{"/user/sink"}, Spawn: []string{"*"}}
		p["boss"] = host.Guest(family, "boss").WithArgs(int(supervision.Restart)).WithCapabilities(caps).WithSupervision(supervision.Default().WithOtherwise(supervision.Ask))
		p["worker"] = host.Guest(family, "worker").WithCapabilities(caps)
	}
	return p
}

func config(c *host.VirtualClock, j *journal) host.Config {
	return host.NewConfig("w").WithSeed(3).WithClock(c).WithManual().WithRecorder(j).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).
		WithSpawnOptions(func([]byte) (o host.SpawnOptions, err error) { // a mailbox as large as none here
			o.MailboxLimits.Messages = 1 << 30
			return o, nil
		})
}

func newWorld(t testing.TB, puppets, family *runtime.Image) *world {
	t.Helper()
	c := host.NewVirtualClock(start)
	w := &world{t: t, clock: c, j: newJournal(c, 5*time.Millisecond), onPop: new(func())}
	w.props = cast(t, puppets, family, w.onPop)
	sys, err := host.New(config(c, w.j))
	if err != nil {
		t.Fatal(err)
	}
	w.System = sys
	w.RunUntilIdle(10) // the guardians start
	return w
}

// rebuilt is a system from the records of a world.
func rebuilt(t testing.TB, records []record.Record, puppets, family *runtime.Image) (*Rebuilt, *world, error) {
	t.Helper()
	return prepare(t, records, cast(t, puppets, family, new(func())))
}

// prepare has a journal of its own, and the time of the last record.
func prepare(t testing.TB, records []record.Record, props map[string]host.Props) (*Rebuilt, *world, error) {
	t.Helper()
	at := start.UnixNano()
	for i := range records {
		at = max(at, records[i].Time)
	}
	c := host.NewVirtualClock(time.Unix(0, at))
	w := &world{t: t, clock: c, j: newJournal(c, 5*time.Millisecond), props: props}
	r, err := Prepare(config(c, w.j), records, func(l *record.Life) (*host.Props, error) {
		p, ok := props[strings.TrimPrefix(l.Path, "wasm://w/user/")]
		if !ok {
			return nil, fmt.Errorf("nobody knows %s", l.Path)
		}
		return &p, nil
	})
	if err == nil {
		w.System = r.System()
	}
	return r, w, err
}

// end ends the system; what is recorded then does not matter.
func (w *world) end() {
	w.j.mu.Lock()
	w.j.closed = true
	w.j.mu.Unlock()
	for range 3 { // what waits is answered: two syncs at most
		w.clock.Advance(w.j.sync)
		w.RunUntilIdle(1 << 20)
	}
	if err := w.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
}
