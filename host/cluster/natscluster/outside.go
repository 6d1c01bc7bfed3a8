package natscluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// On a NATS that exists all nodes have the same credentials, so each of them can change a stream, or delete it. That cannot be stopped from
// here, but it is found: each node looks at the streams that it uses.

// lookAtStreams is how often.
const lookAtStreams = 10 * time.Second

// looksAtStreams looks until ctx ends.
func (c *Cluster) looksAtStreams(ctx context.Context) {
	tick := time.NewTicker(lookAtStreams)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.looksAt(ctx, c.dir)
		for _, name := range sharing {
			if s, ok := c.shared.of[name].opened(); ok {
				c.looksAt(ctx, s)
			}
		}
	}
}

// looksAt tells of a stream that was changed since it was opened, and when it is right again. What services share is neither read nor written
// while it is wrong. The directory is: nodes that stop are no help against who can stop it anyway.
func (c *Cluster) looksAt(ctx context.Context, s *store) {
	js, err := jetstream.New(s.nc)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	is, err := js.Stream(ctx, s.stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		err = errors.New("it is gone")
	case err != nil:
		return // whether it was is not known
	default:
		err = differs(is.CachedInfo().Config, s.streamConfig(1))
	}
	if err == nil {
		if s.wrong.Swap(nil) != nil {
			c.event(cluster.Event{Kind: cluster.EventAnswers, Text: fmt.Sprintf("stream %s is what it should be again", s.stream)})
		}
		return
	}
	err = fmt.Errorf("natscluster: %s: stream %s was changed: %w; %w", s.what, s.stream, err, service.ErrNotWritten)
	if s.wrong.Swap(&err) == nil {
		c.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: err.Error()})
	}
}
