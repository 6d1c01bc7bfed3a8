package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// storedEvent is an event as it is written in JSON, one a line.
type storedEvent struct {
	ID      string          `json:"id"`
	Number  uint64          `json:"number"`
	Offset  uint64          `json:"offset"`
	Type    string          `json:"type"`
	Tags    []string        `json:"tags,omitempty"`
	Time    time.Time       `json:"time"`
	Payload json.RawMessage `json:"payload"`
}

// storeEvents lists what actors have stored.
func storeEvents(c *cli.Context, env *environment, s *durable.Store) error {
	id, tag, from := c.String("id"), c.String("tag"), c.Uint64("from")
	if id != "" && tag != "" {
		return usage("store events takes --id or --tag, not both")
	}
	j, err := s.ReadEvents()
	if err != nil {
		return err
	}
	ids := j.IDs(c.Context)
	if id != "" {
		if !strings.HasPrefix(id, "/") {
			id = "/user/" + id
		}
		ids = func(yield func(string, error) bool) { yield(id, nil) }
	}
	w := tabwriter.NewWriter(env.stdout, 0, 8, 2, ' ', 0)
	enc := json.NewEncoder(env.stdout)
	if !c.Bool("json") {
		fmt.Fprintln(w, "ID\tNUMBER\tOFFSET\tTYPE\tTAGS\tTIME\tPAYLOAD")
	}
	write := func(events iter.Seq2[persist.Event, error]) error {
		for e, err := range events {
			if err != nil {
				return err
			}
			payload, err := host.ToJSON(e.Payload)
			if err != nil {
				return fmt.Errorf("event %d of %s: %w", e.Number, e.ID, err)
			}
			x := storedEvent{e.ID, e.Number, e.Offset, abi.JoinMessageType(e.Type, e.Version), e.Tags, time.Unix(0, e.Time).UTC(), payload}
			if c.Bool("json") {
				if err := enc.Encode(x); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", printable.Text(x.ID), x.Number, x.Offset, printable.Text(x.Type),
				printable.Text(strings.Join(x.Tags, ",")), x.Time.Format(time.DateTime), printable.Text(printable.Clip(string(x.Payload), 200)))
		}
		return nil
	}
	if tag != "" {
		err = write(j.ByTag(c.Context, tag, persist.Query{From: from}))
	} else {
		for id, idErr := range ids {
			if err = idErr; err == nil {
				err = write(j.ByID(c.Context, id, persist.Query{From: from}))
			}
			if err != nil {
				break
			}
		}
	}
	if flushing := w.Flush(); err == nil {
		err = flushing
	}
	return err
}
