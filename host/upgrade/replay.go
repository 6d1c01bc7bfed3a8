package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How new code handles all messages again that an incarnation of an actor has handled, as its store has them. The actor is held only for the
// last of them. A turn that has failed has changed nothing, and is left out.

// again has an instance of the new code handle what is kept so far. The caller closes it.
func (u *run) again(a *Actor) (*again, error) {
	ctx, cancel := u.visiting(u.ctx)
	defer cancel()
	t, err := swap.Take(ctx, u.sys, a.ref.UID())
	if err != nil {
		return nil, err
	}
	same := alike(t.Image, u.image)
	t.Let()
	r := &again{u: u, start: t.Start, entry: t.Entry, same: same}
	if same {
		return r, nil
	}
	if r.past, err = u.past.of(a.ref.UID()); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if r.counted = r.start.Incarnation == 0; r.counted {
		r.start.Spawned = 0
	}
	if err = r.anew(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r.entry.Deadline = entryOf(t).Deadline
	r.told = slices.Contains(u.image.Description().Needs, abi.FeatureAsks)
	err = r.catchUp(u.ctx)
	if err == nil { // what has come since the batch was read is not left for when the actor is held
		err = r.past.all.readOn(u.ctx, u.sys)
	}
	if err == nil {
		err = r.catchUp(u.ctx)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// again is an instance of new code that handles again what an actor has handled.
type again struct {
	u     *run
	x     *sandbox.Instance // nil: there is nothing to handle
	start abi.Start
	entry sandbox.Entry
	told  bool // of the deadlines of questions
	same  bool // the code is the actor's, under other limits: its state goes over as it is
	past  *past

	counted bool // it is known what its incarnation has begun with: it is handled anew for that once at most

	begun   bool
	entries int    // that were handled
	next    uint64 // turn
	done    int    // messages
	heads   []byte
}

// anew has a fresh instance handle everything.
func (r *again) anew() (err error) {
	r.close()
	r.begun, r.entries, r.next, r.done = false, 0, 0, 0
	r.x, err = sandbox.Get(r.u.image)
	return err
}

func (r *again) close() {
	if r.x != nil {
		r.x.Put()
		r.x = nil
	}
}

// convert handles what the actor has handled meanwhile. It is a function as convert.
func (r *again) convert(ctx context.Context, t *swap.Taken, image *sandbox.Image, try int) (*swap.Code, int, error) {
	if r.same {
		return convert(ctx, t, image, try)
	}
	if t.Start.Incarnation != r.start.Incarnation {
		return nil, 0, fmt.Errorf("replay: %w", swap.ErrMoved)
	}
	swap.Passes(t.Ref, swap.Saving)
	for r.next < t.Entry.FirstTurn { // a turn may not be on the disk yet
		before := r.entries
		if err := r.past.all.readOn(ctx, r.u.sys); err != nil {
			return nil, r.done, fmt.Errorf("replay: %w", err)
		}
		if err := r.catchUp(ctx); err != nil {
			return nil, r.done, err
		}
		if r.entries > before {
			continue
		}
		if swap.Manual(r.u.sys) {
			return nil, r.done, fmt.Errorf("replay: %w: its last turns are not on the disk yet", swap.ErrNotNow)
		}
		select {
		case <-ctx.Done():
			return nil, r.done, fmt.Errorf("replay: it has had %d turns, of which the store has %d", t.Entry.FirstTurn, r.next)
		case <-time.After(time.Millisecond):
		}
	}
	swap.Passes(t.Ref, swap.Loading)
	to := &swap.Code{Image: image, State: &sandbox.Snapshot{}, Time: t.Entry.Now, Again: true}
	if err := r.x.Save(to.State); err != nil {
		return nil, r.done, fmt.Errorf("replay: %w", err)
	}
	return to, r.done, nil
}

// catchUp handles the entries that were read.
func (r *again) catchUp(ctx context.Context) error {
	entries, incarnation, err := r.past.from(r.entries)
	switch {
	case err != nil:
		return fmt.Errorf("replay: %w", err)
	case incarnation != r.start.Incarnation:
		return fmt.Errorf("replay: %w", swap.ErrMoved)
	}
	for i := 0; i < len(entries); i++ {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		err := r.handle(&entries[i])
		if err == nil {
			r.entries++
			continue
		}
		if before := (*spawnedBefore)(nil); errors.As(err, &before) {
			r.start.Spawned, r.counted, i = before.n, true, -1
			if err = r.anew(); err == nil {
				entries, _, err = r.past.from(0)
			}
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// spawnedBefore says how many children an actor had spawned before its incarnation began. Their refs come from that number, and no record has
// it: it is known by the first child that it has spawned since.
type spawnedBefore struct{ n uint64 }

func (x *spawnedBefore) Error() string { return fmt.Sprintf("it had spawned %d children before", x.n) }

// mostTried bounds the bytes of commands that are tried: code that nobody trusts has chosen their size.
const mostTried = 64 << 20

// spawned finds the number of a child in a command whose checksum is another one than the old code's; nil: it is not about that.
func (r *again) spawned(cmd []byte, want uint32) *spawnedBefore {
	var c abi.Command
	if _, err := abi.DecodeCommand(&c, cmd); err != nil || c.Op != abi.OpSpawn {
		return nil
	}
	has := abi.AppendUint(nil, uint64(c.Ref))
	for n, tried := r.start.Spawned, 0; n > 0 && tried < mostTried; n-- {
		tried += len(cmd)
		other := bytes.Replace(cmd, has, abi.AppendUint(nil, uint64(abi.ChildRef(r.start.RefKey, r.start.Self.Node(), n-1))), 1)
		if sums := record.Checksums(nil, &record.Turn{Outbox: other}); len(sums) == 1 && sums[0] == want {
			return &spawnedBefore{n - 1}
		}
	}
	return nil
}

// handle has the turns of an entry again that have not failed.
func (r *again) handle(e *pastEntry) error {
	sums := byTurn(e.Outbox)
	if len(e.Mail) == 0 {
		if r.begun {
			return fmt.Errorf("turn %d was about no message, but a decision, and what it was about is not kept", e.First)
		}
		r.begun = true
		start := r.start
		start.Reason = r.past.reason
		err := r.turn(e, 0, &abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &start)}, sums)
		r.next = e.end()
		return err
	}
	if !r.begun {
		return fmt.Errorf("turn %d is the first that is kept", e.First)
	}
	for i := range e.Done {
		m := r.past.message(e.Mail[i])
		if m == nil {
			return fmt.Errorf("message %d is not kept any more; store.keep says how long messages are", e.Mail[i])
		}
		env := abi.Envelope{Kind: m.Kind, Sender: m.Sender, Correlation: m.Correlation, Headers: m.Headers, Payload: m.Payload}
		if due := m.Flags&mark.Due != 0; r.told && (due || len(m.Headers) > 0) {
			env.Headers = nil
			if r.heads = header.Stated(r.heads, m.Headers, m.Due, due); len(r.heads) > 1 {
				env.Headers = r.heads
			}
		}
		if err := r.turn(e, i, &env, sums); err != nil {
			return err
		}
		r.done++
	}
	r.next = e.end()
	return nil
}

// turn has one turn again, and compares what it asks for with the checksums of what was asked for.
func (r *again) turn(e *pastEntry, i int, env *abi.Envelope, sums [][]uint32) error {
	entry := r.entry
	env.Time, entry.Now, entry.FirstTurn = e.time, e.time, e.First+uint64(i)
	if _, _, err := swap.Turn(r.x, &entry, env); err != nil {
		return fmt.Errorf("turn %d, which the old code has ended well: %w", entry.FirstTurn, err)
	}
	var want []uint32
	if i < len(sums) {
		want = sums[i]
	}
	var got record.Entry
	if sums := byTurn(record.Checksums(nil, &record.Turn{Outbox: r.x.Outbox(1)})); len(sums) > 0 {
		got.Outbox = sums[0]
	}
	_, at, differs := got.Differs(&record.Entry{Outbox: want})
	if !differs {
		return nil
	}
	all := commands(r.x.Outbox(1))
	if at < len(all) && at < len(want) && !r.counted {
		if before := r.spawned(all[at], want[at]); before != nil {
			return before
		}
	}
	return fmt.Errorf("turn %d: command %d of %d is another one than the old code has asked for, of %d; the new code asks for %s", entry.FirstTurn, at, len(all), len(want), text(all[min(at, len(all)):]))
}

// byTurn splits the checksums of an entry.
func byTurn(sums []uint32) (all [][]uint32) {
	for len(sums) > 0 {
		n := slices.Index(sums, 0)
		if n < 0 {
			return append(all, sums)
		}
		all, sums = append(all, sums[:n]), sums[n+1:]
	}
	return all
}
