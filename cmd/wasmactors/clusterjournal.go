package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// What the cluster's journal has of a key, for operators.

// keyJournal is the verb journal.
func keyJournal(c *cli.Context, r *reached, args []string) error {
	verb, kind, key := args[0], at(args, 1), at(args, 2)
	show := func(k admin.KeyJournal) error {
		if r.json {
			return nil
		}
		text := fmt.Sprintf("the journal has of /user/%s/%s %d events, the last is number %d, and %d snapshots: %d bytes in %d records", k.Kind, k.Key, k.Events, k.Last, k.Snapshots, k.Bytes, k.Records)
		if verb == "delete" {
			text = fmt.Sprintf("what the journal had of /user/%s/%s is deleted: %d events and %d snapshots", k.Kind, k.Key, k.Events, k.Snapshots)
		}
		return write(r.env.stdout, oneLine(text)+"\n")
	}
	if n, ok := map[string]int{"ls": 2, "show": 3, "delete": 3}[verb]; ok && (len(args) > n || len(args) < n && verb != "ls") {
		return usage("cluster journal %s: wrong number of arguments; see wasmactors cluster --help", verb)
	}
	switch verb {
	case "ls":
		return r.listJournals(c, kind)
	case "show":
		return ask(c, r, "/v1/cluster/journal", map[string][]string{"kind": {kind}, "key": {key}}, show)
	case "delete":
		return order(c, r, "/v1/cluster/journal/delete", admin.KeyName{Kind: kind, Key: key}, show)
	}
	return usage("cluster journal takes ls [KIND], or show or delete, and then KIND KEY, not %q", verb)
}

// eraseTime bounds how long an erasure is tried, in which the answer of the journal may be late.
const eraseTime = 4 * time.Second

// log is the journal of a kind, and the name of the actor of a key.
func (a *clusterAdmin) log(kind, key string) (*journal.Journal, string, error) {
	if _, _, err := a.region(kind); err != nil {
		return nil, "", err
	}
	s := a.l.seen.Load()
	if s == nil {
		return nil, "", errApart
	}
	name, err := keyed.Name(key)
	if err != nil {
		return nil, "", err
	}
	if s.kept == nil {
		return nil, "", fmt.Errorf("the actors of %s keep no events in the cluster: durable: events does that", oneLine(kind))
	}
	return s.kept, name, nil
}

// keyLog is the journal of a kind.
type keyLog interface {
	Look(kind, name string, done func(journal.Kept, error))
	Erase(kind, name string, within time.Duration, done func(error))
}

func look(ctx context.Context, of keyLog, kind, name string) (k journal.Kept, err error) {
	type outcome struct {
		k   journal.Kept
		err error
	}
	done := make(chan outcome, 1)
	of.Look(kind, name, func(k journal.Kept, err error) { done <- outcome{k, err} })
	select {
	case x := <-done:
		return x.k, x.err
	case <-ctx.Done():
		return k, context.Cause(ctx)
	}
}

// erase erases what there is of a key, also what cannot be read, and says what could be read of it.
func erase(ctx context.Context, of keyLog, kind, name string) (before journal.Kept, err error) {
	before, err = look(ctx, of, kind, name)
	if err != nil && !errors.Is(err, journal.ErrSpoilt) && !errors.Is(err, cluster.ErrLong) {
		return before, err
	}
	done := make(chan error, 1)
	of.Erase(kind, name, eraseTime, func(err error) { done <- err })
	select {
	case err = <-done:
		return before, err
	case <-ctx.Done():
		return before, fmt.Errorf("it is not known whether it is deleted: %w", context.Cause(ctx))
	}
}

func keyJournalOf(kind, key string, k journal.Kept) admin.KeyJournal {
	return admin.KeyJournal{Version: 1, Kind: kind, Key: key, Last: k.Last, Events: k.Events, Snapshots: k.Snapshots, Records: k.Records, Bytes: k.Bytes}
}

// Journal implements admin.Nodes.
func (a *clusterAdmin) Journal(ctx context.Context, kind, key string) (admin.KeyJournal, error) {
	of, name, err := a.log(kind, key)
	if err != nil {
		return admin.KeyJournal{}, err
	}
	k, err := look(ctx, of, kind, name)
	return keyJournalOf(kind, key, k), a.unread(err)
}

// Erase implements admin.Nodes. It returns what there was. The node that has the key does it.
func (a *clusterAdmin) Erase(ctx context.Context, kind, key string) (admin.KeyJournal, error) {
	if _, _, err := a.log(kind, key); err != nil {
		return admin.KeyJournal{}, err
	}
	p, err := a.Where(ctx, kind, key)
	if err != nil {
		return admin.KeyJournal{}, err
	}
	if self := a.l.membership.identity.Node; p.Node != 0 && p.Name != "" && p.Name != self {
		return a.eraseOther(ctx, p.Name, kind, key)
	}
	return a.eraseHere(ctx, kind, key, a.l.membership.identity.Node)
}

// eraseHere erases what there is of a key that this node has, as an operator of a node has ordered.
func (a *clusterAdmin) eraseHere(ctx context.Context, kind, key, by string) (admin.KeyJournal, error) {
	of, name, err := a.log(kind, key)
	if err != nil {
		return admin.KeyJournal{}, err
	}
	before, err := erase(ctx, of, kind, name)
	if err != nil {
		return keyJournalOf(kind, key, before), a.unread(err)
	}
	a.l.membership.showKind("erased", cluster.Event{Text: fmt.Sprintf("an operator has deleted what the journal had of /user/%s/%s: %d events; it was ordered on node %s", kind, name, before.Events, by)})
	return keyJournalOf(kind, key, before), nil
}

// unread says what an operator can do about an error of the journal.
func (a *clusterAdmin) unread(err error) error {
	if err == nil {
		return nil
	}
	p := &admin.Problem{Status: http.StatusConflict, Code: "refused", Message: printable.Line(err.Error(), mostReason)}
	switch {
	case errors.Is(err, journal.ErrMoved):
		p.Hint = "try again: wasmactors cluster where KIND KEY says where it is"
	case errors.Is(err, journal.ErrLives):
		p.Hint = "wasmactors stop /user/KIND/KEY, on the node that has it, ends it; what is sent to it starts it again"
	case errors.Is(err, journal.ErrNothing):
		p.Status, p.Code = http.StatusNotFound, "nothing"
	case errors.Is(err, journal.ErrSpoilt), errors.Is(err, cluster.ErrLong):
		p.Hint = "wasmactors cluster journal delete KIND KEY deletes all that there is of it, also what cannot be read"
	default:
		p.Status, p.Code, p.Hint = http.StatusGatewayTimeout, noAnswer, "wasmactors cluster status says why the journal does not answer"
	}
	return p
}
