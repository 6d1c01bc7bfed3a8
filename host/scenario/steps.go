package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// step carries out a step.
func (w *world) step(s *step) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.stand(s); err != nil {
		return err
	}
	if s.verb.node() {
		return w.nodeStep(s)
	}
	switch s.verb.name {
	case "send":
		return w.send(s)
	case "ask":
		return w.ask(s)
	case "reply":
		return w.reply(s)
	case "advance":
		d := s.span("advance", 0)
		w.noteOf("", "advance %v", d)
		return w.advance(d)
	case "crash", "stop", "restart", "pause", "unpause":
		return w.operate(s)
	case "drop", "delay", "duplicate", "reorder":
		return w.addFault(s, &fault{verb: s.verb.name, left: s.whole("messages", 1), by: s.span("by", 0)})
	case "http":
		if s.verb.of.Kind == grammar.Text {
			return w.request(s)
		}
		w.web.put(s.fakes)
		return nil
	case "websocket":
		return w.websocket(s)
	case "expect":
		return w.expect(s)
	case "expect-none":
		return w.expectNone(s)
	case "expect-restart":
		return w.expectRestart(s)
	case "expect-stopped":
		return w.expectStopped(s)
	case "expect-event":
		return w.expectEvent(s)
	case "expect-request":
		return w.expectRequest(s)
	case "expect-state":
		return w.expectState(s)
	}
	panic("scenario: the verb " + s.verb.name + " is declared and not carried out")
}

// message is the message of a step, with its headers.
func (w *world) message(s *step) (any, error) {
	w.messages++
	v, err := valueOf(w.drawn(grammar.At(s.n, "message"), w.messages), w.number)
	if err != nil {
		return nil, err
	}
	if h := s.texts("headers"); h != nil {
		return host.Headed{Value: v, Headers: h}, nil
	}
	return v, nil
}

func (w *world) send(s *step) error {
	to, err := w.address(s.object())
	if err != nil {
		return err
	}
	said := source(grammar.At(s.n, "message"))
	for left := s.whole("times", 1) - 1; left >= 0; left-- {
		if err := w.stillStands(s); err != nil {
			return err
		}
		v, err := w.message(s)
		if err != nil {
			return err
		}
		if !w.simulated.sends(w.messages) {
			continue
		}
		if w.simulated != nil {
			said = source(w.drawn(grammar.At(s.n, "message"), w.messages))
		}
		w.note("send to %s: %s", to.Path(), said)
		if from := s.text("from"); from != "" {
			err = w.probe(from).send(w.place, to.To, to.Message(v))
		} else {
			err = w.sys.Tell(to.To, to.Message(v))
		}
		if err != nil {
			return &stepError{what: fmt.Sprintf("%s does not take the message: %s", to.Path(), plain(err))}
		}
		if err := w.moment(left > 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) ask(s *step) error {
	_, err := w.asks(s)
	return err
}

// asks is ask with the answer.
func (w *world) asks(s *step) (m host.Message, err error) {
	to, err := w.address(s.object())
	if err != nil {
		return m, err
	}
	v, err := w.message(s)
	if err != nil {
		return m, err
	}
	if !w.simulated.sends(w.messages) {
		return m, nil
	}
	w.note("ask %s: %s", to.Path(), source(grammar.At(s.n, "message")))
	p, err := w.sys.Request(to.To, to.Message(v))
	if err != nil {
		return m, w.answered(s, m, err)
	}
	if err := w.runUntilIdle(); err != nil {
		return m, err
	}
	within := s.span("within", DefaultWithin)
	got, err := w.until(within, func() bool {
		select {
		case m = <-p.Answer():
			return true
		default:
			return false
		}
	})
	if err != nil {
		return m, err
	}
	if !got {
		p.Cancel()
		e := &stepError{what: fmt.Sprintf("no answer from %s within %v", to.Path(), within), hint: w.why(to.Path())}
		if ref, there := w.sys.Find(to); there {
			e.hint = w.state(ref)
		}
		if s.has("error") { // a missing answer is an error, too
			return m, w.answered(s, m, e)
		}
		return m, e
	}
	return m, w.answered(s, m, m.Err())
}

// answered compares an answer, or the reason why there is none.
func (w *world) answered(s *step, m host.Message, err error) error {
	want := s.text("error")
	switch {
	case err != nil && want == "":
		return &stepError{what: "there is no answer but an error", want: w.wanted(s, "answer"), got: "error: " + plain(err)}
	case err != nil:
		if text := plain(err); !glob.Match(want, text) {
			return &stepError{what: "it is another error", want: "error: " + want, got: "error: " + text}
		}
		return nil
	case want != "":
		return &stepError{what: "there is an answer and no error", want: "error: " + want, got: shownPayload(m.Payload)}
	}
	return w.compare(s, m.Payload, "answer")
}

// plain is the text of an error without the name of the package.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "host: the actor replied with an error: "), "host: ")
}

// wanted is what a step expects.
func (w *world) wanted(s *step, exact string) string {
	if n := grammar.At(s.n, "match"); n != nil {
		return "like " + source(n)
	}
	if n := grammar.At(s.n, exact); n != nil {
		return source(n)
	}
	if text := s.text("error"); text != "" {
		return "error: " + text
	}
	return ""
}

// compare compares a payload with what a step expects.
func (w *world) compare(s *step, payload []byte, exact string) error {
	key, pattern := exact, false
	if s.has("match") {
		key, pattern = "match", true
	}
	n := grammar.At(s.n, key)
	if n == nil {
		return nil
	}
	v, err := decode(payload)
	if err != nil {
		return &stepError{what: "it is not valid CBOR", want: w.wanted(s, exact), got: shownPayload(payload)}
	}
	if d := differs(n, v, pattern, w.number, "it"); d != "" {
		return &stepError{what: d, want: w.wanted(s, exact), got: show(v)}
	}
	return nil
}

func (w *world) reply(s *step) error {
	p := w.probes[w.probeKey(s.object())]
	if p == nil || !p.waiting() {
		return &stepError{what: fmt.Sprintf("the stand-in %s has no open question", s.object()), hint: "expect shows it the question first; one that was sent without waiting for an answer, or whose asker no longer waits, is not open"}
	}
	handle := p.open[0]
	p.open = p.open[1:]
	var err error
	if text := s.text("error"); text != "" {
		w.note("%s replies with an error: %s", p.name, text)
		err = handle.Fail(text)
	} else {
		var v any
		if v, err = valueOf(grammar.At(s.n, "message"), w.number); err != nil {
			return err
		}
		w.note("%s replies: %s", p.name, source(grammar.At(s.n, "message")))
		err = handle.Send(v)
	}
	if err != nil {
		return &stepError{what: "the asker no longer waits for the answer: " + plain(err)}
	}
	return w.runUntilIdle()
}

func (w *world) operate(s *step) error {
	ref, err := w.ref(s.object())
	if err != nil {
		return err
	}
	switch s.verb.name {
	case "crash":
		kind, _ := abi.ParseFailureKind(s.text("kind"))
		if kind == 0 {
			kind = abi.FailureGuestError
		}
		reason := s.text("reason")
		if reason == "" {
			reason = "the scenario wants it"
		}
		if s.has("on-message") {
			return w.addFault(s, &fault{verb: "crash", left: s.whole("on-message", 1), kind: kind, reason: reason})
		}
		err = w.sys.Operate().Crash(ref, kind, reason)
	case "stop":
		w.sys.Stop(ref)
	case "restart":
		err = w.sys.Operate().Restart(ref)
	case "pause":
		err = w.sys.Operate().Pause(ref, false)
	case "unpause":
		err = w.sys.Operate().Unpause(ref, false)
	}
	w.note("%s %s", s.verb.name, ref.Path())
	if err != nil {
		return &stepError{what: fmt.Sprintf("%s %s: %s", s.verb.name, ref.Path(), plain(err))}
	}
	return w.runUntilIdle()
}

func (w *world) addFault(s *step, f *fault) error {
	path := pathOf(s.object())
	m := w.faultyMailboxes[path]
	if m == nil {
		above, name := keeperOf(path)
		m, f.of = w.faultyMailboxes[above], name
	}
	if m == nil {
		return &stepError{what: fmt.Sprintf("%s has not been started", path)}
	}
	if m.all != nil && !w.pinned {
		m.all.add(f)
	} else {
		m.here.add(f)
	}
	return nil
}

// state is what an actor does, for a report.
func (w *world) state(ref host.Ref) string {
	i, err := w.of(ref).sys.View().Info(ref)
	if err != nil {
		return w.why(ref.Path())
	}
	return fmt.Sprintf("%s is %s; %d messages wait, %d crashes, %d restarts", ref.Path(), i.State, i.Mailbox, i.Crashes, i.Restarts)
}

// hasHeaders returns which of the headers that a step names a message lacks; "" if none.
func hasHeaders(want map[string]string, find func(key string) (string, bool)) string {
	keys := sortedKeys(want)
	i := slices.IndexFunc(keys, func(k string) bool { v, ok := find(k); return !ok || v != want[k] })
	if i < 0 {
		return ""
	}
	if v, ok := find(keys[i]); ok {
		return fmt.Sprintf("its header %s is %q, not %q", keys[i], v, want[keys[i]])
	}
	return fmt.Sprintf("it lacks the header %s", keys[i])
}
