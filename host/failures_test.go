package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

// recFail is the kind of a record with which a guest of failing.wasm fails as its flag says, see failing.part.
const recFail = 253

// faultyGuest is a guest that works, and fails in any way that there is.
type faultyGuest struct {
	props func(t *testing.T) Props
	code  func(t *testing.T) []byte
	work  any
	fails map[abi.FailureKind]any // the message with which it fails so
	// resumable is one with which it fails so that it can be resumed.
	resumable any
	// overflows are the kinds of failures of a call that never ends. A goroutine's stack is in memory.
	overflows []abi.FailureKind
}

func faultyGuests() map[string]*faultyGuest {
	failing := func() string {
		if manner == inBatches {
			return "failing_batching.wasm"
		}
		return "failing.wasm"
	}
	fail := func(how byte) any { return script(rec(recAdd, 3, nil), rec(recFail, how, nil)) }
	return map[string]*faultyGuest{
		"wat": {
			props: func(t *testing.T) Props {
				return Guest(load(t, newEngine(t), filepath.Join("testdata", failing())), "puppet").WithArgs(script()).
					WithCapabilities(Capabilities{Send: []string{"/**"}}).WithLimits(Limits{Fuel: 5_000_000, Memory: 1 << 20})
			},
			code: func(t *testing.T) []byte { return wasmFile(t, failing()) },
			work: script(rec(recAdd, 1, nil), now(abi.AppendSend(nil, 0, "/user/sink", 0, 0, nil, []byte{1}))),
			fails: map[abi.FailureKind]any{
				abi.FailureTrap: script(trap()), abi.FailureGuestPanic: fail(5), abi.FailureGuestError: script(now(abi.AppendFail(nil, "told to"))),
				abi.FailureFuel: fail(4), abi.FailureDeadline: fail(4), abi.FailureKilled: fail(4), abi.FailureMemoryLimit: fail(2),
				abi.FailureStackOverflow: fail(1), abi.FailureABIViolation: script(now(abi.AppendStash(nil), abi.AppendStash(nil))), abi.FailureExit: fail(3),
			},
			resumable: script(rec(recAdd, 3, nil), trap()),
			overflows: []abi.FailureKind{abi.FailureStackOverflow},
		},
		"sdk": { // of the run's compiler
			props: func(t *testing.T) Props {
				return familyGuest(t, "faulty").WithLimits(Limits{Fuel: 150_000_000, Memory: 16 << 20})
			},
			code: func(*testing.T) []byte { return familyCode },
			work: 1,
			fails: map[abi.FailureKind]any{
				abi.FailureTrap: "trap", abi.FailureGuestPanic: "panic", abi.FailureGuestError: "error",
				abi.FailureFuel: "loop", abi.FailureDeadline: "loop", abi.FailureKilled: "loop", abi.FailureMemoryLimit: "memory",
				abi.FailureStackOverflow: "stack", abi.FailureABIViolation: "contract", abi.FailureExit: "exit",
			},
			resumable: "error",
			overflows: []abi.FailureKind{abi.FailureStackOverflow, abi.FailureMemoryLimit, abi.FailureTrap},
		},
	}
}

// Every kind of failure, of guests in the run's compiler and in WAT: one message at a time and in batches; awake, asleep before, and
// resumed before; alone and amid other messages. Each file is repeated by another process, with the compiler and the interpreter:
// the failure and its fuel are the same, and all turns before.
func TestEveryFailureIsRepeatedElsewhere(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine; takes minutes there")
	}
	dir, elsewhere := os.Getenv(crashFilesTo), true
	if dir == "" { // otherwise another machine repeats them
		if testing.Short() {
			t.Skip("the interpreter takes half a minute")
		}
		dir, elsewhere = t.TempDir(), false
		t.Setenv(crashFilesTo, dir)
	}
	files := 0
	for name, g := range faultyGuests() {
		t.Run(name, func(t *testing.T) {
			manners := everyManner
			if name == "sdk" || !thorough.Slow {
				manners = awakeOrNot // they batch anyway
			}
			manners(t, func(t *testing.T) {
				for kind := range g.fails {
					for _, resumed := range []bool{false, true} {
						for _, alone := range []bool{true, false} {
							if alone == resumed && !thorough.Enabled || alone && !thorough.Slow {
								continue
							}
							f := g.fail(t, kind, resumed, alone)
							as := f.Failure.Kind == kind || kind == abi.FailureStackOverflow && slices.Contains(g.overflows, f.Failure.Kind)
							if !as || f.Inexact != "" {
								t.Errorf("%v, resumed %t, alone %t: %v, %s", kind, resumed, alone, f.Failure.Error(), f.Inexact)
								continue
							}
							leave(t, f, g.code(t))
							files++
						}
					}
				}
			})
		})
	}
	if t.Failed() || elsewhere {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, "-test.run", "^TestCrashFilesOfAnotherMachine$", "-test.v")
	c.Env = append(os.Environ(), crashFilesTo+"=", crashFilesFrom+"="+dir)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d files\n%s", files, out)
}

// fail has an actor work, and fail. It returns the crash file.
func (g *faultyGuest) fail(t *testing.T, kind abi.FailureKind, resumed, alone bool) *blackbox.File {
	t.Helper()
	directive := supervision.Restart
	if resumed {
		directive = supervision.Resume
	}
	box := &interrupted{}
	props := g.props(t)
	switch kind {
	case abi.FailureDeadline:
		return g.late(t, props.WithLimits(Limits{Fuel: 1 << 40, Memory: 24 << 20, Deadline: 20 * time.Millisecond}), directive, resumed, alone)
	case abi.FailureKilled:
		props = props.WithMailbox(func(MailboxLimits) Mailbox { return box })
	}
	l := newBlackBox(t, otherwise(directive), blackbox.Config{}, nil)
	ref := l.spawn("a", props)
	send := func(m ...any) {
		for _, m := range m {
			must(0, l.Tell(ref, m))(t)
		}
		l.run()
		nod(l.clock, l.run)
		if asleep := l.View().Stats().Asleep; manner == sleepy && asleep == 0 && l.table.Get(ref.UID()) != nil {
			t.Error("it does not sleep")
		}
	}
	send(g.work)
	send(g.work, g.work, g.work)
	if resumed {
		send(g.work, g.resumable, g.work)
		l.pass(2 * blackbox.Every)
		send(g.work, g.work)
	}
	if kind == abi.FailureKilled {
		box.after, box.during = 0, func() { l.StopNow(ref) }
		if !alone {
			box.after = 1
		}
	}
	if alone {
		send(g.fails[kind])
	} else {
		send(g.work, g.fails[kind], g.work)
	}
	return l.last()
}

// late is fail of a turn that misses its deadline, which is one of the machine's clock.
func (g *faultyGuest) late(t *testing.T, props Props, directive supervision.Directive, resumed, alone bool) *blackbox.File {
	t.Helper()
	dir := t.TempDir()
	r := must(blackbox.Open(blackbox.Config{Dir: dir}))(t)
	defer r.Close()
	cfg := NewConfig("test").WithBlackBox(r).WithGuardian(otherwise(directive)).WithIdleAfter(0).WithWorkers(1)
	if manner == sleepy {
		cfg = cfg.WithIdleAfter(time.Millisecond)
	}
	s := newSystem(t, cfg)
	events := s.Subscribe(1000, func(e *Event) bool { return e.Kind == EventFailed })
	ref := must(s.Spawn("a", props))(t)
	// On a busy machine a turn that works may miss it, too.
	fails := func(late bool) {
		for (next(t, events).Failure.Kind == abi.FailureDeadline) != late {
		}
	}
	send := func(m ...any) {
		for _, m := range m {
			must(0, s.Tell(ref, m))(t)
		}
	}
	rests := func() {
		must(0, s.Idle(t.Context()))(t)
		for manner == sleepy && s.View().Stats().Asleep == 0 {
			time.Sleep(time.Millisecond) // the machine's clock
		}
	}
	send(g.work, g.work)
	rests()
	if resumed {
		send(g.work, g.resumable, g.work)
		fails(false)
		rests()
	}
	if alone {
		send(g.fails[abi.FailureDeadline])
	} else {
		send(g.work, g.fails[abi.FailureDeadline], g.work)
	}
	fails(true)
	files := crashFiles(t, r, dir)
	at := slices.IndexFunc(files, func(f *blackbox.File) bool { return f.Failure.Kind == abi.FailureDeadline })
	return files[at]
}
