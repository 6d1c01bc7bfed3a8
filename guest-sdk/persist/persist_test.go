//go:build !wasip1

package persist_test

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

type added int64

func (a added) MarshalCBOR(w *abi.Writer) { w.Int(int64(a)) }
func (added) MessageType() string         { return "sum.added@1" }

type unknown struct{ added }

func (unknown) MessageType() string { return "sum.unknown@1" }

type sum struct {
	log        *persist.Log
	n          int64
	recovering bool // as Apply saw it last
}

func (s *sum) Apply(e *persist.Event) error {
	var n actor.Int
	err := persist.Decode(e, &n)
	s.n += int64(n)
	s.recovering = s.log.Recovering()
	return err
}

func (s *sum) Snapshot(w *abi.Writer) { w.Int(s.n) }

func (s *sum) Restore(_ uint16, r *abi.Reader) error { s.n = r.Int(); return nil }

func (s *sum) Receive(ctx *actor.Context, msg *actor.Message) error {
	var err error
	if n, ok := msg.Int(); ok {
		err = s.log.Persist(ctx, added(n), "odd")
	} else {
		err = s.log.PersistAll(ctx, must(persist.Make(added(1))), must(persist.Make(unknown{})))
	}
	if err != nil {
		return ctx.ReplyError(err.Error())
	}
	return ctx.Reply(actor.Int(s.n))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func init() {
	persist.Register("sum", persist.Definition{Schema: new(persist.Schema).Type("sum.added", 1), Retention: persist.Retention{Every: 2, Keep: 1, Trim: true}},
		func(l *persist.Log) persist.Actor { return &sum{log: l} })
}

func TestH10_H12_InTheSDK(t *testing.T) {
	a := actortest.Spawn(t, "sum")
	if a.Started().Recovered == nil || a.Started().Recovered.Failure != nil {
		t.Fatalf("%+v", a.Started())
	}
	turn := a.Send(actor.Int(5))
	if got := turn.Reply(); got.Int() != 5 || len(turn.Persisted) != 1 || turn.Persisted[0].Number != 1 || turn.Persisted[0].Tags[0] != "odd" {
		t.Errorf("%+v", turn)
	}
	if a.Actor().(*sum).recovering {
		t.Error("it is fed what it stores now")
	}
	turn = a.Send(actor.Text("both"))
	if got := turn.Reply(); got.Kind != actortest.ReplyError || !strings.Contains(got.Text(), "sum.unknown@1") || len(turn.Persisted) != 0 {
		t.Errorf("%+v", turn)
	}
	a.Restart()
	if s := a.Actor().(*sum); s.n != 5 || !s.recovering || s.log.Recovering() || s.log.Last() != 1 {
		t.Errorf("%+v", s)
	}
	a.Send(actor.Int(6))
	if len(a.Snapshots()) != 1 || len(a.Events()) != 2 {
		t.Errorf("%+v %+v", a.Snapshots(), a.Events())
	}
	a.Send(actor.Int(7))
	a.Send(actor.Int(8)) // the second snapshot: the first goes, and the events in this one
	if s := a.Snapshots(); len(s) != 1 || s[0].Number != 4 || len(a.Events()) != 0 {
		t.Errorf("%+v %+v", s, a.Events())
	}
	a.Restart()
	if got := a.Send(actor.Int(1)).Reply(); got.Int() != 27 {
		t.Errorf("%+v", got)
	}
}

func TestUnknownEventsStopTheRecovery(t *testing.T) {
	a := actortest.Spawn(t, "sum", actortest.History(nil, must(persist.Make(added(3))), must(persist.Make(unknown{}))))
	if f := a.Started().Recovered.Failure; f == nil || !strings.Contains(f.Reason, "event 2 is of the unknown type sum.unknown@1") {
		t.Errorf("%+v", f)
	}
}
