package instance

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// owner is an actor without a system.
type owner struct {
	account account.Account
	alarms  alarm.Board
	clock   *clock.Virtual
	state   State
	posted  []sysmail.Kind
	next    int // SleepNext was called
	starved bool
	asleep  bool
	refused []string
	running bool
	hurried int
}

func (o *owner) Account() *account.Account    { return &o.account }
func (o *owner) Alarms() *alarm.Board         { return &o.alarms }
func (o *owner) Clock() clock.Clock           { return o.clock }
func (o *owner) Now() time.Time               { return o.clock.Now() }
func (o *owner) State() State                 { return o.state }
func (o *owner) Post(m sysmail.Msg)           { o.posted = append(o.posted, m.Kind) }
func (o *owner) Visit(f func())               { f() }
func (o *owner) SleepNext()                   { o.next++ }
func (o *owner) Starved(is bool)              { o.starved = is }
func (o *owner) Asleep(is bool)               { o.asleep = is }
func (o *owner) Refused(what string, _ error) { o.refused = append(o.refused, what) }

func (o *owner) Running() bool { return o.running }
func (o *owner) Hurry()        { o.hurried++ }

// worker counts.
type worker struct{ yields int }

func (w *worker) Yield() bool { w.yields++; return true }
func (w *worker) Spend(int64) {}

// house is a system's room and one engine.
type house struct {
	*testing.T
	image  *sandbox.Image
	clock  *clock.Virtual
	room   *Room
	tree   residency.Tree
	pool   *account.Pool
	asleep atomic.Int64
	made   uint64
}

func newHouse(t *testing.T, most int, bytes int64) *house {
	ctx := context.Background()
	e, err := sandbox.New(ctx, sandbox.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(ctx) })
	code, err := os.ReadFile("../../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	image, err := e.Load(ctx, code, sandbox.ImageConfig{Name: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, image: image, clock: clock.NewVirtual(time.Unix(0, 0)), pool: account.NewPool("the system", "system.", nil, bytes, 0)}
	h.room = &Room{List: residency.New(h.clock, time.Hour, most), Asleep: &h.asleep}
	return h
}

func (h *house) guest() (*Holder, *owner) {
	o := &owner{clock: h.clock, state: State{Running: true, Begun: true}}
	o.account.Init(h.pool, 0)
	x := &Holder{Image: h.image, Sleeps: true}
	x.Init(o, h.room, h.made, &h.tree)
	h.made++
	if _, err := x.Obtain(&worker{}, sandbox.Weight(h.image), nil); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(x.Release)
	return x, o
}

func TestAnIdleGuestSleepsAndWakes(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	if o.account.Of(account.Memory) != sandbox.Weight(h.image) {
		t.Errorf("an instance is on the account with %d bytes", o.account.Of(account.Memory))
	}
	if !x.PutAway() || x.Load() != nil || x.Snapshot == nil || !o.asleep || h.asleep.Load() != 1 {
		t.Fatal("it does not sleep")
	}
	if o.account.Of(account.Memory) != 0 || o.account.Of(account.Snapshot) != int64(x.Snapshot.Bytes()) {
		t.Errorf("asleep it has %d bytes of memory and %d of a snapshot on its account", o.account.Of(account.Memory), o.account.Of(account.Snapshot))
	}
	got, err := x.Get(&worker{})
	if err != nil || got == nil || x.Snapshot != nil || o.asleep || h.asleep.Load() != 0 || o.account.Of(account.Snapshot) != 0 {
		t.Fatalf("it does not wake: %v", err)
	}
}

func TestWhoIsNotPutAway(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	o.state = State{Waits: true, Running: true, Begun: true}
	if x.PutAway() || x.Load() == nil {
		t.Error("a guest whose turn waits for its recorder is put away")
	}
	h.room.List.Hold(&x.Node) // as if it had not been used since the last check
	o.state = State{Running: true, Begun: true, Busy: true}
	if x.Sleep(&worker{}); x.Load() == nil {
		t.Error("a guest that has messages sleeps")
	}
	o.state = State{Running: false, Begun: false} // between two incarnations
	if !x.PutAway() || x.Load() != nil || x.Snapshot != nil {
		t.Error("a state that nobody needs is kept")
	}
}

func TestAFailedStateIsMarked(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	o.state = State{Failed: true, Begun: true}
	if !x.PutAway() || !x.Failed {
		t.Error("it is not known that the state is one after a failure")
	}
	if can, _ := x.Rewindable(); can {
		t.Error("it can go back without states")
	}
	o.state, x.Failed = State{Running: true, Begun: true}, false
	if can, unchanged := x.Rewindable(); !can || !unchanged {
		t.Error("nothing has run since it fell asleep")
	}
}

// Where there is room for one, an idle guest makes room for another; without an idle one the error says so.
func TestRoomForOne(t *testing.T) {
	h := newHouse(t, 0, 0)
	h.pool = account.NewPool("the system", "system.", nil, 2*sandbox.Weight(h.image)-1, 0)
	first, _ := h.guest()
	second, _ := h.guest()
	if first.Load() != nil || first.Snapshot == nil || second.Load() == nil {
		t.Fatal("the second has not got the room of the first")
	}
	third := &Holder{Image: h.image, Sleeps: true}
	o := &owner{clock: h.clock}
	o.account.Init(h.pool, 0)
	third.Init(o, h.room, 7, &h.tree)
	second.owner.(*owner).state.Waits = true
	if _, err := third.Obtain(&worker{}, sandbox.Weight(h.image), nil); !NoRoom(err) || Hopeless(err) {
		t.Errorf("nobody can make room: %v", err)
	}
	if _, err := third.Obtain(&worker{}, 1<<40, nil); !NoRoom(err) || !Hopeless(err) {
		t.Errorf("more than there can be: %v", err)
	}
	if o.account.Of(account.Memory) != 0 {
		t.Error("what was refused is on the account")
	}
}

// The next try comes after 5 ms, then after twice as long each time; only the first failure is published.
func TestTriesComeEverLater(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
		x.TryAgain("instance", errors.New("full"), sysmail.Msg{Kind: sysmail.Instance})
		h.clock.Advance(want*time.Millisecond - 1)
		if len(o.posted) != i {
			t.Fatalf("try %d comes early", i)
		}
		h.clock.Advance(1)
		if len(o.posted) != i+1 {
			t.Fatalf("try %d does not come after %d ms", i, want)
		}
	}
	if len(o.refused) != 1 || o.refused[0] != "instance" {
		t.Errorf("published: %q", o.refused)
	}
	o.starved = true
	x.TryAgain("instance", errors.New("full"), sysmail.Msg{Kind: sysmail.Instance})
	x.StopWaiting()
	before := len(o.posted)
	if h.clock.Advance(time.Hour); len(o.posted) != before || o.starved || x.Waited != 0 {
		t.Error("it still waits")
	}
}

// A guest that has to go back has the turns since the snapshot once more, those of an entry together.
func TestGoingBack(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	x.Keep(&worker{})
	if x.States == nil || x.States.Why != "" || o.account.Of(account.Snapshot) != x.States.Held() {
		t.Fatalf("its states are not kept: %+v", x.States)
	}
	mail := func(n uint64) *mailbox.Envelope {
		e := mailbox.New()
		e.Kind, e.Sender, e.Correlation = abi.KindMessage, 1, n
		e.SetPayload([]byte{0xf6})
		return e
	}
	for i := range uint64(3) {
		if !x.States.Remember(Logged{Mail: mail(i), Now: int64(i), Turn: i, Behind: i == 2}) {
			t.Fatal("it does not remember")
		}
	}
	if x.CheckpointIfDue(&worker{}); len(x.States.Log) != 3 {
		t.Error("a snapshot is due after three turns")
	}
	if !x.GoBack(&worker{}) {
		t.Fatal("it does not go back")
	}
	var order []uint64
	if !x.Repeat(&worker{}, sandbox.Entry{TurnFuel: 1 << 40, MemoryLimit: 1 << 30, OutboxLimit: 1 << 20, Yield: noYield{}, Anchor: &sandbox.Anchor{}}, func(e *mailbox.Envelope, now int64) bool {
		order = append(order, e.Correlation)
		return now == int64(e.Correlation)
	}, func(turn uint64, f *abi.Failure) { t.Errorf("turn %d: %v", turn, f) }) {
		t.Error("the turns are not repeated")
	}
	if len(order) != 3 || order[0] != 0 || order[2] != 2 {
		t.Errorf("repeated: %v", order)
	}
	for x.States.Bytes() < CheckpointBytes {
		e := mail(9)
		e.SetPayload(make([]byte, 8<<10))
		x.States.Remember(Logged{Mail: e})
		x.CheckpointIfDue(&worker{})
		if len(x.States.Log) == 0 {
			break
		}
	}
	if len(x.States.Log) != 0 {
		t.Errorf("no snapshot after %d bytes", x.States.Bytes())
	}
	if x.ForgetStates(); o.account.Of(account.Snapshot) != 0 {
		t.Error("what was forgotten is on the account")
	}
}

type noYield struct{}

func (noYield) Yield() bool { return true }

func TestWhatOthersDoToATurn(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	if x.Kill("stopped"); !x.Awake() || o.hurried != 0 {
		t.Error("a guest whose actor does not run is killed")
	}
	o.running = true
	if x.Kill("stopped"); o.hurried != 1 {
		t.Error("the run does not hurry")
	}
	x.EndBatch()
	x.GoOn()
	x.Release()
	x.Kill("stopped")
	x.EndBatch()
	if x.GoOn(); x.Awake() || o.hurried != 1 {
		t.Error("a guest without an instance has a turn")
	}
}

func TestGrowthIsOnTheAccount(t *testing.T) {
	h := newHouse(t, 0, 4<<20)
	x, o := h.guest()
	before := o.account.Of(account.Memory)
	if !x.Grow(1<<20, 2<<20) || o.account.Of(account.Memory) != before+1<<20 {
		t.Errorf("%d bytes after %d", o.account.Of(account.Memory), before)
	}
	if x.Grow(2<<20, 64<<20) || len(o.refused) != 1 || o.account.Of(account.Memory) != before+1<<20 {
		t.Errorf("%d bytes, refused %v", o.account.Of(account.Memory), o.refused)
	}
}

func TestSavedStates(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	awake, err := x.Save()
	if err != nil || len(awake) == 0 {
		t.Fatal(err)
	}
	x.PutAway()
	asleep, err := x.Save()
	if err != nil || !slices.Equal(asleep, awake) {
		t.Errorf("%v; asleep it has another state", err)
	}
	x.Snapshot = nil
	if _, err := x.Save(); !errors.Is(err, sandbox.ErrNotSaved) {
		t.Errorf("without a state: %v", err)
	}
	o.state.Failed = true
	if b, err := x.Save(); b != nil || err != nil {
		t.Errorf("a failed one without an instance: %d bytes, %v", len(b), err)
	}
	o.state.Begun = false
	if b, err := x.Save(); b != nil || err != nil {
		t.Errorf("one that has not begun: %d bytes, %v", len(b), err)
	}
}

func TestWhatCannotBeWoken(t *testing.T) {
	h := newHouse(t, 0, 0)
	x, o := h.guest()
	if f := x.Lacks(errors.New("no such image")); f == nil || f.Kind != abi.FailureInit || o.starved {
		t.Errorf("%v, starved %v", f, o.starved)
	}
	if f := x.Lacks(sandbox.ErrTooManyInstances); f != nil || !o.starved {
		t.Errorf("%v, starved %v", f, o.starved)
	}
	if h.clock.Advance(MostRetry); len(o.posted) != 1 || o.posted[0] != sysmail.Instance {
		t.Errorf("%v", o.posted)
	}
	if x.ResumesLater(&worker{}, sysmail.Msg{Kind: sysmail.Resume}) {
		t.Error("a guest that has its instance waits for another")
	}
}
