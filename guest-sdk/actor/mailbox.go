package actor

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Mailbox is the mailbox of a child, in SpawnOptions: what a manifest says under mailbox, see
// docs/bundle.md. Zero fields mean the defaults given there; a mistake makes the spawn
// fail. A key that has no field here needs an Encoder of your own, a map with the manifest's keys.
type Mailbox struct {
	// Kind is "bounded", "drop-newest", "drop-oldest", "block", "priority", "control-aware" or
	// "deduplicating".
	Kind string
	// Messages and Bytes bound what waits: at most what the parent's own mailbox may hold, which is also
	// the default.
	Messages, Bytes int
	// Full says what a full mailbox does, for kinds whose name does not say it.
	Full string
	// Header is the header with the level, the mark of a control message, or the key.
	Header string
	// Types are levels by the types of messages, 0 is the most urgent.
	Types map[string]int
	// Levels is how many levels there are.
	Levels int
	// Keys is how many keys are remembered.
	Keys int
}

// MarshalCBOR implements Encoder.
func (m Mailbox) MarshalCBOR(w *abi.Writer) {
	texts := [...]struct{ key, value string }{{"kind", m.Kind}, {"full", m.Full}, {"header", m.Header}}
	numbers := [...]struct {
		key   string
		value int
	}{{"messages", m.Messages}, {"bytes", m.Bytes}, {"levels", m.Levels}, {"keys", m.Keys}}
	n := 0
	for _, f := range texts {
		if f.value != "" {
			n++
		}
	}
	for _, f := range numbers {
		if f.value != 0 {
			n++
		}
	}
	if len(m.Types) > 0 {
		n++
	}
	w.Map(n)
	for _, f := range texts {
		if f.value != "" {
			w.Text(f.key)
			w.Text(f.value)
		}
	}
	for _, f := range numbers {
		if f.value != 0 {
			w.Text(f.key)
			w.Int(int64(f.value))
		}
	}
	if len(m.Types) > 0 {
		w.Text("types")
		w.Map(len(m.Types))
		for _, name := range abi.SortedTextKeys(m.Types) {
			w.Text(name)
			w.Int(int64(m.Types[name]))
		}
	}
}

// Dispatcher says how long the turns of a child run before others get theirs, in SpawnOptions. Zero
// fields mean the system's defaults.
type Dispatcher struct {
	// Throughput is how many messages it handles before others get their turn: at most as many as the
	// parent, or as actors of the system do by default.
	Throughput int
	// Deadline is the time after which no further message begins.
	Deadline time.Duration
}

// MarshalCBOR implements Encoder.
func (d Dispatcher) MarshalCBOR(w *abi.Writer) {
	n := 0
	if d.Throughput != 0 {
		n++
	}
	if d.Deadline != 0 {
		n++
	}
	w.Map(n)
	if d.Throughput != 0 {
		w.Text("throughput")
		w.Int(int64(d.Throughput))
	}
	if d.Deadline != 0 {
		w.Text("deadline")
		w.Text(d.Deadline.String())
	}
}
