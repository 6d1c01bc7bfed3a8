package sandbox

import (
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// Push writes an envelope into the inbox, behind earlier ones. False means that there is no
// room for it: run what is pending first. An envelope that an empty inbox refuses can never
// be delivered. One that is larger than the inbox is alone in it, and the payload must stay as it is until the Run has
// ended. An instance that has failed, or is not prepared, takes none.
func (x *Instance) Push(e *abi.Envelope) bool {
	if x.pending >= x.room || x.poisoned || x.raw {
		return false
	}
	c := &x.control
	room := x.memory.Bytes()[c.Inbox+x.inboxLen : c.Inbox+c.InboxCap]
	n := putUsual(room, e)
	if n == 0 {
		var ok bool
		if n, ok = abi.PutEnvelope(room, e); !ok {
			return x.pushApart(e)
		}
	}
	x.inboxLen += uint32(n)
	x.pending++
	x.reader.turns = 0 // what it read from may be overwritten
	return true
}

// PushPlain is Push of an envelope without headers and without numbers.
func (x *Instance) PushPlain(kind abi.Kind, time int64, sender abi.Ref, correlation uint64, payload []byte) bool {
	if x.pending >= x.room || x.poisoned || x.raw {
		return false
	}
	c := &x.control
	n := putPlain(x.memory.Bytes()[c.Inbox+x.inboxLen:c.Inbox+c.InboxCap], kind, time, sender, correlation, payload)
	if n == 0 {
		return x.Push(&abi.Envelope{Kind: kind, Time: time, Sender: sender, Correlation: correlation, Payload: payload})
	}
	x.inboxLen += uint32(n)
	x.pending++
	x.reader.turns = 0 // what it read from may be overwritten
	return true
}

// Fits reports whether the envelope fits an empty inbox.
func Fits(i *Image, e *abi.Envelope) bool {
	return abi.EnvelopeSize(e) <= int(i.control.InboxCap)
}

// Pending is the number of envelopes pushed since the last Run.
func (x *Instance) Pending() int { return int(x.pending) }

// Run executes what was pushed, one turn an envelope, until all are handled, the
// guest returns early, or a turn fails. It allocates nothing unless a turn
// fails. A failure poisons the instance: Reset it before the next Run.
//
// A guest may also fail before its first turn or after its last one. Result.Turns is then
// the number of completed turns, too; after the last one it equals the number of envelopes,
// and the failure belongs to none of them.
func (x *Instance) Run(in *Entry, out *Result) {
	*out = Result{}
	n, length := int(x.pending), x.inboxLen
	if n == 0 {
		return
	}
	x.pending, x.inboxLen = 0, 0
	if x.poisoned {
		out.Failure = &abi.Failure{Kind: abi.FailureHost, Reason: "the instance has failed and was not reset", Turn: in.FirstTurn}
		out.Unread = n
		return
	}
	if !in.Killable {
		x.ForgetKill()
	}
	x.begin(in)
	x.work.open(in)
	if x.unseen > 0 && uint64(x.last) <= min(x.grain, firstGrant)/2 { // as sample has it, for nearly all
		x.unseen--
	} else {
		x.sample()
	}
	most := n
	if in.Most != 0 {
		most = min(n, in.Most)
	}
	if err := x.call(rewrite.EnterTurn, length, uint32(most), uint64(x.first)); err != nil {
		x.fail(n, err, out)
	} else {
		if broken := x.commit(n, out); broken != nil {
			x.failLate(n, broken, out)
		}
	}
	if x.looked != 0 || x.sparse() {
		x.lookAtEnd(out)
	}
	fuel := out.Fuel
	if out.Failure != nil {
		fuel += out.Failure.Fuel
	}
	x.last = max(uint32(min(fuel, math.MaxUint32)), x.last-x.last/4)
	out.Worth = x.worth(fuel)
	if in.stacked != 0 {
		x.dropStack()
	}
	if x.output.used {
		x.finishLines()
	}
	x.end()
}

// begin sets the instance up for a call on behalf of in.
func (x *Instance) begin(in *Entry) {
	if x.image.strictness.until.Load() != 0 && x.strict(x.now()) {
		x.grain = leastGrant
	}
	x.meter.prepare(in, x.image.engine.cfg.quantum)
	limit := x.image.cfg.MemoryLimit
	if in.MemoryLimit != 0 {
		limit = min(limit, in.MemoryLimit)
	}
	x.memory.SetLimit(limit)
	x.memory.ClearRefused()
	x.output.prepare(in)
	x.random.live = false // so that a turn that is replayed draws the same numbers
	x.reader.turns = 0
}

// end forgets the entry, which is the caller's.
func (x *Instance) end() {
	x.in = nil
	x.output.limit = 0
	if x.room == isApart {
		x.room = x.image.roomIn()
	}
}

// commit accepts the turns of a call that has returned. If the call has broken the contract,
// that is the failure of the last turn: see failLate.
func (x *Instance) commit(n int, out *Result) *abort {
	begun, length, spent := int(x.stack[0]>>32), uint32(x.stack[0]), x.stack[1]
	if x.phase%2 == 1 { // the present grants belong to a turn that has ended
		x.earlier += x.granted
		x.granted = 0
		x.phase++
	}
	out.Turns, out.Unread, out.Fuel = begun, n-begun, spent+x.earlier
	if begun == 0 {
		return violation("the turn returned without taking an envelope")
	}
	if length > x.control.OutboxCap {
		return violation(overlong("wasmactors_turn returned", length, x.control.OutboxCap))
	}
	if uint64(len(x.staging))+uint64(length) > x.output.limit {
		return x.outboxOverflow()
	}
	x.openReader(begun, begun, length, true)
	return nil
}

// failLate makes the last turn of a call that has returned the failed one, since the call has
// broken the contract. The earlier turns stay done; the end markers tell their commands from
// its.
func (x *Instance) failLate(n int, a *abort, out *Result) {
	x.poisoned = true
	spent := uint64(0)
	if out.Turns <= 1 {
		spent, out.Fuel = out.Fuel, 0
	}
	out.Turns = max(0, out.Turns-1)
	out.Unread = n - out.Turns - 1
	out.Failure = x.explain(a)
	out.Failure.Turn, out.Failure.Fuel = x.in.FirstTurn+uint64(out.Turns), spent
	x.openReader(out.Turns, out.Turns+1, x.control.OutboxCap, false)
}

// fail accepts the turns that had ended before the call failed, and sets the failure of the
// next one.
func (x *Instance) fail(n int, err error, out *Result) {
	x.poisoned = true
	x.enterPhase()
	ended, length := int(uint32(x.hidden(hiddenEnded))), uint32(x.hidden(hiddenOut))
	out.Turns = ended
	out.Fuel = x.hidden(hiddenSpent) + x.earlier
	out.Unread = max(0, n-ended-1)
	out.Failure = x.explain(err)
	out.Failure.Turn = x.in.FirstTurn + uint64(ended)
	out.Failure.Fuel = x.spentNow()
	x.openReader(ended, ended+1, min(length, x.control.OutboxCap), false)
}

// Messages that are larger than the inbox, for modules that need abi.FeatureLarge. The envelope in the inbox says how long
// the payload is, and the guest fetches the payload to where it wants it, within the turn: so what this takes is
// the turn's, and a turn that is repeated fetches the same. Such an envelope is the only one of its entry: what a batch saves
// is little beside the copies, and the commands of several could be more than an entry may write.

// isApart is an Instance.room that says that the payload of the envelope in the inbox is apart: it is in reader.data then,
// where nothing is read before the Run has ended.
const isApart = 0

// roomIn is how many envelopes an inbox of the image may have.
func (i *Image) roomIn() int32 {
	if i.batching {
		return math.MaxInt32
	}
	return 1
}

// pushApart is Push of an envelope that is larger than the inbox.
func (x *Instance) pushApart(e *abi.Envelope) bool {
	if !x.image.large || x.pending > 0 || len(e.Payload) == 0 || e.Apart != 0 || Fits(x.image, e) {
		return false
	}
	head := *e
	head.Payload, head.Apart = nil, uint64(len(e.Payload))
	c := &x.control
	n, ok := abi.PutEnvelope(x.memory.Bytes()[c.Inbox:c.Inbox+c.InboxCap], &head)
	if !ok {
		return false
	}
	x.inboxLen, x.pending, x.reader.turns = uint32(n), 1, 0
	x.room, x.reader.data = isApart, e.Payload
	return true
}
