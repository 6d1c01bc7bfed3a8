package contract

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest/fake"
	sdkschedule "github.com/wasmactors/wasmactors/guest-sdk/schedule"
	sdk "github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/schedule"
	"pgregory.net/rapid"
)

// The fakes of package actortest/fake against the services that they stand for: the same requests have the same answers.

// relay is an actor that asks a service what it is asked: [service, op, args].
type relay struct{}

func (relay) Receive(ctx *actor.Context, m *actor.Message) error {
	r := m.Reader()
	if r.Array() != 3 {
		return actor.ErrUnhandled
	}
	name, op, args := r.Text(), r.Text(), append(actor.Raw{}, r.Raw()...)
	to, question := ctx.Sender(), ctx.Correlation()
	sdk.Ask(ctx, name, op, args, time.Minute, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return ctx.AnswerError(to, question, err.Error())
		}
		return ctx.Answer(to, question, actor.Raw(m.Payload()))
	})
	return nil
}

// set is an actor that sets an entry of the schedule, and answers when it runs next.
var toSet sdkschedule.Entry

type set struct{}

func (set) Receive(ctx *actor.Context, m *actor.Message) error {
	if _, ok := sdkschedule.RunOf(m); ok {
		return ctx.Reply(nil)
	}
	to, question := ctx.Sender(), ctx.Correlation()
	sdkschedule.Set(ctx, toSet, func(ctx *actor.Context, s sdkschedule.State, err error) error {
		if err != nil {
			return ctx.AnswerError(to, question, err.Error())
		}
		return ctx.Answer(to, question, actor.Int(s.Next.UnixNano()))
	})
	return nil
}

func init() {
	actor.Register("relay", func() actor.Actor { return relay{} })
	actor.Register("set", func() actor.Actor { return set{} })
}

// outcome is what a request was answered with.
type outcome struct {
	code   string
	answer map[string]any
}

func outcomeOf(payload []byte, failure string) (o outcome) {
	if failure != "" {
		o.code, _, _ = strings.Cut(failure, ":")
		return o
	}
	if err := cbor.Unmarshal(payload, &o.answer); err != nil {
		o.code = err.Error()
	}
	return o
}

// served is a store in a system, which is asked by an actor in Go.
type served struct {
	t      testing.TB
	sys    *host.System
	clock  *host.VirtualClock
	run    *service.Running
	client host.Ref
}

type native func(*host.Context, host.Message) error

func (f native) Receive(ctx *host.Context, m host.Message) error { return f(ctx, m) }

func serveKV(t testing.TB) *served {
	s := &served{t: t, clock: host.NewVirtualClock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.sys, err = host.New(host.NewConfig("test").WithClock(s.clock))
	must(err)
	s.run, err = kv.Service.Start(s.sys, &service.Env{Clock: s.clock}, &kv.Settings{})
	must(err)
	s.client, err = s.sys.Spawn("client", host.Native(func() host.Actor {
		open, n := map[uint64]*host.Reply{}, uint64(0)
		return native(func(ctx *host.Context, m host.Message) error {
			if reply := open[m.Correlation]; reply != nil && m.Sender == s.run.Ref() {
				delete(open, m.Correlation)
				if err := m.Err(); err != nil {
					return reply.Fail(err.(*host.ReplyError).Reason)
				}
				return reply.Send(host.Raw(m.Payload))
			}
			reply, err := ctx.Later()
			if err != nil {
				return err
			}
			n++
			open[n] = reply
			return ctx.Ask(s.run.Ref(), host.Raw(m.Payload), n, time.Hour)
		})
	}).WithGrant("kv", kv.Service.Grant(kv.Grant{Namespace: "main", Mode: "rw"}, service.Bounds{})))
	must(err)
	return s
}

func (s *served) close() {
	_ = s.sys.Close(context.Background())
	if err := s.run.Wait(context.Background()); err != nil {
		s.t.Error(err)
	}
}

func (s *served) ask(op string, args any) outcome {
	m, err := s.sys.Ask(context.Background(), s.client, []any{op, args})
	var refused *host.ReplyError
	switch {
	case errors.As(err, &refused):
		return outcomeOf(nil, refused.Reason)
	case err != nil:
		return outcome{code: "no answer: " + err.Error()}
	}
	return outcomeOf(m.Payload, "")
}

// versions replaces versions by the order in which they were first seen: those of a store only grow.
type versions map[uint64]int

func (v versions) in(x any) any {
	switch x := x.(type) {
	case map[any]any:
		out := map[string]any{}
		for key, value := range x {
			out[fmt.Sprint(key)] = value
		}
		return v.in(out)
	case map[string]any:
		out := map[string]any{}
		for key, value := range x {
			switch n, ok := value.(uint64); {
			case key == "version" && ok:
				if _, known := v[n]; !known {
					v[n] = len(v)
				}
				out[key] = v[n]
			case key == "cursor":
				out[key] = len(value.([]byte)) > 0
			default:
				out[key] = v.in(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = v.in(x[i])
		}
		return out
	}
	return x
}

// latest is the version that an answer ends with, 0 if it has none.
func latest(o outcome) (version uint64) {
	version, _ = o.answer["version"].(uint64)
	return version
}

func TestTheFakeOfKVAnswersAsTheService(test *testing.T) {
	rapid.Check(test, func(t *rapid.T) {
		real := serveKV(test)
		defer real.close()
		w := actortest.NewWorld(test)
		fake.NewKV(w)
		client := w.Spawn("relay")
		ask := func(op string, args map[string]any) outcome {
			raw, _ := host.Encode([]any{"kv", op, args})
			m := w.Ask(client, actor.Raw(raw))
			if m.Kind == actortest.ReplyError {
				return outcomeOf(nil, m.Text())
			}
			return outcomeOf(m.Payload, "")
		}
		keys := rapid.SampledFrom([]string{"a", "a/1", "a/2", "b", ""})
		seen := [2][]uint64{{0}, {0}} // 0: there must be none
		known := [2]versions{{}, {}}
		cursors := [2][]byte{}
		operation := func(kind string) (a [2]map[string]any) {
			a = [2]map[string]any{{}, {}}
			put := func(key string, v any) { a[0][key], a[1][key] = v, v }
			put("key", keys.Draw(t, "key"))
			switch kind {
			case "put":
				put("value", rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "value"))
			case "add":
				put("delta", rapid.SampledFrom([]int64{1, -2, 1 << 62, -1 << 63}).Draw(t, "delta"))
			}
			if (kind == "put" || kind == "add") && rapid.Bool().Draw(t, "it ends") {
				put("ttl", int64(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, -1}).Draw(t, "ttl")))
			}
			if rapid.IntRange(0, 2).Draw(t, "condition") == 0 || kind == "check" {
				i := rapid.IntRange(0, len(seen[0])-1).Draw(t, "version")
				a[0]["if_version"], a[1]["if_version"] = seen[0][i], seen[1][i]
			}
			return a
		}
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			op := rapid.SampledFrom([]string{"get", "put", "put", "delete", "add", "batch", "list", "time", "nonsense"}).Draw(t, "op")
			a := [2]map[string]any{{}, {}}
			switch op {
			case "time":
				d := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t, "passes")
				w.Advance(d)
				real.clock.Advance(d)
				continue
			case "get":
				k := keys.Draw(t, "key")
				a[0]["key"], a[1]["key"] = k, k
			case "put", "delete", "add":
				a = operation(op)
			case "batch":
				lists := [2][]any{{}, {}}
				for range rapid.IntRange(0, 4).Draw(t, "operations") {
					kind := rapid.SampledFrom([]string{"put", "delete", "add", "check"}).Draw(t, "kind")
					o := operation(kind)
					for i := range o {
						o[i]["op"] = kind
						lists[i] = append(lists[i], o[i])
					}
				}
				a[0]["ops"], a[1]["ops"] = lists[0], lists[1]
			case "list":
				for i := range a {
					if cursors[i] != nil {
						a[i]["cursor"] = cursors[i]
					}
				}
				for key, v := range map[string]any{"prefix": rapid.SampledFrom([]string{"", "a", "a/"}).Draw(t, "prefix"), "limit": rapid.IntRange(-1, 3).Draw(t, "limit"),
					"values": rapid.Bool().Draw(t, "values"), "reverse": rapid.Bool().Draw(t, "reverse")} {
					a[0][key], a[1][key] = v, v
				}
			}
			got := [2]outcome{ask(op, a[0]), real.ask(op, a[1])}
			if v := latest(got[0]); v != 0 {
				seen[0], seen[1] = append(seen[0], v), append(seen[1], latest(got[1]))
			}
			for i := range got {
				cursors[i] = nil
				if op == "list" {
					cursors[i], _ = got[i].answer["cursor"].([]byte)
				}
			}
			is, want := known[0].in(any(got[0].answer)), known[1].in(any(got[1].answer))
			if got[0].code != got[1].code || !reflect.DeepEqual(is, want) {
				t.Fatalf("%s %v: the fake says %q %v, the service %q %v", op, a[0], got[0].code, is, got[1].code, want)
			}
		}
	})
}

func TestTheFakeOfScheduleRunsWhenTheServiceDoes(test *testing.T) {
	field := func(low, high int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			n := func(name string) int { return rapid.IntRange(low, high).Draw(t, name) }
			switch rapid.IntRange(0, 5).Draw(t, "form") {
			case 0, 1:
				return "*"
			case 2:
				return fmt.Sprintf("*/%d", rapid.IntRange(1, high).Draw(t, "step"))
			case 3:
				a, b := n("low"), n("high")
				return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), rapid.IntRange(1, 4).Draw(t, "step"))
			case 4:
				return fmt.Sprintf("%d,%d", n("one"), n("another"))
			}
			return fmt.Sprint(n("value"))
		})
	}
	fields := []*rapid.Generator[string]{field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)}
	zones := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"})
	rapid.Check(test, func(t *rapid.T) {
		words := make([]string, len(fields))
		for i := range words {
			words[i] = fields[i].Draw(t, "field")
		}
		expression, zone := strings.Join(words, " "), zones.Draw(t, "zone")
		if rapid.IntRange(0, 9).Draw(t, "short") == 0 {
			expression = rapid.SampledFrom([]string{"@daily", "@hourly", "@weekly", "@yearly", "30 0 2 * * sun", "0 9 * jan-mar mon-fri", "@never", "61 * * * *"}).Draw(t, "shorthand")
		}
		at := time.Unix(rapid.Int64Range(946684800, 2e9).Draw(t, "at"), 0).UTC()
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip(err)
		}
		if _, end := at.In(loc).ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(t, "the clock is changed soon") {
			at = end.Add(-time.Duration(rapid.IntRange(1, 6*3600).Draw(t, "before")) * time.Second).UTC()
			expression = fmt.Sprintf("%d %s * * *", 15*rapid.IntRange(0, 3).Draw(t, "minute"), rapid.SampledFrom([]string{"1", "2", "1-3", "2,3", "*", "*/2"}).Draw(t, "hour"))
		}
		spec, wrong := schedule.ParseCron(expression, loc)
		w := actortest.NewWorld(test, actortest.At(at))
		times := fake.NewSchedule(w)
		a := w.Spawn("set")
		toSet = sdkschedule.Entry{Name: "e", Cron: expression, Zone: zone}
		got := w.Ask(a, actor.Text("set"))
		if (got.Kind == actortest.ReplyError) != (wrong != nil) {
			t.Fatalf("%q in %q: the fake says %s, the service %v", expression, zone, got.Text(), wrong)
		}
		if wrong != nil {
			return
		}
		for range 4 {
			next, ok := spec.Next(w.Now().UnixNano())
			is := times.Next("/user/set", "e")
			if ok != !is.IsZero() || ok && is.UnixNano() != next {
				t.Fatalf("%q in %q after %v: the fake says %v, the service %v %v", expression, zone, w.Now().In(loc), is.In(loc), time.Unix(0, next).In(loc), ok)
			}
			if !ok {
				return
			}
			w.Advance(is.Sub(w.Now()))
		}
	})
}
