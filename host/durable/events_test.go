package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/abi"
	persistrules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
)

// tally is an actor in Go that keeps its sum as events.
type tally struct {
	log *persist.Log
	sum int
}

func (x *tally) Apply(e *persist.Event) error {
	var n int
	err := host.Message{Payload: e.Payload}.Decode(&n)
	x.sum += n
	return err
}

func (x *tally) Receive(ctx *host.Context, m host.Message) error {
	var n int
	if m.Decode(&n) != nil {
		return host.ErrUnhandled
	}
	if n != 0 {
		if err := x.log.Persist("tally.added@1", n, fmt.Sprint("n", n%2)); err != nil {
			return err
		}
	}
	return ctx.Reply(x.sum)
}

func (x *tally) Snapshot() (any, error) { return x.sum, nil }

func (x *tally) Restore(_ uint16, b host.Raw) error { return host.Message{Payload: b}.Decode(&x.sum) }

var tallying = persist.Definition{Schema: new(persist.Schema).Type("tally.added", 1), Retention: persist.Retention{Every: 7, Keep: 2}}

// eventful is a system with a store and an actor "t" that keeps events.
type eventful struct {
	*world
	journal *persist.Journal
}

func openEvents(t testing.TB, dir string, names []string, change ...func(*Options)) (*eventful, error) {
	t.Helper()
	w, err := open(t, dir, Props{}, change...)
	if err != nil {
		return nil, err
	}
	x := &eventful{world: w}
	if x.journal, err = w.store.Events(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := w.Spawn(name, x.journal.Props(tallying, func(l *persist.Log) persist.Actor { return &tally{log: l} }, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return x, nil
}

func mustOpenEvents(t testing.TB, dir string, names []string, change ...func(*Options)) *eventful {
	t.Helper()
	x, err := openEvents(t, dir, names, change...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// add has an actor add n and returns the sum.
func (x *eventful) add(name string, n int) (sum int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ref, err := x.Lookup("/user/" + name)
	if err != nil {
		return 0, err
	}
	a, err := x.Ask(ctx, ref, n)
	if err == nil {
		err = a.Decode(&sum)
	}
	return sum, err
}

func (x *eventful) numbers(id string) (list []uint64) {
	for e, err := range x.journal.ByID(context.Background(), id, persist.Query{}) {
		if err != nil {
			x.t.Fatal(err)
		}
		list = append(list, e.Number)
	}
	return list
}

// Events outlive the process and the log: what a checkpoint gives back is in the index, and a start without the index, or with
// an older one, is refused.
func TestEventsOutliveTheLog(t *testing.T) {
	dir := t.TempDir()
	short := func(o *Options) { o.space = &space{} } // with more room files may stay, and with them what is in the index
	x := mustOpenEvents(t, dir, []string{"t", "idle"}, short)
	if _, err := x.add("idle", 5); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 300; i++ {
		if sum, err := x.add("t", 1); err != nil || sum != i {
			t.Fatal(sum, err)
		}
		if i%100 == 0 {
			x.checkpoint()
		}
		if i == 150 { // a life has files of its own: whole ones are given back
			x.close()
			x = mustOpenEvents(t, dir, []string{"t", "idle"}, short)
		}
	}
	for r, err := range x.store.log.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		if v, err := decode(r.Data); err == nil {
			if h, is := v.(*happened); is && strings.Contains(string(h.data), "/user/idle") {
				t.Error("the log still has the event of the idle actor")
			}
		}
	}
	x.close()
	x = mustOpenEvents(t, dir, []string{"t", "idle"}, short)
	for name, want := range map[string]int{"t": 300, "idle": 5} {
		if sum, err := x.add(name, 0); err != nil || sum != want {
			t.Error(name, sum, err)
		}
	}
	if n := x.numbers("/user/t"); len(n) != 300 || n[299] != 300 {
		t.Error(n)
	}
	x.close()
}

// A power failure at any moment takes no event whose answer was seen, and leaves none that is not in the log, nor the log or
// the index behind the other.
func TestEventsAfterAPowerFailure(t *testing.T) {
	dir, fs := t.TempDir(), vfs.NewStrictMem()
	with := func(o *Options) { o.Index = fs }
	sum := 0
	for round := range 12 {
		x := mustOpenEvents(t, dir, []string{"t"}, with)
		got, err := x.add("t", 0)
		if err != nil || got != sum {
			t.Fatalf("round %d: %d instead of %d: %v", round, got, sum, err)
		}
		for range 10 + round {
			if sum, err = x.add("t", 1); err != nil {
				t.Fatal(err)
			}
		}
		if round%3 == 1 {
			x.checkpoint()
		}
		fs.SetIgnoreSyncs(true) // nothing of the index that comes now survives
		x.close()
		fs.ResetToSyncedState()
		fs.SetIgnoreSyncs(false)
	}
}

// The log without its index is refused once a part of the log was given back.
func TestTheIndexIsMissed(t *testing.T) {
	dir, fs := t.TempDir(), vfs.NewMem()
	x := mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.Index = fs })
	if _, err := x.add("t", 1); err != nil {
		t.Fatal(err)
	}
	x.close()
	x = mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.Index = vfs.NewMem() }) // all is in the log still
	if sum, err := x.add("t", 1); sum != 2 || err != nil {
		t.Fatal(sum, err)
	}
	x.checkpoint()
	x.close()
	if x, err := openEvents(t, dir, []string{"t"}, func(o *Options) { o.Index = vfs.NewMem() }); !errors.Is(err, ErrRecord) {
		t.Error(err)
		if err == nil {
			x.close()
		}
	}
}

// killable is the process that TestEventsKilled and TestStatesKilled kill: it adds 1 for ever, and prints each sum that it was answered.
func killable(dir string) {
	t, name := &fatal{}, "t"
	var x *eventful
	if os.Getenv("WASMACTORS_PAGES") != "" {
		x, name = openPages(t, dir), "p"
	} else {
		x = mustOpenEvents(t, dir, []string{name})
	}
	for i := 0; ; i++ {
		sum, err := x.add(name, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(sum)
		if i%40 == 39 {
			x.checkpoint()
		}
	}
}

// fatal is a test that panics.
type fatal struct{ testing.TB }

func (*fatal) Helper()           {}
func (*fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (*fatal) Error(args ...any) { panic(fmt.Sprint(args...)) }

func TestMain(m *testing.M) {
	if dir := os.Getenv("WASMACTORS_KILLABLE"); dir != "" {
		killable(dir)
	}
	os.Exit(m.Run())
}

// killed runs a process that prints numbers, which grow by one from those before, kills it after some of them, and returns the last one.
func killed(t *testing.T, cmd *exec.Cmd, round, after, sum int) int {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		got, err := strconv.Atoi(lines.Text())
		if err != nil || got != sum+1 && (n != 0 || got != sum+2) { // one that was under way may count
			t.Fatalf("round %d: %q after %d: %v", round, lines.Text(), sum, err)
		}
		if sum = got; n == after {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it has printed before it died counts, too
		if got, err := strconv.Atoi(lines.Text()); err == nil {
			sum = max(sum, got)
		}
	}
	_ = cmd.Wait()
	return sum
}

// A process that is killed after any of its answers, and within checkpoints, has lost nothing that it has answered, and done
// nothing twice: the sum of what is back is that of a twin who was never killed, as far as it has come.
func TestEventsKilled(t *testing.T) {
	dir, sum := t.TempDir(), 0
	for round := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WASMACTORS_KILLABLE="+dir)
		sum = killed(t, cmd, round, 25+7*round, sum)
	}
	x := mustOpenEvents(t, dir, []string{"t"})
	defer x.close()
	got, err := x.add("t", 0)
	if err != nil || got != sum && got != sum+1 || sum < 300 {
		t.Error(got, sum, err)
	}
	if list := x.numbers("/user/t"); len(list) != got || list[len(list)-1] != uint64(got) {
		t.Error(len(list), got)
	}
}

// Many write at the same time, with many tags, while readers follow a tag: each sees all of its events once, in the order of
// their offsets, and never one that comes later with a lesser offset.
func TestNoGapInTheTags(t *testing.T) {
	const writers, each, readers = 6, 40, 4
	var names []string
	for i := range writers {
		names = append(names, fmt.Sprint("w", i))
	}
	x := mustOpenEvents(t, t.TempDir(), names)
	defer x.close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	want := writers * each / 2
	var all sync.WaitGroup
	seen := make([][]string, readers)
	for r := range readers {
		all.Add(1)
		go func() {
			defer all.Done()
			from := uint64(0)
			for len(seen[r]) < want {
				live := r%2 == 0
				for e, err := range x.journal.ByTag(ctx, "n1", persist.Query{From: from, Live: live}) {
					if err != nil {
						t.Error(err)
						return
					}
					if e.Offset < from {
						t.Errorf("offset %d after %d", e.Offset, from-1)
					}
					from, seen[r] = e.Offset+1, append(seen[r], fmt.Sprint(e.ID, " ", e.Number))
					if len(seen[r]) == want || r == 2 && len(seen[r])%5 == 0 {
						break
					}
				}
			}
		}()
	}
	for i, name := range names {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := range each {
				if _, err := x.add(name, 1+(k+i)%2); err != nil {
					t.Error(err)
					return
				}
				if k == each/2 && i == 0 {
					x.checkpoint()
				}
			}
		}()
	}
	all.Wait()
	for r := range readers {
		if !slices.Equal(seen[r], seen[0]) {
			t.Errorf("reader %d has seen others, or in another order: %d and %d", r, len(seen[r]), len(seen[0]))
		}
	}
	once := map[string]bool{}
	for _, s := range seen[0] {
		if once[s] {
			t.Error(s, " twice")
		}
		once[s] = true
	}
	if len(once) != want {
		t.Errorf("%d of %d", len(once), want)
	}
}

// A record of the log that was forged is refused, or does what the actor could have done: it is in the events of an actor, in
// their order.
func TestForgedEvents(t *testing.T) {
	dir := t.TempDir()
	x := mustOpenEvents(t, dir, []string{"t"})
	if _, err := x.add("t", 1); err != nil {
		t.Fatal(err)
	}
	x.close()
	entry := func(e persistrules.Entry) []byte {
		w := abi.NewWriter(nil)
		w.Array(3)
		w.Text("/user/t")
		w.Int(1)
		w.Array(1)
		w.ByteString(persistrules.AppendEntry(nil, &e))
		return w.Bytes()
	}
	event := func(number uint64, typ string) []byte {
		return entry(persistrules.Entry{Event: persist.Event{Number: number, Type: typ, Version: 1, Payload: []byte{7}}})
	}
	for name, b := range map[string][]byte{"a gap": event(3, "tally.added"), "a number again": event(1, "tally.added"), "no type": event(2, ""), "no record": {1, 2, 3}} {
		other := t.TempDir()
		if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(filepath.Join(other, "secret"), 0o600)
		s, err := Open(Options{Dir: other})
		if err != nil {
			t.Fatal(err)
		}
		at, err := s.log.Append([]byte{version, tagEvents}, b)
		if err == nil {
			err = s.log.Await(t.Context(), at)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if x, err := openEvents(t, other, []string{"t"}); err == nil {
			t.Error(name, " was taken")
			x.close()
		} else if !errors.Is(err, ErrRecord) {
			t.Error(name, err)
		}
	}
}

// While a sync is under way an actor that keeps events goes on, and nothing that it sends is seen: not what it has sent with
// an event, and not what follows from it.
func TestNothingOfEventsLeavesEarly(t *testing.T) {
	dir := t.TempDir()
	disk := slow(t, dir)
	x := mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.FS = disk })
	if _, err := x.add("t", 1); err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	disk.mu.Lock()
	disk.held = held
	disk.mu.Unlock()
	answers := make(chan string, 2)
	ask := func(n int) {
		sum, err := x.add("t", n)
		answers <- fmt.Sprint(n, " ", sum, " ", err)
	}
	go ask(5)
	ref, _ := x.Lookup("/user/t")
	eventually(t, func() bool { i, err := x.View().Info(ref); return err == nil && i.Turns == 2 })
	go ask(0) // it stores nothing, and tells what the one before has done
	eventually(t, func() bool { i, err := x.View().Info(ref); return err == nil && i.Turns == 3 })
	time.Sleep(20 * time.Millisecond)
	var got []string
	select {
	case a := <-answers:
		t.Error("it has left: ", a)
		got = append(got, a)
	default:
	}
	if n := x.numbers("/user/t"); len(n) != 1 {
		t.Error("an event is found that is not durable: ", n)
	}
	disk.mu.Lock()
	disk.held = nil
	disk.mu.Unlock()
	close(held)
	for len(got) < 2 {
		got = append(got, <-answers)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"0 6 <nil>", "5 6 <nil>"}) {
		t.Error(got)
	}
	x.close()
}

// When the log fails the actors that keep events stop, and what was not durable was not answered.
func TestEventsStopWithTheLog(t *testing.T) {
	dir := t.TempDir()
	disk := slow(t, dir)
	x := mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.FS = disk })
	if _, err := x.add("t", 1); err != nil {
		t.Fatal(err)
	}
	ref, _ := x.Lookup("/user/t")
	ended, err := x.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	disk.mu.Lock()
	disk.err = errors.New("no more")
	disk.mu.Unlock()
	if sum, err := x.add("t", 1); err == nil {
		t.Error("it was answered: ", sum)
	}
	<-ended
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := x.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := x.store.Close(); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	x = mustOpenEvents(t, dir, []string{"t"})
	if sum, err := x.add("t", 0); err != nil || sum != 1 && sum != 2 {
		t.Error(sum, err)
	}
	x.close()
}

// courier keeps what it has to deliver as events.
type courier struct {
	log *persist.Log
	out persistrules.Deliveries
}

func (c *courier) Apply(e *persist.Event) (err error) {
	if e.Type == "courier.confirmed" {
		var id uint64
		err = host.Message{Payload: e.Payload}.Decode(&id)
		c.out.Confirm(id)
		return err
	}
	_, err = c.out.Add("/user/outside", e.Payload)
	return err
}

func (c *courier) Recovered(ctx *host.Context) error { c.send(ctx); return nil }

func (c *courier) send(ctx *host.Context) {
	to, err := ctx.System().Lookup("/user/outside")
	if err != nil {
		return
	}
	c.out.Due(ctx.System().Clock().Now().UnixNano(), func(x *persistrules.Delivery, _ bool) { _ = ctx.Tell(to, host.Raw(x.Payload)) })
}

func (c *courier) Receive(ctx *host.Context, m host.Message) error {
	var text string
	var id uint64
	var err error
	switch {
	case m.Decode(&text) == nil:
		err = c.log.Persist("courier.taken@1", text)
	case m.Decode(&id) == nil && c.out.Waits(id):
		err = c.log.Persist("courier.confirmed@1", id)
	}
	if err != nil {
		return err
	}
	c.send(ctx)
	if m.Sender.IsZero() {
		return nil
	}
	return ctx.Reply(c.out.Len())
}

// What was not confirmed when the process ended is sent again by the next one, and what was is not.
func TestH19_AtLeastOnce(t *testing.T) {
	dir := t.TempDir()
	d := persist.Definition{Schema: new(persist.Schema).Type("courier.taken", 1).Type("courier.confirmed", 1)}
	start := func() *eventful {
		x := mustOpenEvents(t, dir, nil)
		if _, err := x.Spawn("courier", x.journal.Props(d, func(l *persist.Log) persist.Actor { return &courier{log: l} }, 0)); err != nil {
			t.Fatal(err)
		}
		return x
	}
	seen := func(x *eventful, n int) (list []string) {
		eventually(t, func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			list = slices.Clone(x.seen)
			return len(list) >= n
		})
		return list
	}
	tell := func(x *eventful, vs ...any) {
		ref, err := x.Lookup("/user/courier")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			if _, err := x.Ask(t.Context(), ref, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	x := start()
	tell(x, "a", "b", "c", uint64(2))
	if got := seen(x, 3); len(got) != 3 {
		t.Error(got)
	}
	x.close()
	x = start()
	if got := seen(x, 2); !slices.Equal(got, []string{"6161", "6163"}) {
		t.Error(got)
	}
	tell(x, uint64(1), uint64(3), "d")
	x.close()
	x = start()
	if got := seen(x, 1); !slices.Equal(got, []string{"6164"}) {
		t.Error(got)
	}
	x.close()
}
