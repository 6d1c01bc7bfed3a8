package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/wasmactors/wasmactors/host/bundle"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Row K09 of the semantics: ten dead letters are logged, then a line that says so, and
// as JSON all.
func TestK09_DeadLettersAreLoggedTenTimes(t *testing.T) {
	for _, c := range []struct {
		json        bool
		lines, last int
	}{{false, 10, 1}, {true, 25, 0}} {
		var stderr bytes.Buffer
		console := newConsole(&environment{stderr: &stderr, terminal: &stderr}, c.json, false, 1, "none")
		for range 25 {
			console.event(&host.Event{Kind: host.EventDeadLetter, Dead: &host.DeadLetter{Path: "/user/nobody", Payload: []byte{1}}})
		}
		lines, last := strings.Count(stderr.String(), "/user/nobody"), strings.Count(stderr.String(), "more dead letters are counted")
		if lines != c.lines || last != c.last {
			t.Errorf("json %v: %d lines and %d\n%s", c.json, lines, last, &stderr)
		}
	}
}

const hostileText = "a\x1b[2J\x1b]0;t\a\u009b31m\u0085\x7f\r\u202eb\u2066c\u200f\u2028\U000e0041\ufeffz"

// fillTexts sets every text in v.
func fillTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText)
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem().PkgPath() != "time" {
			v.Set(reflect.New(v.Type().Elem()))
			fillTexts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Field(i).CanSet() {
				fillTexts(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf([]string{hostileText}))
		} else if v.Type().Elem().Kind() == reflect.Uint8 {
			payload, _ := host.Encode(hostileText)
			v.SetBytes(payload)
		}
	}
}

// TestNothingHostileReachesTheTerminal shows every event with every text of it hostile,
// to a person and as JSON, and answers and errors likewise.
func TestNothingHostileReachesTheTerminal(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out, errs bytes.Buffer
		env := &environment{stdout: printable.Writer(&out), stderr: printable.Writer(&errs), terminal: &errs, json: asJSON}
		console := newConsole(env, asJSON, false, 0, "all")
		for kind := host.EventStarted; kind <= host.EventUnpaused; kind++ {
			e := host.Event{}
			fillTexts(reflect.ValueOf(&e).Elem())
			e.Kind, e.Level = kind, 3
			e.Mail.Size = len(e.Mail.Payload)
			console.event(&e)
			e.Note = "failed: " + hostileText
			console.event(&e)
		}
		payload, _ := host.Encode(map[string]string{hostileText: hostileText})
		console.answer(bundle.Answer{Line: 1, To: hostileText, Payload: payload})
		console.answer(bundle.Answer{Line: 1, To: hostileText, Err: &host.ReplyError{Reason: hostileText}})
		env.report(bundle.Diagnostics{{File: hostileText, Line: 1, Column: 1, Message: hostileText}}, 2)
		newProgress(&errs).say(hostileText, hostileText)
		all := out.String() + errs.String()
		if i := strings.IndexFunc(all, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r >= 0xe0000 && r < 0xe0080 || r == 0xfeff)
		}); i >= 0 || len(all) < 3000 {
			t.Errorf("json %v: %d bytes, %q", asJSON, len(all), all[max(i-60, 0):min(i+20, len(all))])
		}
	}
}

// What the manifest has to say about an event is there for programs, too.
func TestEventsCarryAdvice(t *testing.T) {
	for want, e := range map[string]host.Event{
		`"advice":"capabilities: {send: [/user/x]} of the sender would allow it"}`: {Kind: host.EventDeadLetter, Dead: &host.DeadLetter{Reason: host.DeadDenied, Path: "/user/x", Size: 1}},
		`"advice":"capabilities: {spawn: [kid]} of the actor would allow it"}`:     {Kind: host.EventRefused, Refused: &host.Refusal{What: "spawn", Type: "kid", Denied: true}},
		`"event":"started"`: {Kind: host.EventStarted},
	} {
		text, err := json.Marshal(advised{&e})
		if err != nil || !strings.Contains(string(text), want) || !json.Valid(text) {
			t.Errorf("%s %v, want %s", text, err, want)
		}
	}
}

// The summary says how often actors were restarted, whoever has ordered it, and not how often a supervisor
// has decided so: events may be lost, and an operator's order is not a failure.
func TestSummaryCountsRestarts(t *testing.T) {
	var stderr bytes.Buffer
	console := newConsole(&environment{stderr: &stderr, terminal: &stderr}, true, false, 1, "none")
	console.end(&bundle.Manifest{Name: "b"}, bundle.FeedStats{}, host.Stats{Crashes: 2, Restarts: 7}, 0)
	var e struct{ Crashes, Restarts int }
	if err := json.Unmarshal(stderr.Bytes(), &e); err != nil || e.Crashes != 2 || e.Restarts != 7 {
		t.Errorf("%+v, %v\n%s", e, err, &stderr)
	}
	stderr.Reset()
	console = newConsole(&environment{stderr: &stderr, terminal: &stderr}, false, false, 1, "none")
	console.end(&bundle.Manifest{Name: "b"}, bundle.FeedStats{}, host.Stats{Crashes: 2, Restarts: 7}, 0)
	if !strings.Contains(stderr.String(), "crashes       2, 7 restarts, 0 stops\n") {
		t.Error(&stderr)
	}
}
