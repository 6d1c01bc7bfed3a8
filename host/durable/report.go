package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
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
}

// Actors reads the whole log and sums it up, in the order of the paths. It is for a store without a system.
func (s *Store) Actors() ([]Actor, error) {
	all := map[abi.Ref]*Actor{}
	for r, err := range s.log.Read(0) {
		if err != nil {
			return nil, err
		}
		v, err := decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("position %d: %w", r.At, err)
		}
		switch v := v.(type) {
		case *forgotten:
			for uid, a := range all {
				if a.Path == v.Path || strings.HasPrefix(a.Path, v.Path+"/") {
					delete(all, uid)
				}
			}
		case *record.Record:
			a := all[v.Actor]
			if a == nil {
				a = &Actor{Ref: v.Actor}
				all[v.Actor] = a
			}
			a.Records, a.Bytes, a.Last = a.Records+1, a.Bytes+int64(len(r.Data)), v.Time
			switch {
			case v.Kind == record.Began:
				a.Path, a.Type = v.Life.Path, v.Life.Type
			case v.Kind == record.Ended:
				a.Ended = true
			case v.Entry != nil:
				a.Turns += uint64(v.Entry.Done)
				if v.Entry.Failure != nil {
					a.Turns++
				}
			}
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

// Forget has the store forget an actor below /user of a system, and all below it: it begins anew when it is spawned. It is
// for a store without a system.
func (s *Store) Forget(ctx context.Context, system, name string) error {
	path := ref.Scheme + system + "/user/" + name
	all, err := s.Actors()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(a Actor) bool { return a.Path == path }) {
		return fmt.Errorf("the store has no actor /user/%s", name)
	}
	b, err := encode(tagForget, &forgotten{Path: path})
	if err != nil {
		return err
	}
	at, err := s.log.Append(b)
	if err != nil {
		return err
	}
	return s.log.Await(ctx, at)
}
