package persist_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// What a guest asks its log for and cannot have is its own failure: failures of the host escalate, and would end all actors of the system.
func TestWhatIsRefusedIsNoFailureOfTheHost(t *testing.T) {
	w := newWorld(t)
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine := must(runtime.New(t.Context(), runtime.NewConfig()))(t)
	defer func() { _ = engine.Close(context.Background()) }()
	puppets := must(engine.Load(t.Context(), code, runtime.ImageConfig{Name: "puppet"}))(t)
	script := func(entries ...[]byte) host.Raw { // has the puppet store the entries, and nothing else in this batch
		var all []byte
		for _, e := range entries {
			all = abi.AppendPersist(all, e)
		}
		return must(cbor.Marshal(slices.Concat(binary.LittleEndian.AppendUint16([]byte{0, 2}, uint16(len(all))), all)))(t)
	}
	entry := func(e rules.Entry) []byte { return rules.AppendEntry(nil, &e) }
	event := func(number uint64, bytes int) []byte {
		return entry(rules.Entry{Kind: rules.EntryEvent, Event: rules.Event{Number: number, Type: "t", Version: 1, Payload: must(cbor.Marshal(make([]byte, bytes)))(t)}})
	}
	recovers := entry(rules.Entry{Kind: rules.EntryRecover})
	const limit = 4000
	for name, c := range map[string]struct {
		args, message host.Raw
		kind          abi.FailureKind
		reason        string
	}{
		"a number too far":        {script(recovers), script(event(7, 1)), abi.FailureABIViolation, "event 7 after event 0"},
		"a number twice":          {script(recovers), script(event(1, 1), event(1, 1)), abi.FailureABIViolation, "event 1 after event 1"},
		"a snapshot of no event":  {script(recovers), script(entry(rules.Entry{Kind: rules.EntrySnapshot, Snapshot: rules.Snapshot{Number: 9, Version: 1, Payload: []byte{0xf6}}})), abi.FailureABIViolation, "a snapshot of event 9"},
		"a state too far":         {script(recovers), script(entry(rules.Entry{Kind: rules.EntryDeleteEvents, To: 6}), entry(rules.Entry{Kind: rules.EntryDeleteSnapshots, To: 6}), event(7, 1)), abi.FailureABIViolation, "event 7 after event 0"},
		"a state too large":       {script(recovers), script(event(1, 1000), entry(rules.Entry{Kind: rules.EntryDeleteEvents, To: 1}), entry(rules.Entry{Kind: rules.EntryDeleteSnapshots, To: 1}), event(2, limit)), abi.FailureMemoryLimit, "limits.durable"},
		"a state that is kept":    {script(recovers), script(event(1, 3000), entry(rules.Entry{Kind: rules.EntryDeleteEvents, To: 1}), event(2, 3000)), abi.FailureMemoryLimit, "limits.durable"}, // snapshots might be left
		"deleted at the start":    {script(entry(rules.Entry{Kind: rules.EntryDeleteEvents, To: 6})), nil, abi.FailureABIViolation, "before the end of the recovery"},
		"no entry":                {script(recovers), script([]byte{1, 2, 3}), abi.FailureABIViolation, ""},
		"to recover once more":    {script(recovers), script(recovers), abi.FailureABIViolation, "said once"},
		"more than there may be":  {script(recovers), script(event(1, limit)), abi.FailureMemoryLimit, "limits.durable"},
		"nothing at the start":    {script(), nil, abi.FailureInit, "guest-sdk/persist"},
		"an event at the start":   {script(event(1, 1)), nil, abi.FailureABIViolation, "before the end of the recovery"},
		"to recover twice at all": {script(recovers, recovers), nil, abi.FailureABIViolation, "said once"},
	} {
		t.Run(name, func(t *testing.T) {
			reasons := w.failures(func() {
				props := host.Guest(puppets, "puppet").WithArgs(c.args)
				ref := must(w.Spawn(strings.ReplaceAll(name, " ", "-"), w.journal.Guest(props, mailbox.New(mailbox.Bounded), limit)))(t)
				w.run()
				if c.message != nil {
					if err := w.Tell(ref, c.message); err != nil {
						t.Fatal(err)
					}
				}
				w.run()
			})
			slices.Sort(reasons)
			reasons = slices.Compact(reasons) // it is started again and again
			if len(reasons) != 1 || !strings.Contains(reasons[0], c.kind.String()+": ") || !strings.Contains(reasons[0], c.reason) || strings.Contains(reasons[0], abi.FailureHost.String()) {
				t.Errorf("%q", reasons)
			}
		})
	}
}

// A guest whose inbox is too small for a batch of its events fails with that reason, and is not gone without a word.
func TestABatchThatDoesNotFit(t *testing.T) {
	w := newWorld(t)
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine := must(runtime.New(t.Context(), runtime.NewConfig()))(t)
	defer func() { _ = engine.Close(context.Background()) }()
	puppets := must(engine.Load(t.Context(), code, runtime.ImageConfig{Name: "puppet"}))(t)
	stores := func(e rules.Entry) host.Raw {
		b := abi.AppendPersist(nil, rules.AppendEntry(nil, &e))
		return must(cbor.Marshal(slices.Concat(binary.LittleEndian.AppendUint16([]byte{0, 2}, uint16(len(b))), b)))(t)
	}
	spawn := func() host.Ref {
		props := host.Guest(puppets, "puppet").WithArgs(stores(rules.Entry{Kind: rules.EntryRecover}))
		ref := must(w.Spawn("p", w.journal.Guest(props, mailbox.New(mailbox.Bounded), 0)))(t)
		w.run()
		return ref
	}
	ref := spawn()
	payload := must(cbor.Marshal(make([]byte, 1000)))(t)
	const events = 20 // more than the inbox of 16 KiB takes at a time
	for n := range uint64(events) {
		if err := w.Tell(ref, stores(rules.Entry{Kind: rules.EntryEvent, Event: rules.Event{Number: n + 1, Type: "t", Version: 1, Payload: payload}})); err != nil {
			t.Fatal(err)
		}
		w.run()
	}
	if got := len(w.events("/user/p")); got != events {
		t.Fatal(got)
	}
	w.again()
	reasons := w.failures(func() { spawn() })
	if len(reasons) != 1 || !strings.Contains(reasons[0], "does not fit its inbox") {
		t.Errorf("%q", reasons)
	}
}

// Code that keeps no events is not started again and again by the default strategy: its actor stops.
func TestCodeThatKeepsNothingStops(t *testing.T) {
	w := newWorld(t)
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine := must(runtime.New(t.Context(), runtime.NewConfig()))(t)
	defer func() { _ = engine.Close(context.Background()) }()
	puppets := must(engine.Load(t.Context(), code, runtime.ImageConfig{Name: "puppet"}))(t)
	system := must(host.New(host.NewConfig("plain").WithManual().WithClock(w.clock).WithStore(w.journal)))(t)
	defer func() { _ = system.Close(context.Background()) }()
	sub := system.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	defer sub.Close()
	ref := must(system.Spawn("p", w.journal.Guest(host.Guest(puppets, "puppet"), mailbox.New(mailbox.Bounded), 0)))(t)
	system.RunUntilIdle(1000)
	select {
	case e := <-sub.C():
		if e.Failure.Kind != abi.FailureInit || !strings.Contains(e.Failure.Reason, "guest-sdk/persist") {
			t.Errorf("%v", e.Failure)
		}
	default:
		t.Error("it has not failed")
	}
	if n := len(sub.C()); n != 0 {
		t.Errorf("it has failed %d more times", n)
	}
	if _, err := system.Lookup("/user/p"); err == nil {
		t.Errorf("%v is there", ref)
	}
}
