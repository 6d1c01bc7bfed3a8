package sandbox

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
)

// reader reads the commands of the completed turns of a Run: first what was flushed, then
// the guest's outbox. Markers separate the turns; their number is known from the meter's
// globals, which the guest cannot forge.
type reader struct {
	data   []byte
	at     int
	turn   int // the turn that data[at:] belongs to
	turns  int // completed
	begun  int
	count  int    // commands of this turn
	strict bool   // nothing may follow the last turn
	failed bool   // this turn has failed by a command
	marked bool   // turns end with markers
	plain  bool   // the turn that was read last has sent to refs and done nothing else
	cost   uint64 // of this turn's commands
	from   int    // where this turn begins in data
	err    error
}

// openReader prepares NextCommand and NextTurn. begun is the number of turns that were begun,
// the failed one included.
func (x *Instance) openReader(turns, begun int, length uint32, strict bool) {
	from := x.control.Outbox
	data := x.memory.Bytes()[from : from+length]
	if len(x.staging) > 0 {
		x.stageRoom(len(data))
		x.staging = append(x.staging, data...)
		data = x.staging
	}
	// Field by field: a struct that is made and copied takes longer than all the rest.
	r := &x.reader
	r.data, r.at, r.turn, r.turns, r.begun, r.count = data, 0, 0, turns, begun, 0
	r.strict, r.failed, r.marked = strict, false, x.image.batching
	r.cost, r.from = 0, 0
	if r.err != nil {
		r.err = nil
	}
}

// NextCommand reads the next command of the completed turns, in order, and says
// which turn of the last Run it belongs to (0 the first). ok is false at the
// end. What c refers to is valid until the next Push, Run, Reset or Put.
//
// The end of a turn shows only in the change of turn. Until then the turn must not be
// carried out: an error (see [Instance.Violation]) means that it has broken the contract,
// that none of it may take effect, and that nothing follows. OpFail is returned like any
// other command; it means that the turn has failed by its own wish, and that its other
// commands do not count.
func (x *Instance) NextCommand(c *abi.Command) (turn int, ok bool, err error) {
	r := &x.reader
	for {
		switch what, err := r.step(c); what {
		case stepCommand:
			return r.turn, true, nil
		case stepDone:
			return r.turn, false, err
		}
	}
}

// The results of a step.
const (
	stepCommand = iota // a command of turn r.turn
	stepEnd            // the end of turn r.turn-1
	stepDone           // the end of everything, or an error in turn r.turn
)

// step reads one item.
func (r *reader) step(c *abi.Command) (what int, err error) {
	if r.turn >= r.turns || r.err != nil {
		return stepDone, r.err
	}
	if r.at == len(r.data) {
		if r.marked {
			return r.stop(ErrMissingMarker)
		}
		r.turn++
		return stepEnd, nil
	}
	n, err := abi.DecodeCommand(c, r.data[r.at:])
	if err != nil {
		return r.stop(fmt.Errorf("the command at byte %d of the outbox: %w", r.at+n, err))
	}
	if c.Op == abi.OpEnd {
		return r.end()
	}
	if err := r.allowed(c.Op); err != nil {
		return r.stop(fmt.Errorf("%w (%s at byte %d of the outbox)", err, c.Op, r.at))
	}
	r.at += n
	r.cost += costOf(c, n)
	return stepCommand, nil
}

// end steps over the marker at the end of a turn: null, one byte.
func (r *reader) end() (what int, err error) {
	r.at++
	if r.strict && r.turn+1 == r.turns && r.at != len(r.data) {
		return r.stop(ErrTrailing)
	}
	r.turn++
	r.count, r.failed = 0, false
	return stepEnd, nil
}

// allowed checks a command against the ones before it.
func (r *reader) allowed(op abi.Op) error {
	if r.failed {
		return ErrAfterFail
	}
	if r.count++; r.count > abi.MaxTurnCommands {
		return ErrTooManyCommands
	}
	switch op {
	case abi.OpFail, abi.OpStash, abi.OpUnstash:
		r.failed = op == abi.OpFail
		if r.turn+1 < r.begun {
			return ErrBatchContinued
		}
	}
	return nil
}

func (r *reader) stop(err error) (int, error) {
	r.err = err
	return stepDone, err
}

// NextTurn reads all commands of the next completed turn and returns them in dst, which it
// may extend; ok is false when there is no further turn. An error means that none of the
// turn may take effect, and that nothing follows: it has broken the contract or, if the error
// is an *abi.Failure, cannot pay for its commands or was killed. If the turn has failed by a
// command, only that command (OpFail) is returned.
func (x *Instance) NextTurn(dst []abi.Command) (turn int, cmds []abi.Command, ok bool, err error) {
	r := &x.reader
	turn, dst = r.turn, dst[:0]
	if turn >= r.turns || r.err != nil {
		return turn, dst, false, r.err
	}
	r.from, r.cost, r.plain = r.at, 0, true
	for {
		n := len(dst)
		if n == cap(dst) {
			dst = append(dst, abi.Command{})
		} else {
			dst = dst[:n+1]
		}
		var what int
		var err error
		if r.at < len(r.data) && r.data[r.at] == headNull {
			what, err = r.end()
		} else if k := decodeUsual(&dst[n], r.data[r.at:]); k > 0 && !r.failed && r.count < abi.MaxTurnCommands {
			r.at += k
			r.count++
			r.cost += CostSend + uint64(k)/costByte
			continue
		} else {
			r.plain = false
			what, err = r.step(&dst[n])
		}
		switch what {
		case stepEnd:
			if f := x.payAhead(turn, r.cost); f != nil {
				r.err = f
				return turn, dst[:0], false, f
			}
			if n > 1 && dst[n-1].Op == abi.OpFail {
				return turn, finishTurn(dst[:n]), true, nil
			}
			return turn, dst[:n], true, nil
		case stepDone:
			if err != nil {
				x.poisoned = true
			}
			return turn, dst[:0], false, err
		}
	}
}

// OneSend is the first call of NextTurn after a Run without a failure, for the usual result: a single turn with a single
// command, which is a send to a ref without headers. That is then all that dst has. False: nothing is read.
func (x *Instance) OneSend(dst *[]abi.Command) bool {
	r := &x.reader
	if r.turns != 1 || r.turn != 0 || !r.marked || !r.strict || cap(*dst) == 0 {
		return false
	}
	n := decodeUsual(&(*dst)[:1][0], r.data)
	cost := CostSend + uint64(n)/costByte
	if n == 0 || n+1 != len(r.data) || r.data[n] != headNull || cost >= x.work.cheap {
		return false
	}
	*dst = (*dst)[:1]
	r.at, r.turn, r.cost, r.plain = n+1, 1, cost, true
	x.payAhead(0, cost) // it is cheap
	return true
}

// Plain reports whether the turn that NextTurn has returned last has only sent to refs, without headers.
func (x *Instance) Plain() bool { return x.reader.plain }

// Reread goes back to the first turn of the last Run, for whoever has looked at all turns before it
// carries them out. What is read again is not paid again.
func (x *Instance) Reread() {
	r := &x.reader
	r.at, r.turn, r.count, r.failed, r.err, r.cost, r.from = 0, 0, 0, false, nil, 0, 0
	x.work.cheap = math.MaxUint64
}

// Outbox is the commands of the first turns of the last Run, as the guest has written them: no more turns than
// NextTurn has read without an error. It is valid as long as the commands are.
func (x *Instance) Outbox(turns int) []byte {
	r := &x.reader
	switch {
	case turns == 0:
		return nil
	case r.turn == turns && r.err == nil:
		return r.data[:r.at]
	case r.turn <= turns+1:
		return r.data[:r.from]
	}
	at := 0
	var c abi.Command
	for turns > 0 {
		n, err := abi.DecodeCommand(&c, r.data[at:])
		if err != nil {
			return r.data[:at] // it was read before
		}
		if at += n; c.Op == abi.OpEnd {
			turns--
		}
	}
	return r.data[:at]
}

// Written is Outbox of all turns that NextTurn has read, none of them with an error.
func (x *Instance) Written() []byte { return x.reader.data[:x.reader.at] }

// Discard says that nobody reads the commands of the last Run any more: what was lent for many of them is given back.
func (x *Instance) Discard() {
	if cap(x.staging) > keepStaging {
		x.dropLent()
	}
}

func (x *Instance) dropLent() {
	x.reader.turns, x.reader.data = 0, nil
	x.unstage()
}

// Ended reports whether another goroutine has ended the batch, see [Instance.EndBatch], since Resume.
func (x *Instance) Ended() bool { return x.batch.ended.Load() }

// TurnHash is SHA-256 over the commands, as the guest has written them, of the turn that
// NextTurn has returned last. With it two runs of a turn can be compared. It costs nothing
// unless it is called.
func (x *Instance) TurnHash() [sha256.Size]byte {
	r := &x.reader
	return sha256.Sum256(r.data[r.from:r.at])
}

// finishTurn drops all but the last command of a turn that has failed by its own wish.
func finishTurn(cmds []abi.Command) []abi.Command {
	cmds[0] = cmds[len(cmds)-1]
	return cmds[:1]
}

// Violation makes the failure of a turn that has broken the contract: NextCommand or NextTurn
// has returned err, or the turn was not the last one though it had to be (see
// [Result.LastTurn]). It poisons the instance.
func (x *Instance) Violation(in *Entry, turn int, err error) *abi.Failure {
	x.poisoned = true
	return &abi.Failure{Kind: abi.FailureABIViolation, Reason: err.Error(), Turn: in.FirstTurn + uint64(turn)}
}
