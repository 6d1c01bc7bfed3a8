package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// hostileDir holds guests that say in a comment how they have to fail.
const hostileDir = "../../host/testdata/hostile"

// ownedByHost are those whose violation only the host can see: which refs and
// children an actor may name, and which asks it may have open.
var ownedByHost = map[string]bool{"forged-child": true}

// mayRunDry are those that ask for so much that it may cost all their fuel before
// anyone looks whether it can be had.
var mayRunDry = map[string]bool{"flush-beyond": true, "flush-negative": true, "random-outside": true}

func TestHostileGuests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(hostileDir, "*.wat"))
	if err != nil || len(files) == 0 {
		t.Fatal("no guests", err)
	}
	for setup, fuel := range map[string]uint64{"compiler": 100_000_000, "interpreter, portable": thorough.Of[uint64](8_000_000, 80_000_000)} {
		t.Run(setup, func(t *testing.T) {
			if setup != "compiler" && testing.Short() {
				t.Skip("the interpreter takes its time")
			}
			e := newEngine(t, setups[setup])
			neighbour := load(t, e, "echo", ImageConfig{})
			for _, file := range files {
				name := strings.TrimSuffix(filepath.Base(file), ".wat")
				t.Run(name, func(t *testing.T) {
					source, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					_, rest, _ := strings.Cut(string(source), ";; fails as: ")
					want, _, _ := strings.Cut(rest, "\n")
					raw, err := os.ReadFile(strings.TrimSuffix(file, ".wat") + ".wasm")
					if err != nil {
						t.Fatal(err)
					}
					got, detail := hostileOutcome(t, e, raw, fuel)
					if got != want && !ownedByHost[name] && !(got == "fuel" && mayRunDry[name]) {
						t.Errorf("fails as %s (%s), want %s", got, detail, want)
					}
					x := get(t, neighbour)
					defer x.Put()
					push(t, x, 0)
					if out, turns, err := run(t, x, entry()); out.Failure != nil || len(turns) != 1 || err != nil {
						t.Errorf("the neighbour is harmed: %v %v", out.Failure, err)
					}
				})
			}
		})
	}
}

// hostileOutcome loads the guest, starts it, sends a message and says how that
// failed.
func hostileOutcome(t *testing.T, e *Engine, raw []byte, fuel uint64) (kind, detail string) {
	i, err := e.Load(context.Background(), raw, ImageConfig{Name: "hostile", MemoryLimit: 8 << 20, InitFuel: 10_000_000})
	var refused *LoadError
	if errors.As(err, &refused) {
		return "refused", err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	x := get(t, i)
	defer x.Put()
	in := &Entry{Now: 1e18, TurnFuel: fuel, Deadline: 20 * time.Second, Log: &logLines{}}
	for _, kind := range []abi.Kind{abi.KindStart, abi.KindMessage} {
		for turn := range 2 { // a batch, where it is one
			if !x.Push(&abi.Envelope{Kind: kind, Time: 1e18, Sender: 5, Payload: []byte{0xf6}}) && turn == 0 {
				t.Fatal("an envelope does not fit")
			}
			if kind == abi.KindStart {
				break
			}
		}
		for x.Pending() > 0 {
			out, turns, err := run(t, x, in)
			if out.Failure != nil {
				return out.Failure.Kind.String(), out.Failure.Error()
			}
			if err != nil {
				return abi.FailureABIViolation.String(), err.Error()
			}
			for _, cmds := range turns {
				if len(cmds) == 1 && cmds[0].Op == abi.OpFail {
					return abi.FailureGuestError.String(), string(cmds[0].Reason)
				}
			}
		}
	}
	return "nothing", ""
}
