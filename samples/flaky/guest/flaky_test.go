//go:build !wasip1

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

const customer actor.Ref = 77

// line is a supervisor with its client and a service, wired by hand.
type line struct {
	supervisor, client, service *actortest.Actor
}

func newLine(t *testing.T) (*line, *actortest.Turn) {
	var args abi.Writer
	(&options{Service: "/user/service", Timeout: 200, Reset: true}).MarshalCBOR(&args)
	l := &line{supervisor: actortest.Spawn(t, "supervisor"), service: actortest.Spawn(t, "service")}
	l.client = l.supervisor.Child(actortest.Spawned{Ref: 99, Type: "client", Name: "client", Args: args.Bytes()})
	return l, l.supervisor.Pass(l.client.Started().Sent[0])
}

func (l *line) order(o *order) *actortest.Turn {
	return l.supervisor.Deliver(actortest.Message{Sender: customer, Correlation: 5, Body: o})
}

// attempt hands a call to the client and lets it fail; the supervisor learns of it, and
// the call that it makes next is returned.
func (l *line) attempt(t *testing.T, c actortest.Sent, reason string) actortest.Sent {
	t.Helper()
	var turn *actortest.Turn
	question := l.client.Pass(c).Ask()
	if question.Path != "/user/service" {
		t.Fatalf("the client asks %+v", question.Target)
	}
	switch answers := l.service.Pass(question); {
	case answers.Failure != nil:
		l.service.Restart()
		fallthrough
	case len(answers.Sent) == 0:
		turn = l.client.Advance(200 * time.Millisecond)[0]
	default:
		turn = l.client.Pass(answers.Reply())
	}
	if turn.Failure == nil || !strings.Contains(turn.Failure.Reason, reason) {
		t.Fatalf("%v, want %q", turn.Failure, reason)
	}
	if d := l.supervisor.Decide(l.client.Ref(), *turn.Failure).Decided; d != actor.DefaultDirective {
		t.Errorf("the supervisor decides %v", d)
	}
	return l.supervisor.Pass(l.client.Restart().Sent[0]).Sent[0]
}

// Each trouble costs one crash of the client; the order is handed on again until it
// is accepted, and only then the next one.
func TestOrderSurvivesEveryTrouble(t *testing.T) {
	l, ready := newLine(t)
	if len(ready.Watched) != 1 || ready.Watched[0].To != l.client.Ref() || len(ready.Sent) != 0 {
		t.Errorf("%+v", ready)
	}
	c := l.order(&order{ID: 1, Trouble: []string{"busy", "garbage", "silent", "crash"}}).Sent[0]
	if second := l.order(&order{ID: 2}); len(second.Sent) != 0 {
		t.Errorf("the second order is handed on beside the first: %+v", second.Sent)
	}
	for _, reason := range []string{"the service is busy", "the answer is garbage", "no answer within 200ms", "no answer within 200ms"} {
		c = l.attempt(t, c, reason)
	}
	success := l.client.Pass(l.service.Pass(l.client.Pass(c).Ask()).Reply())
	if !success.BackoffReset {
		t.Error("a success does not reset the backoff")
	}
	done := l.supervisor.Pass(success.Sent[0])
	var o outcome
	if err := done.Sent[0].Decode(&o); err != nil || done.Sent[0].To != customer || done.Sent[0].Correlation != 5 || o != (outcome{1, "order 1 is accepted", 5, 0}) {
		t.Errorf("%+v, %v", o, err)
	}
	var next call
	if err := done.Sent[1].Decode(&next); err != nil || done.Sent[1].To != l.client.Ref() || next != (call{2, 1, ""}) {
		t.Errorf("%+v, %v", next, err)
	}
}

// Orders that come while the client is away wait for it.
func TestOrdersWaitForTheClient(t *testing.T) {
	l, _ := newLine(t)
	l.supervisor.Decide(l.client.Ref(), abi.Failure{Kind: abi.FailureGuestError})
	if turn := l.order(&order{ID: 1}); len(turn.Sent) != 0 {
		t.Errorf("%+v", turn.Sent)
	}
	if turn := l.supervisor.Pass(l.client.Started().Sent[0]); len(turn.Sent) != 1 || turn.Sent[0].To != l.client.Ref() {
		t.Errorf("%+v", turn.Sent)
	}
}

// A client that does not come back leaves nobody waiting.
func TestGivingUpAnswersEverybody(t *testing.T) {
	l, _ := newLine(t)
	l.order(&order{ID: 1})
	l.order(&order{ID: 2})
	over := l.supervisor.Terminated(l.client.Ref(), "failed: busy")
	later := l.order(&order{ID: 3})
	for _, s := range append(over.Sent, later.Sent...) {
		if s.Kind != actortest.ReplyError || s.To != customer || !strings.Contains(s.Text(), "failed: busy") {
			t.Errorf("%+v: %s", s, s.Text())
		}
	}
	if len(over.Sent) != 2 || len(later.Sent) != 1 {
		t.Errorf("%d and %d answers", len(over.Sent), len(later.Sent))
	}
}

// What is not an order is refused, and a stranger cannot pass for the client.
func TestStrangers(t *testing.T) {
	l, _ := newLine(t)
	l.order(&order{ID: 1})
	for _, body := range []actor.Encoder{actor.Text("ready"), actor.Int(7)} {
		turn := l.supervisor.Deliver(actortest.Message{Sender: customer, Correlation: 6, Body: body})
		if answer := turn.Reply(); len(turn.Sent) != 1 || answer.Kind != actortest.ReplyError || !strings.HasPrefix(answer.Text(), "not an order") {
			t.Errorf("%+v", turn.Sent)
		}
	}
	forged := l.supervisor.Deliver(actortest.Message{Sender: customer, Body: &receipt{1, "accepted"}})
	if len(forged.Sent) != 0 {
		t.Errorf("a stranger's receipt has settled an order: %+v", forged.Sent)
	}
}
