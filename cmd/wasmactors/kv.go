package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/kv/operate"
	"github.com/wasmactors/wasmactors/host/service/state"
	"github.com/wasmactors/wasmactors/internal/printable"
)

func kvCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "kv",
		Usage:     "show and change what actors store in kv",
		ArgsUsage: "ls [NAMESPACE [PREFIX]] | get NAMESPACE KEY | put NAMESPACE KEY [VALUE] | del NAMESPACE KEY",
		Description: "Of the bundle that runs, or with --state of one that does not: DIR is its folder for state. ls without a\n" +
			"namespace lists the namespaces. get writes the bytes as they are; put takes them from the standard input if\n" +
			"there is no VALUE. What an operator writes ignores quotas and is synced to disk.\n\nExamples:\n\n" +
			"   wasmactors kv ls\n" +
			"   wasmactors kv ls orders 2026/ --json\n" +
			"   wasmactors kv get orders 2026/7 > order\n" +
			"   wasmactors kv put orders 2026/7 < order\n" +
			"   wasmactors kv put orders lock held --ttl 1m --if-version 0\n" +
			"   wasmactors kv put orders next 1000 --counter\n" +
			"   wasmactors kv del orders 2026/7 --state ~/backup/state",
		Flags: reachFlags(
			&cli.StringFlag{Name: "state", Usage: "of a bundle that does not run, whose state is in `DIR`"},
			&cli.IntFlag{Name: "limit", Usage: "ls: list at most `N` (default: all)"},
			&cli.BoolFlag{Name: "reverse", Usage: "ls: from the last key to the first"},
			&cli.BoolFlag{Name: "counter", Usage: "put: VALUE is the count of a counter, which actors add to"},
			&cli.StringFlag{Name: "ttl", Usage: "put: it expires after `DURATION`"},
			&cli.Uint64Flag{Name: "if-version", Usage: "put, del: only if the entry has version `N`; 0 only if there is none"},
		),
		Action: func(c *cli.Context) error { return kvAction(c, env) },
	}
}

func kvAction(c *cli.Context, env *environment) error {
	args := c.Args().Slice()
	most := map[string][2]int{"ls": {0, 2}, "get": {2, 2}, "put": {2, 3}, "del": {2, 2}}
	verb := c.Args().First()
	n, known := most[verb]
	switch {
	case !known:
		return usage("kv takes ls, get, put or del, not %q", verb)
	case len(args)-1 < n[0] || len(args)-1 > n[1]:
		return usage("kv %s: wrong number of arguments; see wasmactors kv --help", verb)
	}
	k := &keys{env: env, json: c.Bool("json"), c: c}
	if dir := c.String("state"); dir != "" {
		folder := state.At(dir)
		if _, err := os.Stat(filepath.Join(dir, kv.Service.Name())); err != nil {
			return fmt.Errorf("%s: the folder has no state of the service kv", dir)
		}
		own, err := folder.Of(kv.Service.Name())
		if err != nil {
			return err
		}
		defer folder.Close()
		store, err := kv.Open(own, warnings(c, env))
		if err != nil {
			return err
		}
		defer store.Close()
		k.of = store
	} else {
		r, err := reach(c, env)
		if err != nil {
			return err
		}
		defer r.Close()
		k.of = remoteKeys{c.Context, r}
	}
	args = append(args[1:], "", "")
	switch verb {
	case "ls":
		if args[0] == "" {
			return k.namespaces()
		}
		return k.list(args[0], args[1])
	case "get":
		return k.get(args[0], args[1])
	case "put":
		return k.put(args[0], args[1], args[2], len(c.Args().Slice()) == 4)
	}
	return k.del(args[0], args[1])
}

// keysOf are the keys of a bundle, for its admin endpoint.
func keysOf(b *bundle.Bundle) func() operate.Keys {
	return func() operate.Keys {
		for _, r := range b.Services() {
			if store, ok := kv.Of(r); ok {
				return store
			}
		}
		return nil
	}
}

// keys carries out a command on a store, near or far.
type keys struct {
	env  *environment
	c    *cli.Context
	json bool
	of   operate.Keys
}

// show prints v with --json, else the text.
func (k *keys) show(v any, text string) error {
	if k.json {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(b) + "\n"
	}
	return write(k.env.stdout, text)
}

func (k *keys) namespaces() error {
	list, err := k.of.Namespaces()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, n := range list.Namespaces {
		fmt.Fprintf(&b, "%s  %d keys, %d bytes\n", n.Namespace, n.Keys, n.Bytes)
	}
	return k.show(list, b.String())
}

// list prints page after page. With --json each entry is a line.
func (k *keys) list(namespace, prefix string) error {
	left := k.c.Int("limit")
	if left < 0 {
		return usage("--limit must be 0 or more")
	}
	shown := 0
	q := operate.Query{Namespace: namespace, Prefix: prefix, Reverse: k.c.Bool("reverse")}
	for {
		q.Limit = 1000
		if left > 0 {
			q.Limit = min(left, 1000)
		}
		page, err := k.of.List(q)
		if err != nil {
			return err
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			shown++
			line := fmt.Sprintf("%s  version %d", printable.Line(e.Key, 2000), e.Version)
			if e.Counter {
				line += fmt.Sprintf("  counter %d", e.Count)
			}
			if e.Expires != 0 {
				line += "  until " + time.Unix(0, e.Expires).UTC().Format(time.RFC3339)
			}
			if err := k.show(e, line+"\n"); err != nil {
				return err
			}
		}
		if left > 0 {
			if left -= len(page.Entries); left <= 0 {
				return nil
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == nil {
			if shown == 0 {
				return k.nothing(namespace)
			}
			return nil
		}
	}
}

// nothing is the error of a list without entries: of a namespace that has none, which may be a name that is wrong.
func (k *keys) nothing(namespace string) error {
	list, err := k.of.Namespaces()
	if err != nil {
		return err
	}
	var names []string
	for _, n := range list.Namespaces {
		if n.Namespace == namespace {
			return nil // it has keys, but none with the prefix
		}
		names = append(names, n.Namespace)
	}
	return &unreachableError{fmt.Errorf("the namespace %s has no keys%s; wasmactors kv ls lists those that have some", namespace, didYouMean(namespace, names))}
}

func (k *keys) get(namespace, key string) error {
	e, err := k.of.Get(namespace, key)
	if err != nil {
		return err
	}
	switch {
	case k.json:
		return k.show(e, "")
	case e.Counter:
		return write(k.env.stdout, strconv.FormatInt(e.Count, 10)+"\n")
	case isTerminal(k.env.stdoutFile()):
		return write(k.env.stdout, string(e.Value))
	}
	return write(k.env.raw, string(e.Value))
}

func (k *keys) put(namespace, key, value string, given bool) error {
	p := operate.PutKey{Namespace: namespace, Key: key, Value: []byte(value), IfVersion: k.ifVersion()}
	if k.c.Bool("counter") {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return usage("kv put --counter needs a whole number of 64 bits, not %q", value)
		}
		p.Value, p.Counter = nil, &n
	} else if !given {
		var err error
		if p.Value, err = io.ReadAll(io.LimitReader(k.env.stdin, kv.MaxValue+1)); err != nil {
			return err
		}
	}
	ttl, err := durationFlag(k.c, "ttl")
	if err != nil {
		return err
	}
	p.TTL = int64(ttl)
	w, err := k.of.Put(k.c.Context, p)
	if err != nil {
		return err
	}
	return k.show(w, fmt.Sprintf("version %d\n", w.Version))
}

func (k *keys) del(namespace, key string) error {
	d, err := k.of.Delete(k.c.Context, operate.DeleteKey{Namespace: namespace, Key: key, IfVersion: k.ifVersion()})
	if err != nil {
		return err
	}
	text := "deleted\n"
	if !d.Existed {
		text = "there was none\n"
	}
	return k.show(d, text)
}

func (k *keys) ifVersion() *uint64 {
	if !k.c.IsSet("if-version") {
		return nil
	}
	v := k.c.Uint64("if-version")
	return &v
}

// remoteKeys are those of a bundle that runs.
type remoteKeys struct {
	ctx context.Context
	r   *reached
}

func remote[T any](k remoteKeys, method, path string, q url.Values, body any) (v T, err error) {
	text, err := k.r.Raw(k.ctx, method, path, q, body)
	if err != nil {
		return v, refusal(err)
	}
	return v, json.Unmarshal(text, &v)
}

// Namespaces implements operate.Keys.
func (k remoteKeys) Namespaces() (operate.Namespaces, error) {
	return remote[operate.Namespaces](k, http.MethodGet, "/v1/kv", nil, nil)
}

// List implements operate.Keys.
func (k remoteKeys) List(q operate.Query) (operate.KeyPage, error) {
	v := url.Values{"namespace": {q.Namespace}, "prefix": {q.Prefix}, "limit": {strconv.Itoa(q.Limit)}, "reverse": {strconv.FormatBool(q.Reverse)}}
	if q.Cursor != nil {
		v.Set("cursor", base64.StdEncoding.EncodeToString(q.Cursor))
	}
	return remote[operate.KeyPage](k, http.MethodGet, "/v1/kv/list", v, nil)
}

// Get implements operate.Keys.
func (k remoteKeys) Get(namespace, key string) (operate.KeyEntry, error) {
	return remote[operate.KeyEntry](k, http.MethodGet, "/v1/kv/entry", url.Values{"namespace": {namespace}, "key": {key}}, nil)
}

// Put implements operate.Keys.
func (k remoteKeys) Put(_ context.Context, p operate.PutKey) (operate.Written, error) {
	return remote[operate.Written](k, http.MethodPost, "/v1/kv/put", nil, p)
}

// Delete implements operate.Keys.
func (k remoteKeys) Delete(_ context.Context, d operate.DeleteKey) (operate.Deleted, error) {
	return remote[operate.Deleted](k, http.MethodPost, "/v1/kv/delete", nil, d)
}
