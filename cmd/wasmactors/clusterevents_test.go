package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/observe"
)

// A node says what has happened last, and keeps a bounded part of it.
func TestNodesSayWhatHasHappened(t *testing.T) {
	sys, err := host.New(host.NewConfig("report"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	if err := (&membership{}).reportTo(sys); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.Spawn("early", host.Func(func(*host.Context, host.Message) error { return nil })); err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Identify(t.Context(), "/system/"+reporter)
	if err != nil {
		t.Fatal(err)
	}
	said := func() admin.NodeReport {
		t.Helper()
		r, err := host.AskAs[admin.NodeReport](t.Context(), sys, ref, asksEvents)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	until := time.Now().Add(patience)
	for !strings.Contains(fmt.Sprintf("%s", said().Events), `"actor":"/user/early"`) {
		if time.Now().After(until) {
			t.Fatalf("%s", said().Events)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r := said(); count(takenEvents(r.Events, mostReport)) != [2]int{len(r.Events), 0} || r.Tree != nil {
		t.Errorf("%s is not what a node says", r.Events)
	}
	if _, err := host.AskAs[admin.NodeReport](t.Context(), sys, ref, "else"); err == nil {
		t.Error("it answers anything")
	}

	// An actor is not told, whatever it may send.
	refused := make(chan error, 1)
	if _, err := sys.Spawn("curious", host.Func(func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindMessage:
			var what string
			if err := m.Decode(&what); err != nil {
				return err
			}
			return ctx.Ask(ref, what, 1, patience)
		case abi.KindReply, abi.KindReplyError:
			refused <- m.Err()
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	curious, err := sys.Lookup("/user/curious")
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{asksEvents, asksStatus, ordersDrain, ordersUndo} {
		if err := sys.Tell(curious, what); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if err == nil || !strings.Contains(err.Error(), "for operators") {
				t.Errorf("an actor is told: %v", err)
			}
		case <-time.After(patience):
			t.Error("an actor gets no answer")
		}
	}

	k := &lastEvents{sub: sys.Subscribe(1, nil)}
	for i := range 3 * mostEvents {
		k.keep(host.Event{Kind: host.EventLog, Text: fmt.Sprint(i) + strings.Repeat("x", 600)})
	}
	k.keep(host.Event{Kind: host.EventLog, Text: strings.Repeat("x", mostEvent)})
	k.keep(host.Event{Kind: host.EventFailed, Failure: &abi.Failure{Kind: abi.FailureTrap, Reason: "why", Stack: []string{"deep"}, GuestStack: "deeper"},
		Mail: &host.CrashedMail{Kind: abi.KindMessage, Payload: host.Raw{0x66, 's', 'e', 'c', 'r', 'e', 't'}, Size: 7, File: "/crashes/deep"}})
	texts, left, last := k.behind(0, nil)
	if last != 3*mostEvents+2 {
		t.Errorf("the last one is number %d", last)
	}
	if some, left, _ := k.behind(last-3, func(e *observe.Event) bool { return e.Kind == host.EventFailed }); len(some) != 1 || left != 1 {
		t.Errorf("%s, %d are left out: the last but one was too large", some, left)
	}
	if none, left, _ := k.behind(last+7, nil); len(none) != 0 || left != 0 { // of another life of the node
		t.Errorf("%s, %d are left out", none, left)
	}
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	if last := string(texts[len(texts)-1]); total > mostEventBytes || len(texts) > mostEvents || len(texts)+left < 3*mostEvents+2 || !strings.Contains(last, "why") || strings.Contains(last, "deep") || strings.Contains(last, "secret") || !strings.Contains(last, `"bytes":7`) {
		t.Errorf("%d events of %d bytes, %d left out, the last one is %s", len(texts), total, left, last)
	}
}

// Of what another node says, that counts which a node would write.
func TestEventsOfOthersAreChecked(t *testing.T) {
	good := `{"time":"2026-01-01T00:00:00Z","event":"log","actor":"/user/a","text":"hi"}`
	all := []json.RawMessage{[]byte("{"), []byte(`{"event":"invented"}`), []byte("{\"event\":\"log\",\n\"text\":\"x\"}"), []byte("{\"event\":\"log\",\"text\":\"\u009b31m\"}"),
		[]byte(`{"event":"log","text":"` + strings.Repeat("x", mostEvent) + `"}`),
		[]byte(`{"event":"failed","node":"a","actor":"/user/a"}`), []byte(`{"event":"failed","\u006eode":"a"}`), []byte(`{"event":"failed","Node":{}}`), []byte(good)}
	if got, left := takenEvents(all, mostReport); len(got) != 1 || string(got[0]) != good || left != len(all)-1 {
		t.Errorf("%s, %d are left out", got, left)
	}
	many := bytes.Split(bytes.Repeat([]byte(good+"\n"), 3*mostEvents), []byte("\n"))
	texts := make([]json.RawMessage, len(many))
	for i, m := range many {
		texts[i] = m
	}
	if n := count(takenEvents(texts, mostReport)); n != [2]int{mostEvents, len(texts) - mostEvents} {
		t.Errorf("%d events", n)
	}
	if n := count(takenEvents(texts, 10*len(good))); n != [2]int{10, len(texts) - 10} {
		t.Errorf("%d events in the space of ten", n)
	}
	m := cluster.Member{Number: 3, Name: "n3"}
	if r := taken(m, asksEvents, admin.NodeReport{Events: texts, Left: math.MaxInt - 1}, nil, mostReport); r.Left != math.MaxInt {
		t.Errorf("%d are left out", r.Left)
	}
	if r := taken(m, asksEvents, admin.NodeReport{}, &host.ReplyError{Reason: "it takes whether the tree is wanted, true or false"}, mostReport); !strings.Contains(r.Error, "earlier release") {
		t.Errorf("an older node: %q", r.Error)
	}
}

// What another node asks for is bounded, also in its bytes.
func TestPatternsOfOthersAreBounded(t *testing.T) {
	long := strings.Repeat("*", mostName+1)
	for _, x := range []eventsAsked{{Types: []string{long}}, {NotTypes: []string{"a", long}}, {Kinds: []string{long}}, {NotKinds: []string{long}}} {
		if _, err := x.matcher(); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%v", err)
		}
	}
	if _, err := (&eventsAsked{Types: []string{long[1:]}}).matcher(); err != nil {
		t.Error(err)
	}
}

func count(taken []json.RawMessage, left int) [2]int { return [2]int{len(taken), left} }

// All events are shown in the order of their times, each with its node, and who does not answer.
func TestEventsOfAllNodesAreShown(t *testing.T) {
	event := func(second int, text string) json.RawMessage {
		return fmt.Appendf(nil, `{"time":"2026-01-01T00:00:%02dZ","event":"log","level":"info","actor":"/user/a","text":"%s"}`, second, text)
	}
	var out, errs bytes.Buffer
	r := &reached{env: &environment{stdout: &out, stderr: &errs}}
	if err := r.clusterEvents(&admin.ClusterNodes{Nodes: []admin.NodeReport{
		{Name: "n1", Events: []json.RawMessage{event(1, "first"), event(3, "third")}},
		{Name: "n2", Events: []json.RawMessage{event(2, `second\n12:00:00.000 INFO forged node=n1\rforged`)}, Left: 7},
		{Name: "n3", Error: "it is away"},
	}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%s", &out)
	}
	for i, want := range [][2]string{{"first", "node=n1"}, {"second", "node=n2"}, {"third", "node=n1"}} {
		if !strings.Contains(lines[i], want[0]) || !strings.Contains(lines[i], want[1]) {
			t.Errorf("%q, want %v", lines[i], want)
		}
	}
	if !strings.Contains(errs.String(), "node n3 does not answer: it is away") || !strings.Contains(errs.String(), "node n2 has had 7 more events") {
		t.Errorf("%s", &errs)
	}
}
