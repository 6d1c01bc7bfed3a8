package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// storedEvent is an event as it is shown.
func storedEvent(e *persist.Event) (admin.StoredEvent, error) {
	payload, err := host.ToJSON(e.Payload)
	if err != nil {
		return admin.StoredEvent{}, fmt.Errorf("event %d of %s: %w", e.Number, e.ID, err)
	}
	return admin.StoredEvent{
		ID: e.ID, Number: e.Number, Offset: e.Offset, Type: abi.JoinMessageType(e.Type, e.Version), Tags: e.Tags,
		Time: time.Unix(0, e.Time).UTC(), Payload: payload,
	}, nil
}

// storedQuery is what the flags of store events say.
func storedQuery(c *cli.Context) (q admin.EventQuery, err error) {
	q = admin.EventQuery{ID: c.String("id"), Tag: c.String("tag"), From: c.Uint64("from"), Follow: c.Bool("follow")}
	switch {
	case q.ID != "" && q.Tag != "":
		return q, usage("store events takes --id or --tag, not both")
	case q.Follow && q.ID == "" && q.Tag == "":
		return q, usage("store events --follow needs --id or --tag")
	case q.ID != "" && !strings.HasPrefix(q.ID, "/"):
		q.ID = "/user/" + q.ID
	}
	return q, nil
}

// storeEvents lists what actors have stored, from the store of a bundle that does not run.
func storeEvents(c *cli.Context, env *environment, s *durable.Store) error {
	q, err := storedQuery(c)
	if err != nil {
		return err
	}
	if q.Follow {
		return errors.New("the bundle does not run: nothing more comes. Leave out --follow, or start it with wasmactors run")
	}
	j, err := s.ReadEvents()
	if err != nil {
		return err
	}
	list := newEventList(c, env)
	err = j.Pour(c.Context, q.ID, q.Tag, persist.Query{From: q.From}, func(e *persist.Event) error {
		x, err := storedEvent(e)
		if err == nil {
			err = list.add(x)
		}
		return err
	}, nil)
	if flushing := list.flush(); err == nil {
		err = flushing
	}
	return err
}

// runningEvents lists what the actors of a bundle that runs have stored, and with --follow what they store from now on.
func runningEvents(c *cli.Context, env *environment, to *client.Client) error {
	q, err := storedQuery(c)
	if err != nil {
		return err
	}
	query := url.Values{}
	for name, value := range map[string]string{"id": q.ID, "tag": q.Tag} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.From > 0 {
		query.Set("from", strconv.FormatUint(q.From, 10))
	}
	if q.Follow {
		query.Set("follow", "true")
	}
	list := newEventList(c, env)
	reason, err := to.Stream(c.Context, "/v1/store/events", query, func(line []byte) error {
		var e admin.StoredEvent
		err := json.Unmarshal(line, &e)
		if err == nil {
			err = list.add(e)
		}
		if err == nil && q.Follow {
			err = list.flush()
		}
		return err
	}, func(uint64) {})
	if flushing := list.flush(); err == nil {
		err = flushing
	}
	switch {
	case c.Context.Err() != nil:
		return nil // Ctrl-C ends following
	case err != nil:
		return refusal(err)
	case reason != "" && !q.Follow:
		return errors.New(oneLine(reason))
	case reason != "":
		env.note(oneLine("the events end: " + reason))
	}
	return nil
}

// eventList prints events: a table, or JSON, one a line.
type eventList struct {
	table *tabwriter.Writer
	json  *json.Encoder // nil: a table
}

func newEventList(c *cli.Context, env *environment) *eventList {
	l := &eventList{table: tabwriter.NewWriter(env.stdout, 0, 8, 2, ' ', 0)}
	if c.Bool("json") {
		l.json = json.NewEncoder(env.stdout)
		return l
	}
	fmt.Fprintln(l.table, "ID\tNUMBER\tOFFSET\tTYPE\tTAGS\tTIME\tPAYLOAD")
	return l
}

func (l *eventList) add(e admin.StoredEvent) error {
	if l.json != nil {
		return l.json.Encode(e)
	}
	_, err := fmt.Fprintf(l.table, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", cell(e.ID), e.Number, e.Offset, cell(e.Type),
		cell(strings.Join(e.Tags, ",")), e.Time.Format(time.DateTime), cell(printable.Clip(string(e.Payload), 200)))
	return err
}

// cell is a text of a store in a table: one that was forged makes no further row and no further column.
func cell(s string) string { return printable.Line(strings.ReplaceAll(s, "\n", " "), 4096) }

func (l *eventList) flush() error { return l.table.Flush() }
