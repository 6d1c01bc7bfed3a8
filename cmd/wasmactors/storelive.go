package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/ref"
)

// liveStore is the store of a bundle that runs, for its admin server.
type liveStore struct{ *durable.Store }

// Actors implements admin.Store.
func (s liveStore) Actors(ctx context.Context) ([]admin.StoredActor, error) {
	all, err := s.Store.Actors(ctx)
	out := make([]admin.StoredActor, len(all))
	for i, a := range all {
		out[i] = admin.StoredActor(a)
	}
	return out, err
}

// adminStore is the store of what runs now; nil if there is none.
func adminStore(b *bundle.Bundle) admin.Store {
	if s := b.Store(); s != nil {
		return liveStore{s}
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
	method, path, body := http.MethodGet, "/v1/store", any(nil)
	if verb == "compact" {
		method, path, body = http.MethodPost, "/v1/store/checkpoint", struct{}{}
	}
	text, err := r.Raw(c.Context, method, path, nil, body)
	r.json = false // showStore writes it
	return answered(r, func(x admin.Stored) error {
		var all []durable.Actor
		for _, a := range x.Actors {
			all = append(all, durable.Actor(a))
		}
		if verb == "show" {
			path := ref.Scheme + m.Name + "/user/" + strings.TrimPrefix(actor, "/user/")
			all = slices.DeleteFunc(all, func(a durable.Actor) bool { return a.Path != path && !strings.HasPrefix(a.Path, path+"/") })
			if len(all) == 0 {
				return fmt.Errorf("the store has no actor %s", path)
			}
		}
		if verb == "compact" && !c.Bool("json") {
			_, err := fmt.Fprintf(env.stdout, "%d actors in a checkpoint of %d bytes; %d of %d bytes are used\n", x.CheckpointActors, x.CheckpointBytes, x.Bytes, x.Limit)
			return err
		}
		return showStore(c, env, verb, x.Bytes, x.Limit, all)
	})(text, err)
}
