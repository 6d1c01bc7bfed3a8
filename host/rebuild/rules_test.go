package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// 400 actors whose records take 5 ms to sync are done after a few syncs, and nothing leaves any of them before the
// sync of its turn.
func TestGroupCommit(t *testing.T) {
	const actors = 400
	w := newWorld(t, puppetImage(t), nil)
	defer w.end()
	turned := map[abi.Ref]int{} // where the last turn is in the log
	left := 0
	w.j.seen = func(k int) {
		var r record.Record
		if err := cbor.Unmarshal(w.j.log[k-1], &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Kind == record.Turned:
			turned[r.Actor] = k
		case r.Kind == record.Accepted && r.Message.Sender != 0:
			if left++; turned[r.Message.Sender] > w.j.durable {
				t.Fatalf("a message of %016x has left, whose turn is record %d; %d are durable", uint64(r.Message.Sender), turned[r.Message.Sender], w.j.durable)
			}
		}
	}
	if _, err := w.Spawn("sink", puppet(puppetImage(t))); err != nil {
		t.Fatal(err)
	}
	for i := range actors {
		ref, err := w.Spawn(fmt.Sprint("a", i), puppet(puppetImage(t)))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.Tell(ref, script(rec(0, 0, send("/user/sink", text("x"))))); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.RunUntilIdle(1 << 20)
	if left > 0 {
		t.Errorf("%d messages have left before the first sync", left)
	}
	for range 6 {
		w.clock.Advance(w.j.sync)
		w.RunUntilIdle(1 << 20)
	}
	if left != 3*actors || w.j.syncs > 6 {
		t.Errorf("%d of %d messages have left after %d syncs", left, 3*actors, w.j.syncs)
	}
}

// Killed turns, failed turns and those before them in the same entry are told, before anything follows from them.
func TestFailedAndKilledTurnsAreRecorded(t *testing.T) {
	w := newWorld(t, puppetImage(t), nil)
	defer w.end()
	runTwin(t, w)
	records, err := w.j.read(len(w.j.log))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, r := range records {
		if e := r.Entry; e != nil && e.Failure != nil {
			seen = append(seen, fmt.Sprintf("%d of %d: %v, cut %v", e.Done, len(e.Mail), e.Failure.Kind, e.Cut != nil))
		}
	}
	slices.Sort(seen)
	want := []string{"0 of 2: trap, cut false", "1 of 2: killed, cut true"}
	for _, s := range []string{"killed, cut true", "trap, cut false"} {
		if !slices.ContainsFunc(seen, func(x string) bool { return strings.HasSuffix(x, s) }) {
			t.Errorf("no turn %q: %q (such as %q)", s, seen, want)
		}
	}
	if !slices.ContainsFunc(seen, func(x string) bool { return !strings.HasPrefix(x, "0 ") }) {
		t.Errorf("no turns before a failed one: %q", seen)
	}
}

// What is not repeated as it was is noticed: by the outbox and the numbers, or, where these do not show it, because
// memory is another one.
func TestBrokenRules(t *testing.T) {
	puppets := puppetImage(t)
	w := newWorld(t, puppets, nil)
	defer w.end()
	x := runTwin(t, w)
	whole := func() []record.Record {
		records, err := w.j.read(len(w.j.log))
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	// where is the first record of a sort.
	where := func(is func(*record.Record) bool) int {
		for i, r := range whole() {
			if is(&r) {
				return i
			}
		}
		t.Fatal("there is no such record")
		return 0
	}
	batch := where(func(r *record.Record) bool {
		return r.Entry != nil && len(r.Entry.Mail) > 2 && r.Entry.Done == len(r.Entry.Mail) && len(r.Entry.Outbox) > r.Entry.Done
	})
	timed := where(func(r *record.Record) bool {
		return r.Entry != nil && len(r.Entry.Mail) == 0 && len(r.Entry.Outbox) == 2
	})
	upTo := func(k int, change func(rs []record.Record) []record.Record) ([]record.Record, abi.Ref) {
		rs := whole()[:k+1]
		return change(rs), rs[k].Actor
	}
	for what, c := range map[string]struct {
		at     int
		change func(rs []record.Record) []record.Record
		error  string // empty: memory is another one
	}{
		"nothing": {batch, func(rs []record.Record) []record.Record { return rs }, "none"},
		"other batches": {batch, func(rs []record.Record) []record.Record {
			r := rs[batch]
			e := *r.Entry
			first, rest := e, e
			n := slices.Index(e.Outbox, 0) + 1 // the commands of its first turn
			first.Mail, first.Done, first.Outbox = e.Mail[:1], 1, e.Outbox[:n]
			rest.Mail, rest.Done, rest.Outbox, rest.First = e.Mail[1:], e.Done-1, e.Outbox[n:], e.First+1
			a, b := r, r
			a.Entry, b.Entry = &first, &rest
			return append(rs[:batch], a, b)
		}, ""},
		"another time": {timed, func(rs []record.Record) []record.Record { rs[timed].Time++; return rs }, ""}, // a timer is due later
		"another command": {batch, func(rs []record.Record) []record.Record {
			rs[batch].Entry.Outbox[slices.IndexFunc(rs[batch].Entry.Outbox, func(n uint32) bool { return n != 0 })]++
			return rs
		}, "command 0 is another one"},
		"a message that is missing": {batch, func(rs []record.Record) []record.Record {
			i := slices.IndexFunc(rs, func(r record.Record) bool { return r.Kind == record.Accepted && r.Actor == rs[batch].Actor })
			return slices.Delete(rs, i, i+1)
		}, "about"},
		"a turn that is missing": {len(whole()) - 1, func(rs []record.Record) []record.Record { return slices.Delete(rs, batch, batch+1) }, "turn"},
	} {
		t.Run(what, func(t *testing.T) {
			records, of := upTo(c.at, c.change)
			r, now, err := rebuilt(t, records, puppets, nil)
			if c.error != "" && c.error != "none" {
				if err == nil || !strings.Contains(err.Error(), c.error) {
					t.Fatalf("%v, want %q", err, c.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			then := newCounts()
			for i := range whole()[:c.at+1] {
				then.add(&whole()[i])
			}
			if equal := same(x.states[of][then.own[of]], rebuild.Look(now.System, of)); equal != (c.error == "none") {
				t.Errorf("equal to the twin: %v", equal)
			}
			r.Release()
			now.end()
		})
	}
}

// After a crash everything goes on: what was accepted is handled once, and what the last turns have sent arrives once,
// wherever the crash was, and also after a second one.
func TestItGoesOnAfterTheCrash(t *testing.T) {
	puppets := puppetImage(t)
	add := script(rec(recAdd, 1))
	forward := script(rec(recAdd, 1), rec(0, 0, send("/user/other", add)))
	const told = 12
	tell := func(w *world, n int) {
		ref, err := w.Lookup("/user/wat")
		if err != nil {
			w.t.Fatal(err)
		}
		for range n {
			if err := w.Tell(ref, forward); err != nil {
				w.t.Fatal(err)
			}
			w.Step()
		}
	}
	rest := func(w *world) {
		for w.RunUntilIdle(1<<20) > 0 || w.j.flush() {
		}
	}
	w := newWorld(t, puppets, nil)
	defer w.end()
	for _, name := range []string{"wat", "other"} {
		w.props[name] = puppet(puppets)
		if _, err := w.Spawn(name, w.props[name]); err != nil {
			t.Fatal(err)
		}
	}
	tell(w, told/2)
	for range 3 {
		w.RunUntilIdle(1 << 20)
		w.clock.Advance(w.j.sync)
	}
	tell(w, told/2)
	rest(w)
	first, err := w.j.read(len(w.j.log))
	if err != nil {
		t.Fatal(err)
	}
	count := func(w *world, name string) string {
		ref, err := w.Lookup("/user/" + name)
		if err != nil {
			w.t.Fatal(err)
		}
		p, err := w.Request(ref, script(rec(recReport, 0)))
		if err != nil {
			w.t.Fatal(err)
		}
		rest(w)
		select {
		case m := <-p.Answer():
			return fmt.Sprint(m.Payload)
		default:
			return "no answer"
		}
	}
	want := fmt.Sprint([]byte{told})
	// after says what two actors have counted when the system goes on and the rest is sent, and what is recorded.
	after := func(records []record.Record) []record.Record {
		t.Helper()
		r, now, err := prepare(t, records, map[string]host.Props{"wat": puppet(puppets), "other": puppet(puppets)})
		if err != nil {
			t.Fatal(err)
		}
		defer now.end()
		r.Release()
		rest(now)
		came := 0
		begun := map[string]bool{}
		for i := range records {
			switch r := &records[i]; {
			case r.Kind == record.Began:
				begun[r.Life.Path[len("wasm://w/user/"):]] = true
			case r.Kind == record.Accepted && r.Message.Sender == 0:
				came++
			}
		}
		for _, name := range []string{"wat", "other"} {
			if !begun[name] {
				if _, err := now.Spawn(name, puppet(puppets)); err != nil {
					t.Fatal(err)
				}
			}
		}
		tell(now, told-came)
		rest(now)
		n := len(now.j.log)
		for _, name := range []string{"wat", "other"} {
			if got := count(now, name); got != want {
				t.Errorf("killed after %d records: %s has counted %s, want %s", len(records), name, got, want)
			}
		}
		more, err := now.j.read(n)
		if err != nil {
			t.Fatal(err)
		}
		whole := append(slices.Clone(records), more...)
		position := map[abi.Ref]uint64{}
		for _, r := range whole {
			if r.Kind == record.Accepted {
				if position[r.Actor]++; r.Message.Position != position[r.Actor] {
					t.Errorf("message %d of an actor has position %d", position[r.Actor], r.Message.Position)
				}
			}
		}
		return whole
	}
	for k := range len(first) + 1 {
		second := after(first[:k])
		for m := k; m <= len(second); m += 3 {
			after(second[:m])
		}
		if t.Failed() {
			t.Fatal(show(first[:k]))
		}
	}
}

// What was refused when it was sent, or handed on, does not arrive later.
func TestWhatWasRefusedStaysRefused(t *testing.T) {
	add := script(rec(recAdd, 1))
	sends := script(rec(0, 0, send("/user/other", add)))
	t.Run("sent", func(t *testing.T) { staysRefused(t, "wat", sends, add) })
	t.Run("sent last", func(t *testing.T) { staysRefused(t, "wat", sends, nil) })
	t.Run("handed on", func(t *testing.T) { staysRefused(t, "via", add, "done") })
	t.Run("handed on last", func(t *testing.T) { staysRefused(t, "via", add, nil) })
}

// staysRefused has an actor be told a message three times, which it sends on to one that has room for one, and then another message, with which
// it is done with those; nil: there is none, so that only what was recorded says what was refused.
func staysRefused(t *testing.T, by string, message, last any) {
	puppets := puppetImage(t)
	cast := map[string]host.Props{
		"wat": puppet(puppets), "other": puppet(puppets).WithLimits(host.Limits{Mailbox: 1}),
		"via": host.Func(func(ctx *host.Context, m host.Message) error {
			var text string
			if m.Kind != abi.KindMessage || m.Decode(&text) == nil {
				return nil
			}
			to, err := ctx.System().Lookup("/user/other")
			if err == nil {
				_ = ctx.Forward(to) // or there is no room
			}
			return err
		}),
	}
	w := newWorld(t, puppets, nil)
	defer w.end()
	at := map[string]host.Ref{}
	rest := func(w *world) {
		for w.RunUntilIdle(1<<20) > 0 || w.j.flush() {
		}
	}
	for _, name := range []string{"wat", "other", "via"} {
		ref, err := w.Spawn(name, cast[name])
		if err != nil {
			t.Fatal(err)
		}
		at[name] = ref
		rest(w)
	}
	if err := w.Operate().Pause(at["other"], false); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first one fills the mailbox
		if err := w.Tell(at[by], message); err != nil {
			t.Fatal(err)
		}
		rest(w)
	}
	if err := w.Operate().Unpause(at["other"], false); err != nil {
		t.Fatal(err)
	}
	rest(w)
	if last != nil {
		if err := w.Tell(at[by], last); err != nil {
			t.Fatal(err)
		}
		rest(w)
	}
	records, err := w.j.read(len(w.j.log))
	if err != nil {
		t.Fatal(err)
	}
	r, now, err := prepare(t, records, cast)
	if err != nil {
		t.Fatal(err)
	}
	defer now.end()
	r.Release()
	rest(now)
	p, err := now.Request(at["other"], script(rec(recReport, 0)))
	if err != nil {
		t.Fatal(err)
	}
	rest(now)
	if m := <-p.Answer(); fmt.Sprint(m.Payload) != "[1]" {
		t.Errorf("it has counted %v", m.Payload)
	}
}

// A child that may not have what was wanted for it does not begin, also where the log ends before that was said.
func TestWhatMayNotBeSpawnedIsNotSpawnedLater(t *testing.T) {
	puppets := puppetImage(t)
	cast := map[string]host.Props{"wat": puppet(puppets)}
	w := newWorld(t, puppets, nil)
	defer w.end()
	rest := func(w *world) {
		for w.RunUntilIdle(1<<20) > 0 || w.j.flush() {
		}
	}
	ref, err := w.Spawn("wat", cast["wat"])
	if err != nil {
		t.Fatal(err)
	}
	rest(w)
	var keys secret.Keys
	key := secret.Secret(w.Secret())
	child := abi.ChildRef(keys.Child(&key, ref.UID()), 0, 0)
	if err := w.Tell(ref, script(rec(0, 0, abi.AppendSpawn(nil, child, "puppet", "a", nil, []byte{0xa0})))); err != nil {
		t.Fatal(err)
	}
	rest(w)
	undecided := false
	for k := range len(w.j.log) + 1 {
		records, err := w.j.read(k)
		if err != nil {
			t.Fatal(err)
		}
		r, now, err := prepare(t, records, cast)
		if err != nil {
			t.Fatalf("%d records: %v", k, err)
		}
		r.Release()
		rest(now)
		if _, err := now.Lookup("/user/wat/a"); err == nil {
			t.Errorf("after %d records it has begun:%s", k, show(records))
		}
		undecided = undecided || k > 0 && records[k-1].Kind == record.Turned && records[k-1].Actor == ref.UID()
		now.end()
	}
	if !undecided {
		t.Error("no log ends with the spawn")
	}
}

// A recorder that gives up answers with an error, and closing the system comes to an end.
func TestARecorderThatGivesUp(t *testing.T) {
	c := host.NewVirtualClock(start)
	j := &broken{}
	s, err := host.New(host.NewConfig("w").WithClock(c).WithManual().WithRecorder(j))
	if err != nil {
		t.Fatal(err)
	}
	events := s.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	if _, err := s.Spawn("a", host.Func(func(*host.Context, host.Message) error { return nil })); err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(100)
	if e := <-events.C(); e.Failure.Kind != abi.FailureInit || !strings.Contains(e.Failure.Reason, "the disk is full") {
		t.Errorf("%v", e.Failure)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Turn(t *record.Turn) { t.Answer(errors.New("the disk is full")) }
func (broken) Note(*record.Record) {}

// An alarm that rings while the turn that sets another one in its place is carried out is not taken for the new one.
func TestAlarmsThatRingMeanwhile(t *testing.T) {
	puppets := puppetImage(t)
	cast := map[string]host.Props{"wat": puppet(puppets, rec(byte(abi.KindTimer), 0, send("/user/other", script(rec(recAdd, 1)))),
		rec(byte(abi.KindReceiveTimeout), 0, send("/user/other", script(rec(recAdd, 1))))), "other": puppet(puppets)}
	for name, c := range map[string]struct{ first, second []byte }{
		"a timer":           {abi.AppendTimer(nil, 1, 8*ms, 0, nil), abi.AppendTimer(nil, 1, 3600_000*ms, 0, nil)},
		"one that is later": {abi.AppendTimer(nil, 1, 8*ms, 0, nil), abi.AppendTimer(nil, 1, 2*ms, 0, nil)},
		"a receive timeout": {abi.AppendReceiveTimeout(nil, 8*ms), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, puppets, nil)
			defer w.end()
			at := map[string]host.Ref{}
			for _, name := range []string{"wat", "other"} {
				ref, err := w.Spawn(name, cast[name])
				if err != nil {
					t.Fatal(err)
				}
				at[name] = ref
				for w.RunUntilIdle(1<<20) > 0 || w.j.flush() {
				}
			}
			for _, c := range [][]byte{c.first, c.second} {
				if err := w.Tell(at["wat"], script(rec(0, 0, c))); err != nil {
					t.Fatal(err)
				}
				w.RunUntilIdle(1 << 20)
				w.clock.Advance(w.j.sync) // the first alarm rings before the second turn is carried out
				w.RunUntilIdle(1 << 20)
			}
			records, err := w.j.read(len(w.j.log))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(records, func(r record.Record) bool { return r.Message != nil && r.Message.Kind != abi.KindMessage }) {
				t.Fatal("no alarm has rung")
			}
			r, now, err := prepare(t, records, cast)
			if err != nil {
				t.Fatal(err)
			}
			defer now.end()
			want, got := rebuild.Look(w.System, at["wat"].UID()), rebuild.Look(now.System, at["wat"].UID())
			if !same(want, got) || fmt.Sprintf("%+v", want.Mail) != fmt.Sprintf("%+v", got.Mail) {
				t.Errorf("got %s %+v\nwant %s %+v", brief(got), got.Mail, brief(want), want.Mail)
			}
			r.Release()
		})
	}
}

// unstoppable has alarms that ring already when they are stopped.
type unstoppable struct{ host.Clock }

func (c unstoppable) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.Clock.AfterFunc(d, f)
	return rings{}
}

type rings struct{}

func (rings) Stop() bool { return false }

// The alarms of a start are long due, and ring while their records are repeated. A timer with a period goes on with one period for all that,
// and what it has led to can be repeated.
func TestAlarmsThatRingWhileTheyAreRepeated(t *testing.T) {
	puppets := puppetImage(t)
	const period = 20 * time.Millisecond
	props := puppet(puppets, rec(byte(abi.KindTimer), 0, send("/user/nobody", []byte{1})))
	w := newWorld(t, puppets, nil)
	defer w.end()
	ref, err := w.Spawn("wat", props)
	if err != nil {
		t.Fatal(err)
	}
	run := func(w *world) {
		for w.RunUntilIdle(1<<20) > 0 || w.j.flush() {
		}
	}
	run(w)
	if err := w.Tell(ref, script(rec(0, 0, abi.AppendTimer(nil, 1, uint64(period), uint64(period), nil)))); err != nil {
		t.Fatal(err)
	}
	run(w)
	const before, after = 4, 10
	for range before {
		w.clock.Advance(period)
		run(w)
	}
	var all []record.Record
	for life := range 3 {
		more, err := w.j.read(len(w.j.log))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
		now := &world{t: t, clock: host.NewVirtualClock(w.clock.Now())}
		now.j = newJournal(now.clock, 5*time.Millisecond)
		r, err := Prepare(config(now.clock, now.j).WithClock(unstoppable{now.clock}), all, func(*record.Life) (*host.Props, error) { return &props, nil })
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		now.System = r.System()
		defer now.end()
		turns := rebuild.Look(now.System, ref.UID()).Turns
		r.Release()
		now.clock.Advance(0)
		run(now)
		for range after {
			now.clock.Advance(period)
			run(now)
		}
		if got := rebuild.Look(now.System, ref.UID()).Turns - turns; got != after {
			t.Errorf("life %d: %d turns in %d periods", life, got, after)
		}
		w = now
	}
}

// TestWhoIsRemoved: only the order of a supervisor says that a child was taken away, whatever reasons guests give.
func TestWhoIsRemoved(t *testing.T) {
	for _, c := range []struct {
		what string
		how  sysmail.How
		want bool
	}{
		{"stop", sysmail.Order, true},
		{"stop", 0, false},
		{"quit", 0, false},
		{"child-stopped", sysmail.ByItself, false},
		{"terminated", 0, false},
	} {
		r := record.Record{Kind: record.Took, Actor: 7, Signal: &record.Signal{What: c.what, How: uint16(c.how), Reason: rebuild.RemovedReason}}
		if got := fates([]record.Record{r})[7].Removed; got != c.want {
			t.Errorf("%s, %v: %v", c.what, c.how, got)
		}
	}
}
