//go:build !wasip1

package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/schedule"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// planner sets an entry when it starts, and notes its runs.
type planner struct {
	next time.Time
	err  error
	runs []string
}

var one *planner

func init() { actor.Register("planner", func() actor.Actor { return one }) }

func (p *planner) Started(ctx *actor.Context) error {
	schedule.Set(ctx, schedule.Entry{Name: "nightly", Cron: "0 3 * * *", Zone: "Europe/Berlin", Payload: actor.Text("x"), Missed: schedule.Skip}, func(ctx *actor.Context, s schedule.State, err error) error {
		p.next, p.err = s.Next, err
		return nil
	})
	return nil
}

func (p *planner) Receive(ctx *actor.Context, msg *actor.Message) error {
	run, ok := schedule.RunOf(msg)
	if !ok {
		return actor.ErrUnhandled
	}
	p.runs = append(p.runs, run.ID+" "+run.Planned.Format(time.RFC3339))
	return ctx.Reply(nil)
}

func TestSetAndRun(t *testing.T) {
	w := actortest.NewWorld(t)
	fake := w.Serve("schedule", func(c *actortest.Call) {
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(3) // what a later host may say is skipped
			w.Text("changed")
			w.Bool(true)
			w.Text("later")
			w.Array(1)
			w.Null()
			w.Text("next")
			w.Int(1_800_000_000_000_000_000)
		}))
	})
	p := &planner{}
	one = p
	w.Spawn("planner")
	if p.err != nil || p.next.Unix() != 1_800_000_000 {
		t.Error(p.next, p.err)
	}
	calls := fake.Calls()
	if len(calls) != 1 || calls[0].Op != "set" {
		t.Fatalf("%+v", calls)
	}
	want := "\xa5\x64name\x67nightly\x64cron\x690 3 * * *\x64zone\x6dEurope/Berlin\x67payload\x61x\x66missed\x64skip"
	if string(calls[0].Args) != want {
		t.Errorf("%q", calls[0].Args)
	}
}

func TestWithoutGrant(t *testing.T) {
	w := actortest.NewWorld(t)
	p := &planner{}
	one = p
	w.Spawn("planner")
	if !errors.Is(p.err, service.ErrDenied) {
		t.Error(p.err)
	}
}
