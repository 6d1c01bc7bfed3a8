package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/log"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
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

// lastEvents are the last events of a system, as JSON without stacks and messages: those are in the crash reports of the node.
type lastEvents struct {
	mu    sync.Mutex
	texts []json.RawMessage
	bytes int
	left  int // that were not kept, or no longer are
	sub   *host.Subscription
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
	if err != nil || len(text) > mostEvent {
		k.left++
		return
	}
	k.texts = append(k.texts, text)
	for k.bytes += len(text); len(k.texts) > mostEvents || k.bytes > mostEventBytes; k.left++ {
		k.bytes -= len(k.texts[0])
		k.texts = slices.Delete(k.texts, 0, 1)
	}
}

// all are they, oldest first, and how many there were before.
func (k *lastEvents) all() ([]json.RawMessage, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.texts), k.left + int(k.sub.Dropped())
}

// takenEvents are those events of another node that a node writes, the last ones that have room in so many bytes, and how many
// of all are not among them.
func takenEvents(all []json.RawMessage, share int) (taken []json.RawMessage, left int) {
	for _, text := range slices.Backward(all) {
		var e shownEvent
		if share -= len(text); share < 0 || len(taken) == mostEvents {
			break
		}
		if len(text) > mostEvent || printable.Line(string(text), mostEvent) != string(text) || json.Unmarshal(text, &e) != nil || !slices.Contains(observe.EventKinds(), e.Event) {
			continue
		}
		taken = append(taken, text)
	}
	slices.Reverse(taken)
	return taken, len(all) - len(taken)
}

// Events implements admin.Nodes.
func (a *clusterAdmin) Events(ctx context.Context) (admin.ClusterNodes, error) {
	return a.askAll(ctx, asksEvents)
}

// lineEnds makes a text one line: what follows a line end would pass for the line of another node.
var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// clusterEvents prints the events of all nodes by their times, one a line, and then which nodes do not answer, or have had more.
// Clocks of nodes may differ.
func (r *reached) clusterEvents(n *admin.ClusterNodes) error {
	if r.json {
		return nil
	}
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
	for _, x := range n.Nodes {
		if x.Left > 0 {
			r.env.note("node " + oneLine(x.Name) + " has had " + strconv.Itoa(x.Left) + " more events, which are not kept")
		}
		if x.Error != "" {
			r.env.note("node " + oneLine(x.Name) + " does not answer: " + oneLine(x.Error))
		}
	}
	return out.err
}
