package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/race"
)

func isSend(t *testing.T, cmds turn) {
	t.Helper()
	if len(cmds) != 1 || cmds[0].Op != abi.OpSend || cmds[0].ToRef != 7 || string(cmds[0].Payload) != "\xf6" {
		t.Errorf("not the one send: %+v", cmds)
	}
}

func TestEcho(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		for _, name := range []string{"echo", "single"} {
			x := get(t, load(t, e, name, ImageConfig{}))
			defer x.Put()
			for range 5 {
				push(t, x, 0)
				out, turns, err := run(t, x, entry())
				if err != nil || out.Failure != nil || out.Turns != 1 || out.Unread != 0 || out.Fuel == 0 || len(turns) != 1 {
					t.Fatalf("%s: %+v %v", name, out, err)
				}
				isSend(t, turns[0])
			}
		}
	})
}

func TestSingleTakesOneEnvelopeAtATime(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "single", ImageConfig{}))
	defer x.Put()
	push(t, x, 0)
	if x.Push(message(0)) {
		t.Error("a second envelope was taken")
	}
	if x.Pending() != 1 {
		t.Error("pending", x.Pending())
	}
}

func TestBatch(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{})
		x := get(t, i)
		defer x.Put()
		n := 0
		for x.Push(message(0)) {
			n++
		}
		if n < 100 || x.Pending() != n {
			t.Fatalf("%d envelopes in %d bytes, %d pending", n, InboxCap(i), x.Pending())
		}
		out, turns, err := run(t, x, entry())
		if err != nil || out.Failure != nil || out.Turns != n || len(turns) != n {
			t.Fatalf("%d envelopes: %+v %v", n, out, err)
		}
		for _, cmds := range turns {
			isSend(t, cmds)
		}
	})
}

// TestEarlierTurnsStayDone: a failure in the middle of a batch leaves the turns
// before it done, and what comes after it unread.
func TestEarlierTurnsStayDone(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{})
		for _, c := range []struct {
			what   byte
			kind   abi.FailureKind
			reason string
		}{
			{1, abi.FailureTrap, "unreachable"},
			{2, abi.FailureFuel, "fuel 3000000 spent"},
			{7, abi.FailureTrap, "unreachable"},
			{16, abi.FailureTrap, "unreachable"},
			{9, abi.FailureGuestPanic, ""},
			{3, abi.FailureStackOverflow, ""},
		} {
			x := get(t, i)
			push(t, x, 0, 0, c.what, 0, 0, 0)
			in := entry()
			in.FirstTurn, in.TurnFuel = 1000, 3_000_000
			out, turns, err := run(t, x, in)
			f := out.Failure
			if err != nil || f == nil || out.Turns != 2 || out.Unread != 3 || len(turns) != 2 {
				t.Fatalf("%d: %+v, %d turns read, %v", c.what, out, len(turns), err)
			}
			if f.Kind != c.kind || c.reason != "" && f.Reason != c.reason || f.Turn != 1002 || f.Fuel == 0 {
				t.Errorf("%d: %+v", c.what, f)
			}
			for _, cmds := range turns {
				isSend(t, cmds)
			}
			if !x.Poisoned() || x.Push(message(0)) {
				t.Errorf("%d: goes on in changed memory", c.what)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			push(t, x, 0)
			if out, turns, err := run(t, x, entry()); out.Failure != nil || len(turns) != 1 || err != nil {
				t.Errorf("%d: after the reset: %+v %v", c.what, out, err)
			}
			x.Put()
		}
	})
}

func TestThreeSendsThenTrapIsNone(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		push(t, x, 7)
		out, turns, err := run(t, x, entry())
		if out.Failure == nil || out.Turns != 0 || len(turns) != 0 || err != nil {
			t.Fatalf("%+v, turns %v, %v", out, turns, err)
		}
	})
}

func TestFlush(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		push(t, x, 0, 8, 0, 8, 16)
		out, turns, err := run(t, x, entry())
		if err != nil || out.Failure == nil || out.Turns != 4 {
			t.Fatalf("%+v %v", out, err)
		}
		var counts []int
		for _, cmds := range turns {
			counts = append(counts, len(cmds))
		}
		if !reflect.DeepEqual(counts, []int{1, 3, 1, 3}) {
			t.Errorf("commands a turn: %v", counts)
		}
	})
}

func TestOutboxLimit(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	for _, what := range []byte{0, 8} {
		in := entry()
		in.OutboxLimit = 13
		push(t, x, 0, what)
		out, turns, err := run(t, x, in)
		if err != nil || out.Failure == nil || out.Failure.Kind != abi.FailureABIViolation || out.Turns != 1 || len(turns) != 1 {
			t.Errorf("%d: %+v, %d turns, %v", what, out, len(turns), err)
		}
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEarlyReturn(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		push(t, x, 0, 6, 0, 0)
		out, turns, err := run(t, x, entry())
		if err != nil || out.Failure != nil || out.Turns != 2 || out.Unread != 2 || len(turns) != 2 {
			t.Fatalf("%+v %v", out, err)
		}
		if !out.LastTurn(1) || out.LastTurn(0) || out.Begun() != 2 {
			t.Error("the last turn is not known")
		}
	})
}

func TestFailCommand(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	push(t, x, 0, 12, 0)
	out, turns, err := run(t, x, entry())
	if err != nil || out.Failure != nil || out.Turns != 2 || out.Unread != 1 || x.Poisoned() {
		t.Fatalf("%+v %v", out, err)
	}
	if cmds := turns[1]; len(cmds) != 1 || cmds[0].Op != abi.OpFail || string(cmds[0].Reason) != "nope" {
		t.Errorf("the turn's commands: %+v", turns[1])
	}
	// The plain reader sees the send before it, too.
	push(t, x, 12)
	x.Run(entry(), &out)
	var ops []abi.Op
	var c abi.Command
	for {
		_, ok, err := x.NextCommand(&c)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		ops = append(ops, c.Op)
	}
	if !slices.Equal(ops, []abi.Op{abi.OpSend, abi.OpFail}) {
		t.Error(ops)
	}
}

// TestReaderRules drives the reader with outboxes that no SDK would write.
func TestReaderRules(t *testing.T) {
	send := string(abi.AppendSend(nil, 7, "", 0, 0, nil, nil))
	for _, c := range []struct {
		name         string
		data         string
		turns, begun int
		marked       bool
		strict       bool
		want         string // commands a turn, or the error
	}{
		{"nothing", "", 1, 1, false, true, "[0]"},
		{"without marker", send + send, 1, 1, false, true, "[2]"},
		{"with marker", send + "\xf6", 1, 1, false, true, "[1]"},
		{"two turns", send + "\xf6\xf6", 2, 2, true, true, "[1 0]"},
		{"marker missing", send, 1, 1, true, true, "[] 0 " + ErrMissingMarker.Error()},
		{"second marker missing", send + "\xf6" + send, 2, 2, true, true, "[1] 1 " + ErrMissingMarker.Error()},
		{"trailing", "\xf6" + send, 1, 1, false, true, "[] 0 " + ErrTrailing.Error()},
		{"trailing of a failed turn", "\xf6" + send, 1, 2, true, false, "[0]"},
		{"garbage in the second", send + "\xf6\xff", 2, 2, true, true, "[1] 1 the command at byte 8"},
		{"stash and on", "\x81\x0a\xf6\xf6", 2, 2, true, true, "[] 0 " + ErrBatchContinued.Error()},
		{"stash at last", "\xf6\x81\x0a\xf6", 2, 2, true, true, "[0 1]"},
		{"stash, then a failure", "\x81\x0a\xf6", 1, 2, true, false, "[] 0 " + ErrBatchContinued.Error()},
		{"after fail", "\x82\x0c\x61x" + send, 1, 1, false, true, "[] 0 " + ErrAfterFail.Error()},
		{"too many", strings.Repeat("\x81\x0d", abi.MaxTurnCommands+1), 1, 1, false, true, "[] 0 " + ErrTooManyCommands.Error()},
		{"just not too many", strings.Repeat("\x81\x0d", abi.MaxTurnCommands), 1, 1, false, true, "[65536]"},
	} {
		x := &Instance{image: &Image{}}
		x.reader = reader{data: []byte(c.data), turns: c.turns, begun: c.begun, marked: c.marked, strict: c.strict}
		counts := []int{}
		var cmds []abi.Command
		got := ""
		for {
			n, next, ok, err := x.NextTurn(cmds)
			if cmds = next; err != nil {
				got = fmt.Sprint(counts, " ", n, " ", err)
				if _, _, _, again := x.NextTurn(cmds); again != err {
					t.Errorf("%s: the error does not stay: %v", c.name, again)
				}
				break
			}
			if !ok {
				got = fmt.Sprint(counts)
				break
			}
			counts = append(counts, len(next))
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOneSend: what OneSend takes is what NextTurn would read and charge, and it takes nothing else.
func TestOneSend(t *testing.T) {
	to := abi.Ref(7 << 40)
	send := string(abi.AppendSend(nil, to, "", 0, 0, nil, []byte("hello")))
	path := string(abi.AppendSend(nil, 0, "/user/a", 0, 0, nil, nil))
	for _, c := range []struct {
		name   string
		data   string
		turns  int
		marked bool
		strict bool
		cheap  uint64
		one    bool
		plain  bool // the first turn, as NextTurn reads it
	}{
		{"a send", send + "\xf6", 1, true, true, workLook, true, true},
		{"an answer", string(abi.AppendSend(nil, to, "", 1<<40, abi.FlagReply, nil, nil)) + "\xf6", 1, true, true, workLook, true, true},
		{"two", send + send + "\xf6", 1, true, true, workLook, false, true},
		{"none", "\xf6", 1, true, true, workLook, false, true},
		{"to a path", path + "\xf6", 1, true, true, workLook, false, false},
		{"and a stash", send + "\x81\x0a\xf6", 1, true, true, workLook, false, false},
		{"two turns", send + "\xf6" + send + "\xf6", 2, true, true, workLook, false, true},
		{"a failed turn behind it", send + "\xf6" + send, 1, true, false, workLook, false, true},
		{"no marker", send, 1, true, true, workLook, false, false},
		{"more behind the marker", send + "\xf6\xf6", 1, true, true, workLook, false, true},
		{"without markers", send, 1, false, true, workLook, false, false},
		{"no turn", send + "\xf6", 0, true, true, workLook, false, false},
		{"it cannot pay", send + "\xf6", 1, true, true, CostSend, false, true},
	} {
		x := &Instance{image: &Image{}}
		x.work.cheap = c.cheap
		x.reader = reader{data: []byte(c.data), turns: c.turns, begun: c.turns, marked: c.marked, strict: c.strict}
		fresh := x.reader
		dst := make([]abi.Command, 0, 1)
		one := x.OneSend(&dst)
		if one != c.one {
			t.Errorf("%s: %v", c.name, one)
		}
		after, paid := x.reader, x.work
		x.reader, x.work = fresh, work{cheap: c.cheap}
		n, cmds, ok, err := x.NextTurn(nil)
		if x.Plain() != c.plain {
			t.Errorf("%s: plain is %v", c.name, x.Plain())
		}
		if !one {
			if after.at != 0 || after.turn != 0 || paid.total != 0 || len(dst) != 0 {
				t.Errorf("%s: something was read or paid", c.name)
			}
			continue
		}
		if n != 0 || !ok || err != nil || !reflect.DeepEqual(cmds, dst) || !reflect.DeepEqual(after, x.reader) || paid != x.work {
			t.Errorf("%s: %+v %+v %+v, NextTurn has %+v %+v %+v", c.name, dst, after, paid, cmds, x.reader, x.work)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\x86\x00\x07\x00\x00\xf6\x41\xf6\xf6"), 1, 1, true, true)
	f.Add([]byte("\x82\x0c\x61x\xf6\x81\x0a"), 2, 2, true, false)
	f.Fuzz(func(t *testing.T, data []byte, turns, more int, marked, strict bool) {
		turns, more = turns&7, more&1
		x := &Instance{image: &Image{}}
		fresh := reader{data: data, turns: turns, begun: turns + more, marked: marked, strict: strict}
		x.reader = fresh
		// Both ways of reading must agree on how many turns there are and on what
		// is wrong.
		var whole []turn
		var first error
		for {
			n, cmds, ok, err := x.NextTurn(nil)
			first = err
			if !ok {
				break
			}
			if n != len(whole) || n >= turns {
				t.Fatalf("turn %d of %d comes as %d", len(whole), turns, n)
			}
			whole = append(whole, cmds)
		}
		x.reader, x.work.cheap = fresh, workLook
		only := make([]abi.Command, 0, 1)
		if x.OneSend(&only) && (first != nil || len(whole) != 1 || !reflect.DeepEqual(whole[0], turn(only))) {
			t.Fatalf("%+v alone, of %+v %v", only, whole, first)
		}
		if !marked {
			return // then a missing end is not an error, and the two count alike only with it
		}
		x.reader = fresh
		var c abi.Command
		counts := make([]int, turns+1)
		for {
			n, ok, err := x.NextCommand(&c)
			if !ok {
				if (err == nil) != (first == nil) || err == nil && len(whole) != turns {
					t.Fatalf("%v against %v, %d turns", err, first, len(whole))
				}
				break
			}
			counts[n]++
		}
		for n, cmds := range whole {
			if len(cmds) != counts[n] && !(len(cmds) == 1 && cmds[0].Op == abi.OpFail) {
				t.Fatalf("turn %d has %d and %d commands", n, len(cmds), counts[n])
			}
		}
	})
}

// countYields counts quanta.
type countYields struct {
	n    int
	each func(n int)
}

func (c *countYields) Yield() bool {
	c.n++
	if c.each != nil {
		c.each(c.n)
	}
	return true
}

// jitter is a clock that moves by anything up to 3 ms whenever it is looked at.
type jitter struct {
	clock.Clock
	rnd *rand.Rand
	now time.Time
}

func (j *jitter) Now() time.Time {
	j.now = j.now.Add(time.Duration(j.rnd.IntN(3_000_000) >> j.rnd.IntN(20)))
	return j.now
}

// TestFuelIsDeterministic: the same turns spend the same fuel on every engine,
// with every schedule of grants, and fail for fuel at the same place.
func TestFuelIsDeterministic(t *testing.T) {
	if race.Enabled {
		t.Skip("one turn after another: nothing to race")
	}
	var want []string
	for name, cfg := range setups {
		for seed, quantum := range []uint64{1000, 5000, 200_000, 1 << 40, 1 << 40, 1 << 40} {
			cl := clock.Clock(clock.NewVirtual(time.Unix(1000, 0))) // stands still: every look yields
			if quantum == 1<<40 {
				cl = &jitter{clock.Real(), rand.New(rand.NewPCG(uint64(seed), 1)), time.Unix(1000, 0)}
			}
			e := newEngine(t, cfg.WithQuantum(quantum).WithClock(cl))
			x := get(t, load(t, e, "echo", ImageConfig{}))
			var got []string
			for _, fuel := range []uint64{0, 500_000, 900, 50_000_000} {
				in := entry()
				in.TurnFuel = fuel
				yields := &countYields{}
				in.Yield = yields
				push(t, x, 0, 15, 8, 15, 0)
				out, _, err := run(t, x, in)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d turns, fuel %d, failure %v", out.Turns, out.Fuel, out.Failure))
				if f := out.Failure; f != nil {
					got = append(got, fmt.Sprintf("spent %d", f.Fuel))
				}
				if quantum == 1000 && fuel == 0 && yields.n < 1000 {
					t.Errorf("%d yields", yields.n)
				}
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			x.Put()
			if want == nil {
				want = got
				t.Log(strings.Join(got, "\n"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, quantum %d:\n%s\nwant\n%s", name, quantum, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	e := newEngine(t, NewConfig().WithClock(virtual).WithQuantum(10_000))
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	in := &Entry{Deadline: time.Second}
	// What others take does not count: Yield moves the clock, and is not to blame.
	in.Yield = &countYields{each: func(n int) { virtual.Advance(100 * time.Millisecond) }}
	push(t, x, 15)
	if out, _, _ := run(t, x, in); out.Failure != nil {
		t.Fatalf("blamed for the time of others: %v", out.Failure)
	}
	// Time that passes while the turn itself runs does count: here another
	// goroutine moves the clock.
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				virtual.Advance(time.Millisecond)
			}
		}
	}()
	in.Yield = nil
	push(t, x, 0, 2)
	out, turns, _ := run(t, x, in)
	close(stop)
	<-done
	if f := out.Failure; f == nil || f.Kind != abi.FailureDeadline || f.Reason != "deadline 1s passed" || len(turns) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestKill(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		x.Kill("too early") // idle: no effect
		push(t, x, 0)
		if out, _, _ := run(t, x, entry()); out.Failure != nil {
			t.Fatal("a kill reached an idle instance:", out.Failure)
		}
		var running atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !running.Load() {
				time.Sleep(time.Microsecond)
			}
			x.Kill("enough")
		}()
		in := &Entry{Yield: &countYields{each: func(int) { running.Store(true) }}}
		push(t, x, 0, 2)
		out, turns, _ := run(t, x, in)
		<-done
		if f := out.Failure; f == nil || f.Kind != abi.FailureKilled || f.Reason != "enough" || len(turns) != 1 {
			t.Errorf("%+v", out)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{MemoryLimit: 1 << 20})
		x := get(t, i)
		defer x.Put()
		push(t, x, 4, 4)
		if out, _, _ := run(t, x, entry()); out.Failure != nil || x.MemoryBytes() != 4<<16 {
			t.Fatalf("%v, %d bytes", out.Failure, x.MemoryBytes())
		}
		push(t, x, 5)
		out, _, _ := run(t, x, entry())
		if f := out.Failure; f == nil || f.Kind != abi.FailureMemoryLimit || f.Reason != "more than 1024 KiB of memory" {
			t.Errorf("%+v", f)
		}
		if err := x.Reset(); err != nil || x.MemoryBytes() != 2<<16 {
			t.Fatalf("%v, %d bytes after the reset", err, x.MemoryBytes())
		}
		in := entry()
		in.MemoryLimit = 3 << 16
		push(t, x, 4, 4)
		if out, _, _ := run(t, x, in); out.Failure != nil || x.MemoryBytes() != 3<<16 {
			t.Errorf("beyond the entry's limit: %v, %d bytes", out.Failure, x.MemoryBytes())
		}
	})
}

// TestReset: whatever a life has changed, the next one starts like the first.
func TestReset(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		for _, cfg := range []ImageConfig{{}, {NoFreeze: true}} {
			i := load(t, e, "echo", cfg)
			x := get(t, i)
			count := func() uint64 {
				push(t, x, 10)
				out, turns, err := run(t, x, entry())
				if out.Failure != nil || err != nil {
					t.Fatal(out.Failure, err)
				}
				return turns[0][0].Correlation
			}
			for _, life := range [][]byte{{0}, {10, 10}, {1}, {4, 4, 10}, {13, 10}, {14, 10}, {4, 1}, {3}, {14, 13, 2}, {8, 16}, {10}} {
				if a, b := count(), count(); a != 2 || b != 4 {
					t.Fatalf("%+v: counts %d and %d", cfg, a, b)
				}
				if x.MemoryBytes() != 2<<16 {
					t.Fatalf("%d bytes", x.MemoryBytes())
				}
				push(t, x, life...)
				in := entry()
				in.TurnFuel = 1_000_000
				run(t, x, in)
				push0 := x.Pending()
				if push0 != 0 {
					t.Fatal("pending", push0)
				}
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
				prepare(t, x)
			}
			x.Put()
			if y := get(t, i); cfg.NoFreeze == (x == y) {
				t.Errorf("%+v: pooled is %v", cfg, x == y)
			} else {
				y.Put()
			}
		}
	})
}

func TestLog(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		in := entry()
		lines := &logLines{}
		in.Log = lines
		push(t, x, 11, 11, 9)
		out, _, _ := run(t, x, in)
		if !slices.Equal(*lines, logLines{"info: out of coffee", "info: out of coffee"}) {
			t.Errorf("%q", *lines)
		}
		if f := out.Failure; f == nil || f.Kind != abi.FailureGuestPanic || f.Message != "out of coffee" {
			t.Errorf("%+v", f)
		}
	})
}

// TestLogsAreBounded: a turn logs so many lines and bytes; what is dropped beyond is told
// once, and the next turn may log again.
func TestLogsAreBounded(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	const told = "warn: this turn has logged too much; the rest is dropped"
	for _, c := range []struct {
		name   string
		size   int // of a line
		logged int // lines
	}{
		{"lines", 10, MaxLogLines},
		{"bytes", 1000, MaxLogBytes / 1000},
		{"long lines", 3 * MaxLogLine, MaxLogBytes / MaxLogLine},
	} {
		lines := &logLines{}
		x.in = &Entry{Log: lines}
		for turn := range 2 {
			*lines = nil
			for range 2 * MaxLogLines {
				x.logLine(abi.LogInfo, bytes.Repeat([]byte{'x'}, c.size))
			}
			if n := len(*lines); n != c.logged+1 || (*lines)[n-1] != told {
				t.Errorf("%s, turn %d: %d lines, want %d and %q", c.name, turn, n, c.logged, told)
			}
			if got := len((*lines)[0]) - len("info: "); got != min(c.size, MaxLogLine) {
				t.Errorf("%s: a line of %d bytes", c.name, got)
			}
			x.logged.phase++ // as if what was logged belonged to another turn
		}
	}
	x.in = nil
}

func TestStackNamesFunctions(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "echo", ImageConfig{}))
		defer x.Put()
		push(t, x, 1)
		out, _, _ := run(t, x, entry())
		if f := out.Failure; f == nil || !slices.Equal(f.Stack, []string{"act", "handle", "turn"}) {
			t.Errorf("%q", f.Stack)
		}
	})
}

func TestFunctionName(t *testing.T) {
	for line, want := range map[string]string{
		".main.run(i32) i32":                    ".main.run",
		".runtime.(*mcache).refill(i32,i32)":    ".runtime.(*mcache).refill",
		".x.(*T).f(i32) (i32,i64)":              ".x.(*T).f",
		".f()":                                  ".f",
		"wasi_snapshot_preview1.proc_exit(i32)": "wasi_snapshot_preview1.proc_exit",
		"odd":                                   "odd",
		"(":                                     "(",
	} {
		if got := functionName(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestRunOfNothing(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	out := Result{Turns: 5}
	x.Run(entry(), &out)
	if out != (Result{}) {
		t.Errorf("%+v", out)
	}
}

// TestTurnsDoNotAllocate pins the promise of the turn path.
func TestTurnsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("pools lose what they hold, on purpose")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, name := range []string{"compiler", "interpreter"} {
		if name == "interpreter" {
			continue // wazero's own interpreter allocates for each call
		}
		e := newEngine(t, setups[name])
		x := get(t, load(t, e, "echo", ImageConfig{}))
		in, msg := entry(), message(0)
		var out Result
		var c abi.Command
		var cmds []abi.Command
		turn := func() {
			for range 3 {
				if !x.Push(msg) {
					t.Fatal("does not fit")
				}
			}
			x.Run(in, &out)
			if _, ok, _ := x.NextCommand(&c); !ok || out.Turns != 3 {
				t.Fatal("no command")
			}
			for {
				_, next, ok, err := x.NextTurn(cmds)
				if cmds = next; !ok || err != nil {
					break
				}
			}
		}
		turn()
		if n := testing.AllocsPerRun(200, turn); n != 0 {
			t.Errorf("%s: %v allocations a turn", name, n)
		}
		reset := func() {
			turn()
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		reset()
		if n := testing.AllocsPerRun(200, reset); n != 0 {
			t.Errorf("%s: %v allocations a reset", name, n)
		}
		x.Put()
	}
}

func TestViolation(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	in := entry()
	in.FirstTurn = 10
	f := x.Violation(in, 2, errors.New("forged"))
	if f.Kind != abi.FailureABIViolation || f.Turn != 12 || f.Reason != "forged" || !x.Poisoned() {
		t.Errorf("%+v", f)
	}
	if x.Push(message(0)) {
		t.Error("a poisoned instance takes envelopes")
	}
	var out Result
	x.Run(in, &out)
	if out.Failure != nil {
		t.Error("nothing was pending")
	}
}
