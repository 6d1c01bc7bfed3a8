package sandbox

import (
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
)

// What the commands of a turn cost, in fuel: about the time that the host needs for them, at
// half a nanosecond a unit, but the same on every machine. Each 16 bytes that are copied cost
// a unit.
const (
	// CostCommand is the least that a command costs.
	CostCommand = 100
	// CostSend is a send, a forward, a reply.
	CostSend = 400
	// CostPath is added if the receiver is named by a path.
	CostPath = 1000
	// CostNode is an actor that the search for a pattern visits.
	CostNode = 100
	// CostAsk is an ask, with its timer.
	CostAsk = 2000
	// CostTimer is a timer, set or taken back, or an ask that is taken back.
	CostTimer = 1500
	// CostWatch is a watch or its end.
	CostWatch = 1000
	// CostSpawn is a new actor, without its first turn.
	CostSpawn = 20_000
	// CostStop is a stop, or what else is told to another actor as a system message.
	CostStop = 1500
	// CostBytes is how many bytes cost a unit.
	CostBytes = costByte
)

// commandCosts are indexed by abi.Op.
var commandCosts = [...]uint16{
	abi.OpSend: CostSend, abi.OpForward: CostSend, abi.OpAsk: CostAsk, abi.OpSpawn: CostSpawn, abi.OpStop: CostStop,
	abi.OpWatch: CostWatch, abi.OpUnwatch: CostWatch, abi.OpTimer: CostTimer, abi.OpCancel: CostTimer, abi.OpReceiveTimeout: CostTimer,
	abi.OpResetBackoff: CostStop, abi.OpCancelAsk: CostTimer, abi.OpPersist: CostTimer,
}

// costOf is what a command of n encoded bytes costs before it is carried out.
func costOf(c *abi.Command, n int) uint64 {
	cost := uint64(CostCommand)
	if int(c.Op) < len(commandCosts) {
		cost = max(cost, uint64(commandCosts[c.Op]))
	}
	if c.ToPath != nil {
		cost += CostPath
	}
	return cost + uint64(n)/costByte
}

// workLook is the work between two checks of the clock: some 10 us.
const workLook = 20_000

// work is the account of what the host does for a turn after it has ended. Each turn may
// spend as much on it as on its own code; what it has spent there is not deducted, because it
// is not known for each turn of an entry.
type work struct {
	in      *Entry
	turn    uint64
	spent   uint64 // by this turn's commands
	passed  uint64 // work that costs nothing, see Pass
	total   uint64 // by those of all turns of the last Run
	cheap   uint64 // up to this cost nothing needs to be checked
	next    uint64 // the cost at which the clock is checked next
	started int64
}

// open begins the account of a Run.
func (w *work) open(in *Entry) {
	w.in, w.total, w.cheap = in, 0, workLook
	if in.TurnFuel != 0 {
		w.cheap = min(w.cheap, in.TurnFuel)
	}
	if in.Cut != nil {
		w.cheap = 0
	}
}

// WorkFuel is what the work for the turns of the last Run has cost so far; it is no
// part of Result.Fuel.
func (x *Instance) WorkFuel() uint64 { return x.work.total }

// Charge makes the turn that [Instance.NextTurn] has returned last pay for work on its
// behalf, in fuel: CostNode for each actor visited, a unit for CostBytes bytes. NextTurn has
// charged the commands themselves. Call it before the work, in portions of some
// microseconds. It may yield, so the caller must not hold a lock.
//
// A failure means that the turn has spent more than Entry.TurnFuel on such work, or
// longer than Entry.Deadline, or that it was killed: the caller gives the work up, and the
// actor has failed. The Entry of the last Run must not have changed since.
func (x *Instance) Charge(units uint64) *abi.Failure {
	if f := x.pay(units); f != nil || x.work.in == nil {
		return f
	}
	if reason := x.kill.Load(); reason != nil {
		return x.cutWork(abi.FailureKilled, *reason)
	}
	return x.lookWork()
}

// Pass notes work for the turn that costs it no fuel, because how much it is must not be told: it counts
// for kill, deadline and yielding as Charge does.
func (x *Instance) Pass(units uint64) *abi.Failure {
	w := &x.work
	if w.passed += units; w.in == nil {
		return nil
	}
	if reason := x.kill.Load(); reason != nil {
		return x.cutWork(abi.FailureKilled, *reason)
	}
	return x.lookWork()
}

// payAhead begins the account of a turn with the cost of its commands, before they are
// carried out. As a rule that is little, and then neither clock nor kill is checked.
func (x *Instance) payAhead(turn int, units uint64) *abi.Failure {
	w := &x.work
	w.turn, w.spent, w.passed, w.next, w.started = uint64(turn), 0, 0, workLook, 0
	if units < w.cheap {
		w.spent = units
		w.total += units
		return nil
	}
	if f := x.pay(units); f != nil || units < workLook {
		return f
	}
	return x.Charge(0)
}

// pay charges units. The failure says that the turn cannot pay, or that a Cut ends it here.
func (x *Instance) pay(units uint64) *abi.Failure {
	w := &x.work
	if units > math.MaxUint64-w.spent {
		units = math.MaxUint64 - w.spent
	}
	w.spent += units
	w.total += min(units, math.MaxUint64-w.total)
	in := w.in
	if in == nil {
		return nil
	}
	if c := in.Cut; c != nil && c.Stage == StageWork && c.Phase == 2*w.turn+1 && w.spent >= c.At {
		x.cut = c
		return x.workFailure(c.Kind, c.Reason)
	}
	if in.TurnFuel != 0 && w.spent > in.TurnFuel {
		return x.workFailure(abi.FailureFuel, fmt.Sprintf("fuel %d spent on the turn's commands", in.TurnFuel))
	}
	return nil
}

// lookWork checks deadline and kill for work, and yields, as look does for a running turn.
func (x *Instance) lookWork() *abi.Failure {
	w := &x.work
	if w.spent+w.passed < w.next {
		return nil
	}
	w.next = w.spent + w.passed + workLook
	now := x.now()
	if w.started == 0 {
		w.started = now
	}
	if d := int64(w.in.Deadline); d > 0 && now-w.started > d {
		return x.cutWork(abi.FailureDeadline, fmt.Sprintf("deadline %s passed while the turn's commands were carried out", w.in.Deadline))
	}
	if now > x.rested && now-x.rested < aim*3/4 {
		return nil
	}
	if !rest(w.in) {
		return x.cutWork(abi.FailureDeadline, crowded)
	}
	x.rested = x.now()
	w.started += x.rested - now
	if reason := x.kill.Load(); reason != nil {
		return x.cutWork(abi.FailureKilled, *reason)
	}
	return nil
}

func (x *Instance) cutWork(kind abi.FailureKind, reason string) *abi.Failure {
	x.cut = &Cut{Stage: StageWork, Phase: 2*x.work.turn + 1, At: x.work.spent, Kind: kind, Reason: reason}
	return x.workFailure(kind, reason)
}

func (x *Instance) workFailure(kind abi.FailureKind, reason string) *abi.Failure {
	x.poisoned = true
	return &abi.Failure{Kind: kind, Reason: reason, Turn: x.work.in.FirstTurn + x.work.turn, Fuel: x.work.spent}
}
