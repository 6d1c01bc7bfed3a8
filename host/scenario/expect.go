package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/plainjson"
)

func (w *world) expect(s *step) error {
	p := w.probe(s.object())
	within := s.span("within", DefaultWithin)
	var m received
	got, err := w.until(within, func() (ok bool) { m, ok = p.take(s.text("on")); return ok })
	switch {
	case err != nil:
		return err
	case !got:
		return &stepError{what: fmt.Sprintf("%s got no message within %v", p.name, within), want: w.wanted(s, "message")}
	}
	w.noteOf(m.node, "%s got from %s: %s", p.name, m.Sender.Path(), shownPayload(m.Payload))
	if from := s.text("from"); from != "" && !glob.Match(pathOf(from), m.Sender.Path()) {
		return &stepError{what: "it is from another sender", want: "from " + pathOf(from), got: fmt.Sprintf("from %s: %s", m.Sender.Path(), shownPayload(m.Payload))}
	}
	if d := hasHeaders(s.texts("headers"), func(key string) (string, bool) {
		v, ok := abi.FindHeader(m.Headers, key)
		return string(v), ok
	}); d != "" {
		return &stepError{what: d, got: shownPayload(m.Payload)}
	}
	if err := m.Err(); err != nil || s.has("error") {
		return w.answered(s, m.Message, err)
	}
	return w.compare(s, m.Payload, "message")
}

func (w *world) expectNone(s *step) error {
	p := w.probe(s.object())
	d := s.span("for", 0)
	var m received
	got, err := w.until(d, func() (ok bool) { m, ok = p.take(s.text("on")); return ok })
	if err != nil || !got {
		return err
	}
	return &stepError{what: fmt.Sprintf("%s got a message, %v after the beginning", p.name, w.since(w.clock.Now())), want: fmt.Sprintf("none for %v", d), got: fmt.Sprintf("from %s: %s", m.Sender.Path(), shownPayload(m.Payload))}
}

// after remembers what was last expected of something.
func (w *world) after(what string, e *entry) { w.cursor[what] = e.seen }

func (w *world) expectRestart(s *step) error {
	path := pathOf(s.object())
	cursor := "restart " + s.text("on") + path
	var failed, restarted *entry
	find := func() bool {
		of := func(k host.EventKind) func(*host.Event) bool {
			return func(e *host.Event) bool { return e.Kind == k && e.Ref.Path() == path }
		}
		if restarted = w.history.find(w.cursor[cursor], s.text("on"), of(host.EventRestarted)); restarted == nil {
			return false
		}
		failed = w.history.last(func(e *host.Event) bool {
			return of(host.EventFailed)(e) && e.Ref.UID() == restarted.Ref.UID() && !e.Time.After(restarted.Time) && e.Incarnation+1 == restarted.Incarnation
		})
		return true
	}
	about, slack := s.span("after", 0), s.slack()
	within := s.span("within", max(DefaultWithin, about+slack))
	got, err := w.until(within, find)
	switch {
	case err != nil:
		return err
	case !got:
		e := &stepError{what: fmt.Sprintf("%s was not restarted within %v", path, within)}
		if ref, err := w.lookup(path); err == nil {
			e.hint = w.state(ref)
		} else {
			e.hint = w.why(path)
		}
		return e
	}
	w.after(cursor, restarted)
	if s.has("after") {
		if failed == nil {
			return &stepError{what: fmt.Sprintf("%s was restarted and had not failed itself", path), hint: "after counts from its failure: leave it out"}
		}
		if took := restarted.Time.Sub(failed.Time); took < about-slack || took > about+slack {
			return &stepError{what: fmt.Sprintf("%s was restarted at another time", path), want: strings.TrimSpace(fmt.Sprintf("after %v, %s", about, tolerance(slack))), got: fmt.Sprintf("after %v", took)}
		}
	}
	if want := s.text("cause"); want != "" && !glob.Match(want, cause(&restarted.Event)) {
		return &stepError{what: "the failure was another", want: want, got: cause(&restarted.Event)}
	}
	return nil
}

func tolerance(d time.Duration) string {
	if d == 0 {
		return "exactly"
	}
	return fmt.Sprintf("give or take %v", d)
}

// slack is the tolerance of after.
func (s *step) slack() time.Duration {
	n := grammar.At(s.n, "tolerance")
	if n == nil {
		return 0
	}
	if part, ok := percentage(n.Value); ok {
		return time.Duration(part * float64(s.span("after", 0)))
	}
	d, _ := grammar.ParseDuration(n.Value)
	return d
}

func (w *world) expectStopped(s *step) error {
	path := pathOf(s.object())
	cursor := "stopped " + s.text("on") + path
	var e *entry
	within := s.span("within", DefaultWithin)
	got, err := w.until(within, func() bool {
		e = w.history.find(w.cursor[cursor], s.text("on"), func(e *host.Event) bool { return e.Kind == host.EventStopped && e.Ref.Path() == path })
		return e != nil
	})
	switch {
	case err != nil:
		return err
	case !got:
		ref, err := w.ref(path)
		if err != nil {
			return err
		}
		return &stepError{what: fmt.Sprintf("%s has not stopped within %v", path, within), hint: w.state(ref)}
	}
	w.after(cursor, e)
	if want := s.text("reason"); want != "" && !glob.Match(want, e.Note) {
		return &stepError{what: fmt.Sprintf("%s has stopped for another reason", path), want: want, got: e.Note}
	}
	return nil
}

func (w *world) expectEvent(s *step) error {
	kind, actor, text := s.object(), s.text("actor"), s.text("text")
	var e *entry
	within := s.span("within", DefaultWithin)
	got, err := w.until(within, func() bool {
		e = w.history.find(w.cursor["event"], s.text("on"), func(e *host.Event) bool {
			return e.Kind.String() == kind && (actor == "" || glob.Match(pathOf(actor), who(e))) && (text == "" || glob.Match(text, saying(e)))
		})
		return e != nil
	})
	switch {
	case err != nil:
		return err
	case !got:
		fault := &stepError{what: fmt.Sprintf("there was no such event within %v", within), want: strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", kind, actor, text)), " ")}
		if near := w.history.last(func(e *host.Event) bool { return e.Kind.String() == kind }); near != nil {
			fault.got = "the last of its kind: " + telling(&near.Event)
		}
		return fault
	}
	w.after("event", e)
	return nil
}

// who is the path of the actor that an event is about; for a message it is the recipient's.
func who(e *host.Event) string {
	if e.Dead != nil && e.Kind != host.EventUnhandled {
		return local(e.Dead.To())
	}
	return e.Ref.Path()
}

func (w *world) expectRequest(s *step) error {
	url, method := s.object(), s.text("method")
	within := s.span("within", DefaultWithin)
	var r *request
	var seen uint64
	got, err := w.until(within, func() bool {
		r, seen = w.web.request(w.cursor["request"], func(r *request) bool {
			return glob.Match(url, r.url) && (method == "" || method == r.method)
		})
		return r != nil
	})
	switch {
	case err != nil:
		return err
	case !got:
		return &stepError{what: fmt.Sprintf("there was no such request within %v", within), want: strings.TrimSpace(method + " " + url), got: strings.Join(w.web.all(), "; ")}
	}
	w.cursor["request"] = seen
	if d := hasHeaders(s.texts("headers"), func(key string) (string, bool) { return r.header.Get(key), r.header.Get(key) != "" }); d != "" {
		return &stepError{what: d}
	}
	return w.compareText(s, r.body, "", "its body")
}

// compareText compares a text, or JSON, with what a step expects.
func (w *world) compareText(s *step, data []byte, exact, what string) error {
	n, pattern := grammar.At(s.n, "match"), true
	if n == nil && exact != "" {
		n, pattern = grammar.At(s.n, exact), false
	}
	if n == nil {
		return nil
	}
	var is any = string(data)
	if n.Kind == yaml.ScalarNode && n.Tag == "!bytes" {
		is = data
	} else if !(n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str") && json.Valid(data) {
		if v, err := plainjson.Parse(data); err == nil {
			is = v
		}
	}
	if d := differs(n, is, pattern, w.number, what); d != "" {
		return &stepError{what: d, want: w.wanted(s, exact), got: show(is)}
	}
	return nil
}

func (w *world) expectState(s *step) error {
	path := pathOf(s.object())
	ref, err := w.lookup(path)
	alive := err == nil
	if s.has("alive") {
		if want := s.text("alive") == "true"; want != alive {
			e := &stepError{what: fmt.Sprintf("%s is there", path), want: "nobody"}
			if want {
				e = &stepError{what: fmt.Sprintf("there is no actor %s", path), want: "alive", hint: w.why(path)}
			} else {
				e.got = w.state(ref)
			}
			return e
		}
		if !alive {
			return nil
		}
	}
	if _, err := w.ref(path); err != nil {
		return err
	}
	i, err := w.of(ref).sys.View().Info(ref)
	if err != nil {
		return &stepError{what: plain(err)}
	}
	for _, x := range []struct {
		key string
		got any
	}{
		{"state", i.State}, {"restarts", i.Restarts}, {"crashes", i.Crashes}, {"incarnation", i.Incarnation}, {"mailbox", i.Mailbox}, {"children", i.Children},
	} {
		if s.has(x.key) && s.text(x.key) != fmt.Sprint(x.got) {
			return &stepError{what: fmt.Sprintf("%s: %s is %v, not %s", path, x.key, x.got, s.text(x.key)), want: x.key + ": " + s.text(x.key), got: fmt.Sprintf("%s: %v", x.key, x.got), hint: w.state(ref)}
		}
	}
	return nil
}
