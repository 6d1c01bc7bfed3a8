package schedule_test

import (
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/schedule"
)

type reports struct{ made map[string]bool }

func (r *reports) Started(ctx *actor.Context) error {
	schedule.Set(ctx, schedule.Entry{Name: "nightly", Cron: "0 3 * * *", Zone: "Europe/Berlin"}, nil)
	return nil
}

func (r *reports) Receive(ctx *actor.Context, msg *actor.Message) error {
	run, ok := schedule.RunOf(msg)
	if !ok {
		return actor.ErrUnhandled
	}
	if !r.made[run.ID] { // the same run may come again
		r.made[run.ID] = true
	}
	return ctx.Reply(nil)
}

var _ actor.Actor = (*reports)(nil)
