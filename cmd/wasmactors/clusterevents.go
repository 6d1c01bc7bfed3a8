package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/log"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Each node keeps its last events for whom asks all nodes for theirs.

const (
	mostEvents     = 500       // of a node
	mostEventBytes = 256 << 10 // of them, as JSON
	mostEvent      = 16 << 10  // bytes of one
	asksEvents     = "events"  // what the reporter is asked
	eventsBacklog  = 1024      // that may wait to be kept
)

// lastEvents are the last events of a system, without stacks and messages: those are in the crash reports of the node.
type lastEvents struct {
	mu    sync.Mutex
	kept  []keptEvent
	bytes int    // of the texts
	last  uint64 // the number of the last event, kept or not
	sub   *host.Subscription
}

type keptEvent struct {
	event observe.Event
	text  json.RawMessage
}

// follow keeps the events of a system until it ends.
func (k *lastEvents) follow(sys *host.System) {
	k.sub = sys.Subscribe(eventsBacklog, nil)
	go func() {
		for e := range k.sub.C() { // closed with the system
			k.keep(e)
		}
	}()
}

func (k *lastEvents) keep(e host.Event) {
	if f := e.Failure; f != nil {
		short := *f
		short.Stack, short.GuestStack = nil, ""
		e.Failure = &short
	}
	if m := e.Mail; m != nil {
		short := *m
		short.Payload, short.File = nil, ""
		e.Mail = &short
	}
	text, err := e.MarshalJSON()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	if err != nil || len(text) > mostEvent {
		return
	}
	k.kept = append(k.kept, keptEvent{observe.Event{Event: e, Number: k.last}, text})
	for k.bytes += len(text); len(k.kept) > mostEvents || k.bytes > mostEventBytes; {
		k.bytes -= len(k.kept[0].text)
		k.kept = slices.Delete(k.kept, 0, 1)
	}
}

// behind are those behind the event of a number that are wanted, oldest first, how many were not kept, wanted or not, and the number
// of the last one. nil wants all.
func (k *lastEvents) behind(after uint64, wants func(*observe.Event) bool) (texts []json.RawMessage, left int, last uint64) {
	k.mu.Lock()
	kept := slices.Clone(k.kept)
	last = k.last
	dropped := int(k.sub.Dropped())
	k.mu.Unlock() // patterns take their time, and events go on
	there := uint64(0)
	for i := range kept {
		x := &kept[i]
		if x.event.Number <= after {
			continue
		}
		if there++; wants == nil || wants(&x.event) {
			texts = append(texts, x.text)
		}
	}
	left = int(last - min(after, last) - there)
	if after == 0 {
		left = sum(left, dropped)
	}
	return texts, left, last
}

// eventsAsked are events of a node that another one asks for. Without it a node is asked for all by a word, as nodes of earlier
// releases are.
type eventsAsked struct {
	After    uint64   `cbor:"after,omitempty"`
	Paths    []string `cbor:"paths,omitempty"`
	Types    []string `cbor:"types,omitempty"`
	Kinds    []string `cbor:"kinds,omitempty"`
	NotPaths []string `cbor:"not_paths,omitempty"`
	NotTypes []string `cbor:"not_types,omitempty"`
	NotKinds []string `cbor:"not_kinds,omitempty"`
	Level    string   `cbor:"level,omitempty"`
	Since    int64    `cbor:"since,omitempty"` // in nanoseconds since 1970; 0: all
}

// askedFor is what a node is asked for.
func askedFor(q admin.NodeEvents, node uint16) any {
	x := eventsAsked{q.Behind[int(node)], q.Paths, q.Types, q.Kinds, q.But.Paths, q.But.Types, q.But.Kinds, q.Level, 0}
	if !q.Since.IsZero() {
		x.Since = q.Since.UnixNano()
	}
	if x.After == 0 && x.Since == 0 && x.Level == "" && len(x.Paths)+len(x.Types)+len(x.Kinds)+len(x.NotPaths)+len(x.NotTypes)+len(x.NotKinds) == 0 {
		return asksEvents
	}
	return x
}

// matcher is what tells which events are asked for, of which other nodes decide.
func (x *eventsAsked) matcher() (func(*observe.Event) bool, error) {
	for _, patterns := range [][]string{x.Types, x.NotTypes, x.Kinds, x.NotKinds} {
		for _, p := range patterns {
			if len(p) > mostName {
				return nil, fmt.Errorf("a pattern of more than %d bytes", mostName)
			}
		}
	}
	q := observe.EventQuery{Paths: x.Paths, Types: x.Types, Kinds: x.Kinds, But: observe.Except{Paths: x.NotPaths, Types: x.NotTypes, Kinds: x.NotKinds}, Level: x.Level}
	if x.Since != 0 {
		q.Since = time.Unix(0, x.Since)
	}
	return q.Matcher()
}

// takenEvents are those events of another node that a node writes, the last ones that have room in so many bytes, and how many
// of all are not among them.
func takenEvents(all []json.RawMessage, share int) (taken []json.RawMessage, left int) {
	for _, text := range slices.Backward(all) {
		var e shownEvent
		if share -= len(text); share < 0 || len(taken) == mostEvents {
			break
		}
		if len(text) > mostEvent || printable.Line(string(text), mostEvent) != string(text) || json.Unmarshal(text, &e) != nil || !slices.Contains(observe.EventKinds(), e.Event) || namesNode(text) {
			continue
		}
		taken = append(taken, text)
	}
	slices.Reverse(taken)
	return taken, len(all) - len(taken)
}

// namesNode reports whether an event has a key for its node, which none that a node writes has: it would stand in a line behind the
// name of the node that the event is from, and most readers of JSON take the last one of two.
func namesNode(text json.RawMessage) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return true
	}
	for key := range keys {
		if strings.EqualFold(key, "node") {
			return true
		}
	}
	return false
}

// Events implements admin.Nodes.
func (a *clusterAdmin) Events(ctx context.Context, q admin.NodeEvents) (admin.ClusterNodes, error) {
	return a.askAll(ctx, asksEvents, func(m cluster.Member) any { return askedFor(q, m.Number) })
}

// lineEnds makes a text one line: what follows a line end would pass for the line of another node.
var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// clusterEvents prints the events of all nodes by their times, one a line, and then which nodes do not answer, or have had more.
// Clocks of nodes may differ.
func (r *reached) clusterEvents(n *admin.ClusterNodes) error {
	if r.json {
		return nil
	}
	if err := r.showEvents(n); err != nil {
		return err
	}
	for _, x := range n.Nodes {
		if x.Left > 0 {
			r.env.note("node " + oneLine(x.Name) + " has had " + strconv.Itoa(x.Left) + " more events, which are not kept")
		}
		if x.Error != "" {
			r.env.note("node " + oneLine(x.Name) + " does not answer: " + oneLine(x.Error))
		}
	}
	return nil
}

// showEvents prints events by their times.
func (r *reached) showEvents(n *admin.ClusterNodes) error {
	type line struct {
		node string
		shownEvent
	}
	var all []line
	for _, x := range n.Nodes {
		for _, text := range x.Events {
			l := line{node: x.Name}
			if err := json.Unmarshal(text, &l.shownEvent); err != nil {
				return err
			}
			l.Text = lineEnds.Replace(l.Text)
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.node, b.node)) })
	out := &checked{w: r.env.stdout}
	l := log.NewWithOptions(out, log.Options{ReportTimestamp: true, TimeFormat: "15:04:05.000", Level: log.DebugLevel})
	l.SetColorProfile(colours(r.env.stdoutFile()))
	for i := range all {
		l.SetTimeFunction(func(time.Time) time.Time { return all[i].Time.Local() })
		all[i].write(l.With("node", oneLine(all[i].node)))
	}
	return out.err
}
