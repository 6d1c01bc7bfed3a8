package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/persist"
)

// liveStore is the store of a bundle that runs, for its admin server.
type liveStore struct {
	*durable.Store
	journal *persist.Journal // nil: no actor keeps events
}

// Actors implements admin.Store.
// Checkpoint implements admin.Store: who asks for one wants the space of what came before.
func (s liveStore) Checkpoint(ctx context.Context) error { return s.Compact(ctx) }

// Actors implements admin.Store.
func (s liveStore) Actors(ctx context.Context) ([]admin.StoredActor, error) {
	all, err := s.Store.Actors(ctx)
	out := make([]admin.StoredActor, len(all))
	for i, a := range all {
		out[i] = admin.StoredActor(a)
	}
	return out, err
}

// Events implements admin.Store.
func (s liveStore) Events(ctx context.Context, q admin.EventQuery, f func(admin.StoredEvent) error, idle func() error) error {
	if s.journal == nil {
		return errors.New("no actor of the bundle keeps events")
	}
	return s.journal.Pour(ctx, q.ID, q.Tag, persist.Query{From: q.From, Live: q.Follow}, func(e *persist.Event) error {
		x, err := storedEvent(e)
		if err == nil {
			err = f(x)
		}
		return err
	}, idle)
}

// adminStore is the store of what runs now; nil if there is none.
func adminStore(b *bundle.Bundle, sys *host.System) admin.Store {
	if s := b.Store(); s != nil {
		return liveStore{s, persist.Of(sys)}
	}
	return nil
}

// storeFigures are those of the store of a bundle; nil if it has none.
func storeFigures(b *bundle.Bundle) *observe.Store {
	s := b.Store()
	if s == nil {
		return nil
	}
	f := s.Figures()
	x := &observe.Store{
		Bytes: f.Bytes, Limit: f.Limit, Full: f.Full, Waiting: f.Waiting, Records: f.Records, Written: f.Written, Refused: f.Refused,
		Since: f.Since, RepeatNS: int64(f.Repeating), Checkpoints: f.Checkpoint.Count, CheckpointsFailed: f.Checkpoint.Failed,
		CheckpointBytes: f.Checkpoint.Bytes, CheckpointActors: f.Checkpoint.Actors, PauseNS: int64(f.Checkpoint.Pause), FailedAt: f.Broke,
	}
	if f.Err != nil {
		x.Failed = f.Err.Error()
	}
	if f.Checkpoint.Err != nil {
		x.CheckpointError = f.Checkpoint.Err.Error()
	}
	return x
}

// runningStore asks the process that has the store open.
func runningStore(c *cli.Context, env *environment, m *bundle.Manifest, verb, actor string) error {
	place, err := client.Find(m.Name)
	if err != nil {
		return &unreachableError{fmt.Errorf("the store is in use by a process that cannot be reached: %s", strings.TrimPrefix(err.Error(), client.ErrNotFound.Error()+": "))}
	}
	r := &reached{env: env, json: c.Bool("json"), Client: client.Dial(place.Path)}
	defer r.Close()
	sys, err := client.Get[observe.System](c.Context, r.Client, "/v1/system", nil)
	if err != nil {
		return refusal(err)
	}
	if dir, err := filepath.Abs(m.Dir); err != nil || dir != sys.Dir {
		return &unreachableError{fmt.Errorf("the store is in use by a process that cannot be reached: the bundle %s that runs is the one of %s", oneLine(m.Name), oneLine(sys.Dir))}
	}
	if verb == "compact" {
		return order(c, r, "/v1/store/checkpoint", struct{}{}, func(x observe.Store) error {
			if r.json {
				return nil
			}
			_, err := fmt.Fprintf(env.stdout, "%s in a checkpoint of %d bytes; %d of %d bytes are used\n", plural(x.CheckpointActors, "actor"), x.CheckpointBytes, x.Bytes, x.Limit)
			return err
		})
	}
	if verb == "events" {
		return runningEvents(c, env, r.Client)
	}
	x, err := client.Get[admin.Stored](c.Context, r.Client, "/v1/store", nil)
	if err != nil {
		return refusal(err)
	}
	all := make([]durable.Actor, len(x.Actors))
	for i, a := range x.Actors {
		all[i] = durable.Actor(a)
	}
	return showStore(c, env, m, verb, actor, x.Bytes, x.Limit, all)
}
