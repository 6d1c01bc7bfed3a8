package testkit

import (
	"fmt"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// A report also says which actors have messages waiting, which do not run, what comes next.

// waits is the end of a report.
func (k *Kit) waits() string {
	var b strings.Builder
	for _, i := range k.sys.View().AppendInfo(nil) {
		if i.Mailbox == 0 && (i.State == host.StateRunning || i.State == host.StateAsleep) && !i.Failed {
			continue
		}
		fmt.Fprintf(&b, "\n    %s is %s", i.Ref.Path(), i.State)
		if i.Mailbox > 0 {
			fmt.Fprintf(&b, ", %s in its mailbox", count(i.Mailbox, "message"))
		}
		if i.Failure != nil {
			fmt.Fprintf(&b, ", has failed: %s", clip(i.Failure.Failure.Error()))
		}
		if i.Due > 0 {
			fmt.Fprintf(&b, ", begins again in %v", i.Due)
		}
	}
	k.mu.Lock()
	probes := k.probes
	k.mu.Unlock()
	for _, p := range probes {
		p.mu.Lock()
		if n := len(p.queue); n > 0 {
			fmt.Fprintf(&b, "\n    the probe %s has %s: %s", p.name, count(n, "message"), list(p.queue))
		}
		p.mu.Unlock()
	}
	if n := k.faults.held(); n > 0 {
		fmt.Fprintf(&b, "\n    %s held back by faults", count(n, "message"))
	}
	if k.virtual != nil {
		if next, ok := k.virtual.Next(); ok {
			fmt.Fprintf(&b, "\n    %s, the next in %v", count(k.virtual.Pending(), "timer"), next.Sub(k.Now()))
		}
	}
	if b.Len() == 0 {
		return "\n  nothing waits"
	}
	return "\n  what waits:" + b.String()
}

// since is how long ago a test has begun to wait.
func (k *Kit) since(t time.Time) time.Duration { return k.Now().Sub(t) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shownMessages is how many messages a report lists.
const shownMessages = 10

func list(ms []Received) string {
	var parts []string
	for i, m := range ms {
		if i == shownMessages {
			parts = append(parts, fmt.Sprintf("and %d more", len(ms)-i))
			break
		}
		parts = append(parts, m.String())
	}
	return strings.Join(parts, ", ")
}

// String is the message as a report shows it: its kind, its value, its sender.
func (r Received) String() string {
	text := ""
	if r.Kind != abi.KindMessage {
		text = r.Kind.String() + " "
	}
	text += value(r.Payload)
	if !r.Sender.IsZero() && r.Sender.Path() != "" {
		text += " from " + r.Sender.Path()
	}
	return text
}

// value is a payload as diagnostic notation, clipped.
func value(payload []byte) string {
	text, err := cbor.Diagnose(payload)
	if err != nil {
		text = fmt.Sprintf("% x", payload)
	}
	return clip(text)
}

// maxShown bounds what a report shows of one value, in bytes.
const maxShown = 200

func clip(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}
