package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Which keys the cluster's journal has something of, for operators.

// mostListedKeys is how many keys cluster journal ls shows unless --limit says otherwise.
const mostListedKeys = 1000

// listJournals is the verb journal ls: it asks for one page after the other.
func (r *reached) listJournals(c *cli.Context, kind string) error {
	limit := mostListedKeys
	if c.IsSet("limit") {
		if limit = c.Int("limit"); limit < 1 {
			return usage("--limit %d: at least 1", limit)
		}
	}
	all := admin.KeyJournals{Version: 1, Keys: []admin.ListedKey{}, Next: c.String("after")}
	for first := true; len(all.Keys) < limit && (first || all.Next != ""); first = false {
		q := url.Values{"kind": {kind}, "prefix": {c.String("prefix")}, "after": {all.Next}, "limit": {strconv.Itoa(min(limit-len(all.Keys), admin.MostJournals))}}
		page, err := client.Get[admin.KeyJournals](c.Context, r.Client, "/v1/cluster/journals", q)
		if err != nil {
			return refusal(err)
		}
		if len(page.Keys) == 0 {
			page.Next = ""
		}
		all.Keys, all.Next = append(all.Keys, page.Keys...), page.Next
	}
	if r.json {
		return clusterJSON(r.env, all)
	}
	return r.showJournals(&all)
}

func (r *reached) showJournals(all *admin.KeyJournals) error {
	if err := r.table("KIND\tKEY\tBYTES\tRECORDS\tLAST WRITE\tSHARD\tNODE", func(w *tabwriter.Writer) {
		for _, k := range all.Keys {
			no, node := "-", "-"
			if k.Shard >= 0 {
				no = strconv.Itoa(k.Shard)
			}
			if k.Node != 0 {
				node = fmt.Sprintf("%d (%s)", k.Node, orDash(k.Name))
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", oneLine(k.Kind), oneLine(k.Key), k.Bytes, k.Records, k.Last.Local().Format(time.DateTime), no, oneLine(node))
		}
	}); err != nil || all.Next == "" {
		return err
	}
	return write(r.env.stdout, fmt.Sprintf("and more: --after %s\n", shellWord(all.Next)))
}

// shellWord is a text as one word of a shell.
func shellWord(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-~", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(oneLine(text), "'", `'\''`) + "'"
}

// Journals implements admin.Nodes.
func (a *clusterAdmin) Journals(ctx context.Context, q admin.JournalQuery) (admin.KeyJournals, error) {
	s := a.l.seen.Load()
	if s == nil {
		return admin.KeyJournals{}, errApart
	}
	if s.kept == nil {
		return admin.KeyJournals{}, fmt.Errorf("this bundle keeps no events in the cluster: durable: events of a keyed actor with scope: cluster does that")
	}
	ask, err := keyQuery(q)
	if err != nil {
		return admin.KeyJournals{}, err
	}
	type outcome struct {
		p   cluster.KeyPage
		err error
	}
	done := make(chan outcome, 1)
	s.kept.List(ask, func(p cluster.KeyPage, err error) { done <- outcome{p, err} })
	var got outcome
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	}
	if got.err != nil {
		return admin.KeyJournals{}, a.unread(got.err)
	}
	out := admin.KeyJournals{Version: 1, Keys: []admin.ListedKey{}}
	places := map[string]map[int]shard.Place{}
	for _, k := range got.p.Keys {
		x := admin.ListedKey{Kind: k.Kind, Key: keyNamed(k.Name), Bytes: k.Bytes, Records: k.Records, Last: time.Unix(0, k.Last).UTC(), Shard: -1}
		if no, ok := s.kept.ShardOf(k.KeyID); ok {
			x.Shard = no
			if p := a.placeOf(ctx, places, k.Kind, x.Key, no); p.Shard == no {
				at := a.placed(k.Kind, x.Key, p)
				x.Epoch, x.Node, x.Name = at.Epoch, at.Node, at.Name
			}
		}
		out.Keys = append(out.Keys, x)
	}
	if n := len(got.p.Keys); got.p.More && n > 0 {
		out.Next = got.p.Keys[n-1].Kind + "/" + got.p.Keys[n-1].Name
	}
	return out, nil
}

// keyQuery is what is asked of the log: its names are those of the keys' actors.
func keyQuery(q admin.JournalQuery) (ask cluster.KeyQuery, err error) {
	ask = cluster.KeyQuery{Kind: q.Kind, Most: q.Limit}
	if ask.Most == 0 {
		ask.Most = admin.MostJournals
	}
	if q.Prefix != "" {
		if ask.Prefix, err = keyed.Name(q.Prefix); err != nil {
			return ask, fmt.Errorf("no key begins with %q: %w", oneLine(q.Prefix), err)
		}
	}
	if q.After != "" {
		ask.After.Kind, ask.After.Name, _ = strings.Cut(q.After, "/")
	}
	if !ask.Valid() || q.After != "" && ask.After.Name == "" {
		return ask, fmt.Errorf("kind %q and after %q are none: after is the next of the page before", oneLine(q.Kind), oneLine(q.After))
	}
	return ask, nil
}

// keyNamed is the key of an actor's name, or the name if it is that of a singleton, or no node has written it.
func keyNamed(name string) string {
	if key, ok := keyed.Key(name); ok {
		return key
	}
	return name
}

// placeOf is where a shard is, which is asked for once.
func (a *clusterAdmin) placeOf(ctx context.Context, known map[string]map[int]shard.Place, kind, key string, no int) shard.Place {
	if p, ok := known[kind][no]; ok {
		return p
	}
	p := shard.Place{Shard: -1}
	if sys, ref, err := a.region(kind); err == nil {
		if at, err := shard.Where(ctx, sys, ref, key); err == nil {
			p = at
		}
	}
	if known[kind] == nil {
		known[kind] = map[int]shard.Place{}
	}
	known[kind][no] = p
	return p
}
