package main

import (
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/journal"
)

func init() {
	actor.Register("journal-follower", func() actor.Actor { return &follower{} })
	actor.Register("journal-reader", func() actor.Actor { return journalReader{} })
}

// follower follows the tag that is its argument, and answers "heard" with a text of what it has heard.
type follower struct{ heard []string }

func (f *follower) Started(ctx *actor.Context) error {
	r := ctx.Args()
	journal.Follow(ctx, journal.Query{Tag: r.Text()}, func(_ *actor.Context, p journal.Page, err error) error {
		if err != nil {
			f.heard = append(f.heard, err.Error())
			return nil
		}
		list, err := shownEvents(p.Events)
		f.heard = append(f.heard, list...)
		return err
	})
	return r.Done()
}

func (f *follower) Receive(ctx *actor.Context, msg *actor.Message) error {
	if !msg.Is("heard") {
		return actor.ErrUnhandled
	}
	return ctx.Reply(actor.Text(strings.Join(f.heard, ";")))
}

// plain is a text as a decoder reads it.
type plain string

func (p *plain) UnmarshalCBOR(r *abi.Reader) { *p = plain(r.Text()) }

func shownEvents(events []journal.Event) (list []string, err error) {
	for i := range events {
		var s plain
		if err := journal.Decode(&events[i], &s); err != nil {
			return nil, err
		}
		list = append(list, events[i].ID+"#"+strconv.FormatUint(events[i].Number, 10)+" "+string(s))
	}
	return list, nil
}

// journalReader answers "read ID", "ids" and "info ID".
type journalReader struct{}

func (journalReader) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, id, _ := strings.Cut(msg.Text(), " ")
	to, c := ctx.Sender(), ctx.Correlation()
	say := func(ctx *actor.Context, text string, err error) error {
		if err != nil {
			text = err.Error()
		}
		return ctx.Answer(to, c, actor.Text(text))
	}
	switch what {
	case "read":
		journal.Read(ctx, journal.Query{ID: id}, func(ctx *actor.Context, p journal.Page, err error) error {
			if err != nil {
				return say(ctx, "", err)
			}
			list, err := shownEvents(p.Events)
			return say(ctx, strings.Join(list, ";")+" next="+strconv.FormatUint(p.Next, 10), err)
		})
	case "ids":
		journal.IDs(ctx, "", 0, func(ctx *actor.Context, ids []string, next string, err error) error {
			return say(ctx, strings.Join(ids, ",")+" next="+next, err)
		})
	case "info":
		journal.Of(ctx, id, func(ctx *actor.Context, i journal.Info, err error) error {
			return say(ctx, "last="+strconv.FormatUint(i.Last, 10)+" deleted="+strconv.FormatUint(i.Deleted, 10), err)
		})
	default:
		return actor.ErrUnhandled
	}
	return nil
}
