//go:build !wasip1

package actortest

import (
	"sort"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Message is what a test delivers.
type Message struct {
	Kind        abi.Kind  // actor.KindMessage if it is not set
	Sender      actor.Ref // 0: none
	Correlation uint64    // for KindTimer the key; 0: none
	Headers     map[string]string
	Body        actor.Encoder // null if it is nil
}

// Send asks the actor as [Tester]: the answer is the turn's Reply.
func (a *Actor) Send(body actor.Encoder) *Turn {
	a.t.Helper()
	a.asked++
	return a.Deliver(Message{Sender: Tester, Correlation: a.asked, Body: body})
}

// Deliver hands any message to the actor and returns the turn that it causes.
func (a *Actor) Deliver(m Message) *Turn {
	a.t.Helper()
	e := abi.Envelope{Kind: m.Kind, Sender: m.Sender, Correlation: m.Correlation, Payload: encode(m.Body)}
	keys := make([]string, 0, len(m.Headers))
	for k := range m.Headers {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		e.Headers = abi.AppendHeader(e.Headers, k, m.Headers[k])
	}
	return a.deliver(e)
}

// Pass hands the actor what another one has sent.
func (a *Actor) Pass(s Sent) *Turn {
	a.t.Helper()
	e := abi.Envelope{Sender: s.From, Correlation: s.Correlation, Headers: s.headers, Payload: s.Payload}
	switch s.Kind {
	case Reply:
		e.Kind = abi.KindReply
	case ReplyError:
		e.Kind = abi.KindReplyError
	}
	return a.deliver(e)
}

// Answer answers a question of the actor's, one of its turn's Sent.
func (a *Actor) Answer(question Sent, body actor.Encoder) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindReply, Sender: question.To, Correlation: question.Correlation, Body: body})
}

// AnswerError answers a question of the actor's with an error.
func (a *Actor) AnswerError(question Sent, reason string) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindReplyError, Sender: question.To, Correlation: question.Correlation, Body: actor.Text(reason)})
}

// Terminated tells the actor that one that it watches has ended: "stopped",
// "failed: ..." or "unknown".
func (a *Actor) Terminated(ref actor.Ref, reason string) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindTerminated, Sender: ref, Body: actor.Text(reason)})
}

// SpawnFailed tells the actor that its child could not be started.
func (a *Actor) SpawnFailed(child Spawned, reason string) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindSpawnFailed, Sender: child.Ref, Body: actor.Text(reason)})
}

// Stop ends the actor and returns its last turn. Of that turn only what it sends counts.
func (a *Actor) Stop() *Turn {
	a.t.Helper()
	if a.world != nil {
		a.world.stopBelow(a)
	}
	turn := a.deliver(abi.Envelope{Kind: abi.KindStop, Payload: []byte{0xf6}})
	a.ended = true
	if a.world != nil {
		a.world.hasEnded(a, "stopped")
	}
	return turn
}

func encode(v actor.Encoder) []byte {
	w := abi.NewWriter(nil)
	if v == nil {
		w.Null()
	} else {
		v.MarshalCBOR(w)
	}
	return w.Bytes()
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// Decide asks the actor what to do about a child that has failed; its answer is
// the turn's Decided.
func (a *Actor) Decide(child actor.Ref, f abi.Failure) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindChildFailed, Sender: child, Body: actor.Raw(abi.AppendFailure(nil, &f))})
}

// PreRestart tells the actor that its incarnation ends with a restart. Restart begins
// the next one.
func (a *Actor) PreRestart(reason string) *Turn {
	a.t.Helper()
	return a.Deliver(Message{Kind: abi.KindPreRestart, Body: actor.Text(reason)})
}
