package contract

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// The guests of abi/testdata/guests were written from docs/abi.md alone, in
// languages without an SDK.

func system(t *testing.T) *host.System {
	t.Helper()
	s, err := host.New(host.NewConfig("abi").WithGuardian(supervision.Default()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask(t *testing.T, s *host.System, ref host.Ref, question, answer any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m, err := s.Ask(ctx, ref, question)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Decode(answer); err != nil {
		t.Fatal(err)
	}
}

func tell(t *testing.T, s *host.System, ref host.Ref, v any) {
	t.Helper()
	if err := s.Tell(ref, v); err != nil {
		t.Fatal(err)
	}
}

func event(t *testing.T, s *host.Subscription) host.Event {
	t.Helper()
	select {
	case e := <-s.C():
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
	}
	return host.Event{}
}

func TestGuestInWAT(t *testing.T) {
	image := load(t, "guests/echo.wasm")
	if sandbox.Batching(image) {
		t.Error("it asks for batches")
	}
	s := system(t)
	ref, err := s.Spawn("echo", host.Guest(image, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "hello", strings.Repeat("long ", 60), strings.Repeat("longer ", 2000)} {
		var got string
		if ask(t, s, ref, text, &got); got != text {
			t.Errorf("%d bytes came back as %d", len(text), len(got))
		}
	}
	tell(t, s, ref, "from nobody") // is ignored
	var again uint64
	if ask(t, s, ref, uint64(1)<<63, &again); again != 1<<63 {
		t.Errorf("%d", again)
	}
}

func TestGuestInC(t *testing.T) { counts(t, load(t, "guests/counter.wasm")) }

// counts tries the counter.
func counts(t *testing.T, image *sandbox.Image) {
	t.Helper()
	if d := image.Description(); !sandbox.Batching(image) || d.SDK != "c/1" || !d.Has("counter") {
		t.Errorf("%+v, batching %v", d, sandbox.Batching(image))
	}
	s := system(t)
	events := s.Subscribe(10, func(e *host.Event) bool { return e.Kind == host.EventFailed || e.Kind == host.EventRestarted })
	ref, err := s.Spawn("counter", host.Guest(image, "counter"))
	if err != nil {
		t.Fatal(err)
	}
	total := func(want uint64) {
		t.Helper()
		var got uint64
		if ask(t, s, ref, "get", &got); got != want {
			t.Errorf("the total is %d, want %d", got, want)
		}
	}
	total(0)
	for _, n := range []uint64{1, 23, 24, 200, 70_000, 1 << 40} {
		tell(t, s, ref, n)
	}
	const sum = 1 + 23 + 24 + 200 + 70_000 + 1<<40
	total(sum)

	tell(t, s, ref, "what?") // fails, and is restarted without what it knew
	tell(t, s, ref, 7)
	total(7)
	failed, restarted := event(t, events), event(t, events)
	if f := failed.Failure; failed.Kind != host.EventFailed || f.Kind != abi.FailureGuestError || f.Reason != "not a number" || failed.Directive != supervision.Restart {
		t.Errorf("%+v", failed)
	}
	if restarted.Kind != host.EventRestarted || restarted.Incarnation != 1 {
		t.Errorf("%+v", restarted)
	}
}

// The page says how the refs of children are computed: the host refuses a spawn with another.
func TestGuestInCSpawns(t *testing.T) {
	image := load(t, "guests/parent.wasm")
	s := system(t)
	failures := s.Subscribe(10, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	ref, err := s.Spawn("parent", host.Guest(image, "parent").WithCapabilities(host.Capabilities{Spawn: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for range 3 {
		var child uint64
		ask(t, s, ref, nil, &child)
		seen[child] = true
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
	for _, k := range s.View().Tree().Children[0].Children {
		if uid := uint64(k.Ref.UID()); !seen[uid] {
			t.Errorf("the child %#x was announced as one of %v", uid, seen)
		}
		var grandchild uint64
		if ask(t, s, k.Ref, nil, &grandchild); grandchild == 0 || seen[grandchild] {
			t.Errorf("%#x", grandchild)
		}
	}
	select {
	case e := <-failures.C():
		t.Error(e.Failure)
	default:
	}
}

// The function that the page shows is the one that this guest was built with.
func TestPageShowsTheGuestsFunction(t *testing.T) {
	page, err := os.ReadFile(root + "docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(root + "abi/testdata/guests/parent.c")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(page), "```c\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !found || !strings.Contains(strings.ReplaceAll(string(source), "static u64 child_ref", "u64 child_ref"), shown) {
		t.Error("parent.c does not hold the function of the page")
	}
}

// What the host cannot be made to send, an engine can: headers, a batch, a
// failure in the middle of it.
func TestGuestsRead(t *testing.T) {
	headers := abi.AppendHeader(abi.AppendHeader(nil, "trace", strings.Repeat("x", 300)), "", "")
	for _, file := range []string{"guests/echo.wasm", "guests/counter.wasm"} {
		x, err := sandbox.Get(load(t, file))
		if err != nil {
			t.Fatal(err)
		}
		e := abi.Envelope{Time: 1_700_000_000_000_000_000, Sender: 1 << 63, Correlation: 300, Headers: headers, Payload: []byte("\x63get")}
		if !x.Push(&e) {
			t.Fatal("refused")
		}
		var res sandbox.Result
		x.Run(&sandbox.Entry{}, &res)
		_, cmds, ok, err := x.NextTurn(nil)
		if !ok || err != nil || len(cmds) != 1 || res.Failure != nil {
			t.Fatalf("%s: %v, %v, %v, %v", file, cmds, ok, err, res.Failure)
		}
		want := []byte("\x63get")
		if strings.Contains(file, "counter") {
			want = []byte{0}
		}
		if c := cmds[0]; c.Op != abi.OpSend || c.ToRef != e.Sender || c.Correlation != 300 || c.Flags != abi.FlagReply || !bytes.Equal(c.Payload, want) {
			t.Errorf("%s: %+v", file, c)
		}
		x.Put()
	}
}

func TestGuestInCEndsItsBatchAfterFail(t *testing.T) {
	x, err := sandbox.Get(load(t, "guests/counter.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Put()
	for _, payload := range []string{"\x05", "\x63get", "\xf6", "\x05"} {
		if !x.Push(&abi.Envelope{Sender: 9, Correlation: 1, Payload: []byte(payload)}) {
			t.Fatal("refused")
		}
	}
	var res sandbox.Result
	x.Run(&sandbox.Entry{}, &res)
	if res.Turns != 3 || res.Unread != 1 || res.Failure != nil {
		t.Fatalf("%+v", res)
	}
	var cmds []abi.Command
	var ops []string
	for {
		turn, c, ok, err := x.NextTurn(cmds)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		for _, c := range c {
			ops = append(ops, string(rune('0'+turn))+" "+c.Op.String())
		}
	}
	if got := strings.Join(ops, ", "); got != "1 send, 2 fail" {
		t.Error(got)
	}
}
