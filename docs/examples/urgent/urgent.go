// Package urgent has mailboxes for what is urgent, for what comes twice, and for what comes too
// fast.
package urgent

import (
	"context"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// Desk gives an actor a mailbox whose urgent messages overtake the others. When it is full
// the least urgent give way, the oldest of them first.
func Desk(p host.Props) host.Props {
	box := mailbox.New(mailbox.Priority).WithHeader("urgency").WithFull(mailbox.DropOldest)
	return p.WithMailbox(box.Make).WithLimits(host.Limits{Mailbox: 100, MailboxBytes: 64 << 10})
}

// Urgent makes a message one for such a mailbox.
func Urgent(v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{"urgency": "0"}}
}

// Stoppable gives an actor a mailbox whose "stop" and "pause" overtake everything else. Who may
// send to the actor may stop it, and nothing but these two is urgent.
func Stoppable(p host.Props) host.Props {
	box := mailbox.New(mailbox.ControlAware).WithTypes(map[string]int{"stop": 0, "pause": 0})
	return p.WithMailbox(box.Make)
}

// Once gives an actor a mailbox that takes each order of a sender once, by the header
// idempotency-key.
func Once(p host.Props) host.Props {
	return p.WithMailbox(mailbox.New(mailbox.Deduplicating).WithKeys(10_000).Make)
}

// Patient gives an actor a mailbox that Feed waits for.
func Patient(p host.Props) host.Props {
	return p.WithMailbox(mailbox.New(mailbox.Block).Make).WithLimits(host.Limits{Mailbox: 16})
}

// Feed hands jobs over no faster than they are done.
func Feed(ctx context.Context, sys *host.System, to host.Ref, jobs []string) error {
	for _, job := range jobs {
		if err := sys.Offer(ctx, to, job); err != nil {
			return err
		}
	}
	return nil
}
