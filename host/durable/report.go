package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// Actor is what a store has of an actor.
type Actor struct {
	Path    string  `json:"path"`
	Type    string  `json:"type"`
	Ref     abi.Ref `json:"ref"`
	Ended   bool    `json:"ended,omitempty"` // it has stopped for good
	Records int     `json:"records"`
	Bytes   int64   `json:"bytes"` // of its records
	Turns   uint64  `json:"turns"`
	Last    int64   `json:"last"` // time of the last record, ns since 1970

	Checkpoint int64 `json:"checkpoint"` // bytes of its state in the last checkpoint, before they are compressed
}

// Actors reads the whole log and sums it up, in the order of the paths: Records and Bytes are since the last checkpoint.
// With a system that runs, it is as far as the log is durable. It ends with ctx.
func (s *Store) Actors(ctx context.Context) ([]Actor, error) {
	all := map[abi.Ref]*Actor{}
	var g gathered
	var in records
	var since []func() // what came after the mark of the checkpoint that is read
	var last *ended    // the last one whose parts are read at the end
	var at spot        // its end
	var later []func() // what came after its mark
	var batch wal.Position
	for r, err := range s.log.Read(0) {
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if r.First {
			batch = r.At
		}
		v, err := in.next(&r)
		if err != nil {
			return nil, fmt.Errorf("position %d: %w", r.At, err)
		}
		apply := func(f func()) {
			if last == nil {
				f()
			} else {
				later = append(later, f)
			}
			if g.at != 0 {
				since = append(since, f)
			}
		}
		switch v := v.(type) {
		case *mark:
			g, since = gathered{at: r.At}, nil
		case *piece:
			g.add(v)
		case *done:
			parts, err := g.end(v)
			if err != nil {
				return nil, fmt.Errorf("position %d: %w", r.At, err)
			}
			if parts == nil {
				continue
			}
			clear(all)
			last = nil
			for _, b := range parts {
				if err := addPart(all, b); err != nil {
					return nil, fmt.Errorf("position %d: %w", r.At, err)
				}
			}
			for _, f := range since {
				f()
			}
			g, since = gathered{}, nil
		case *ended:
			if v.mark == g.at {
				last, at, later = v, spot{batch, r.At}, since
				g, since = gathered{}, nil
			}
		case *forgotten:
			apply(func() {
				for uid, a := range all {
					if a.Path == v.Path || strings.HasPrefix(a.Path, v.Path+"/") {
						delete(all, uid)
					}
				}
			})
		case *record.Record:
			n := int64(len(r.Data))
			apply(func() {
				a := all[v.Actor]
				if a == nil {
					a = &Actor{Ref: v.Actor}
					all[v.Actor] = a
				}
				a.add(v, n)
			})
		}
	}
	if last != nil {
		clear(all)
		if err := s.eachPart(ctx, last, at, func(b []byte) error { return addPart(all, b) }); err != nil {
			return nil, err
		}
		for _, f := range later {
			f()
		}
	}
	var out []Actor
	for _, a := range all {
		if a.Path != "" { // else it is a guardian
			out = append(out, *a)
		}
	}
	slices.SortFunc(out, func(a, b Actor) int { return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Ref, b.Ref)) })
	return out, nil
}

// addPart adds the actor of a part.
func addPart(all map[abi.Ref]*Actor, b []byte) error {
	of, err := port.Part(b)
	if err == nil {
		all[of.Ref] = &Actor{Path: of.Path, Type: of.Type, Ref: of.Ref, Turns: of.Turns, Checkpoint: int64(len(b))}
	}
	return err
}

// add counts a record.
func (a *Actor) add(r *record.Record, bytes int64) {
	a.Records, a.Bytes, a.Last = a.Records+1, a.Bytes+bytes, r.Time
	switch {
	case r.Kind == record.Began:
		a.Path, a.Type = r.Life.Path, r.Life.Type
	case r.Kind == record.Ended:
		a.Ended = true
	case r.Entry != nil:
		a.Turns += uint64(r.Entry.Done)
		if r.Entry.Failure != nil {
			a.Turns++
		}
	}
}

// Name is what stands behind /user/ in the path of an actor, which may lack that, or begin with the address of the system.
func Name(system, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, ref.Scheme+system), "/user/")
}

// Forget has the store forget an actor below /user of a system, and all below it: it begins anew when it is spawned. name is its name or
// path. It is for a store without a system.
func (s *Store) Forget(ctx context.Context, system, name string) error {
	name = Name(system, name)
	if top, _, below := strings.Cut(name, "/"); below {
		return fmt.Errorf("only an actor at the top can be forgotten, and with it all below it: /user/%s is part of %s", name, top)
	}
	path := ref.Scheme + system + "/user/" + name
	events, err := s.forgetEvents(ctx, name)
	if err != nil {
		return err
	}
	all, err := s.Actors(ctx)
	if err != nil {
		return err
	}
	if events && !slices.ContainsFunc(all, func(a Actor) bool { return a.Path == path }) {
		return nil
	}
	if !slices.ContainsFunc(all, func(a Actor) bool { return a.Path == path }) {
		return fmt.Errorf("the store has no actor /user/%s", name)
	}
	b, err := encode(tagForget, &forgotten{Path: path})
	if err != nil {
		return err
	}
	at, err := s.append(b)
	if err != nil {
		return err
	}
	return s.log.Await(ctx, at)
}
