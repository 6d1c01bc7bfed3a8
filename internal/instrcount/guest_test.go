package instrcount

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// subject is a guest that is measured: each message that it gets is answered by one that
// is sent.
type subject struct {
	name    string
	module  func(t testing.TB) string // its file
	typ     string
	payload []byte
}

// guestInGo builds the Go guest of the benchmarks.
func guestInGo(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, ".")
	cmd.Dir = "../../bench/guests/go"
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func file(path string) func(testing.TB) string { return func(testing.TB) string { return path } }

// number is what the pings send: five bytes of CBOR.
var number = []byte{0x1a, 0x7f, 0xff, 0xff, 0xff}

var subjects = []subject{
	{"WAT, 5 bytes", file("../../bench/guests/ping.wasm"), "ping", number},
	{"Go, 5 bytes", guestInGo, "ping", number},
	{"Go, six fields", guestInGo, "clerk", order},
}

// order is what the guest's struct of six fields is written as.
var order = []byte("\xa6\x62id\x1a\x00\x98\x96\x80\x62to\x65alice\x64from\x63bob\x64note\x44\x01\x02\x03\x04\x65cents\x1a\x00\x98\x96\x80\x65final\xf5")

// serve is the child's part: it runs one subject, with three spans a message: push, run,
// and reading the commands.
func serve(module, typ string, payload []byte) error {
	ctx := context.Background()
	code, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	e, err := sandbox.New(ctx, sandbox.NewConfig())
	if err != nil {
		return err
	}
	image, err := e.Load(ctx, code, sandbox.ImageConfig{})
	if err != nil {
		return err
	}
	x, err := sandbox.Get(image)
	if err != nil {
		return err
	}
	start := abi.Start{Type: typ, Path: "wasm://s/user/a#7", Self: 7 << 40, Parent: 1 << 40, Args: []byte{0xf6}}
	envelopes := []abi.Envelope{{Kind: abi.KindStart, Time: 1_700_000_000_000_000_000, Payload: abi.AppendStart(nil, &start)}}
	for i := range warm + spans {
		envelopes = append(envelopes, abi.Envelope{Time: 1_700_000_000_000_000_000 + int64(i), Sender: 9 << 40, Payload: payload})
	}
	var cmds []abi.Command
	mark := func(int) {}
	for i := range envelopes {
		if i > warm {
			mark = func(int) { _ = Mark() }
		}
		in := sandbox.Entry{Now: envelopes[i].Time, TurnFuel: 1 << 40, FirstTurn: uint64(i)}
		var res sandbox.Result
		mark(0)
		ok := x.Push(&envelopes[i])
		mark(0)
		mark(1)
		x.Run(&in, &res)
		mark(1)
		mark(2)
		_, cmds, _, err = x.NextTurn(cmds[:0])
		mark(2)
		if !ok || err != nil || res.Failure != nil || i > 0 && (len(cmds) != 1 || cmds[0].Op != abi.OpSend || len(cmds[0].Payload) != len(payload)) {
			return fmt.Errorf("message %d: %v, %v, %+v, %v", i, ok, err, res, cmds)
		}
	}
	return nil
}

const warm, spans = 300, 5

// cost is what a message takes.
type cost struct{ push, guest, run, read uint64 }

func measure(t testing.TB, s subject) cost {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INSTRCOUNT_MODULE="+s.module(t), "INSTRCOUNT_TYPE="+s.typ, fmt.Sprintf("INSTRCOUNT_PAYLOAD=%x", s.payload))
	cmd.Stderr = os.Stderr
	got, err := Run(cmd)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || len(got) != 3*spans {
		t.Fatalf("%d spans, %v", len(got), err)
	}
	least := func(which int) Span {
		var all []Span
		for i := which; i < len(got); i += 3 {
			all = append(all, got[i])
		}
		return Least(all)
	}
	run := least(1)
	dump(s.name, run)
	return cost{least(0).Total, run.Generated, run.Total - run.Generated, least(2).Total}
}

func TestInstructionsOfAMessage(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			c := measure(t, s)
			t.Logf("guest %d; host: push %d, run %d, read %d", c.guest, c.push, c.run, c.read)
		})
	}
}

// dump writes where the guest's instructions were, for who wants to know.
func dump(name string, s Span) {
	dir := os.Getenv("INSTRCOUNT_DUMP")
	if dir == "" {
		return
	}
	f, _ := os.Create(filepath.Join(dir, name))
	defer f.Close()
	for at, n := range s.At {
		fmt.Fprintf(f, "%x %d\n", at, n)
	}
	_ = binary.Size(0)
}
