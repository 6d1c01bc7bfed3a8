// Package lookup is a service: an actor that answers from something slow outside, without
// letting it hold up other actors.
package lookup

import (
	"context"
	"errors"
	"sync"

	"github.com/wasmactors/wasmactors/host"
)

// Source is something slow, such as a database. Find is called by several goroutines; it
// returns soon after ctx has ended. Open and Close may take their time.
type Source interface {
	Open() error
	Find(ctx context.Context, key string) (string, error)
	Close() error
}

// Path is where [Start] puts the service. A guest needs the capability to send there.
const Path = "/system/lookup"

// Start starts the service. It is asked for a key, a text, and answers with a text or an
// error; at most parallel questions are open, the next one is answered at once, with an
// error. The service ends after the actors of /user.
func Start(s *host.System, source Source, parallel int) (host.Ref, error) {
	props := host.Native(func() host.Actor { return &service{source: source} })
	return s.SpawnService("lookup", props.WithLimits(host.Limits{Replies: parallel}))
}

type service struct {
	source  Source
	open    sync.WaitGroup
	cancel  context.CancelFunc
	context context.Context
}

// Started implements host.Starter.
func (s *service) Started(ctx *host.Context) error {
	s.context, s.cancel = context.WithCancel(context.Background())
	ctx.Block() // others get this worker
	return s.source.Open()
}

// Receive implements host.Actor.
func (s *service) Receive(ctx *host.Context, m host.Message) error {
	var key string
	if err := m.Decode(&key); err != nil {
		return ctx.ReplyError("the key is not a text")
	}
	reply, err := ctx.Later()
	switch {
	case errors.Is(err, host.ErrLimit):
		return ctx.ReplyError("too many lookups at a time")
	case err != nil:
		return host.ErrUnhandled // nobody waits for an answer
	}
	s.open.Go(func() { s.answer(reply, key) })
	return nil
}

// answer runs in a goroutine of its own, behind the turn. It may use the handle, and not
// the context of the turn.
func (s *service) answer(reply *host.Reply, key string) {
	ctx, cancel := context.WithCancel(s.context)
	defer cancel()
	found := make(chan struct{})
	defer close(found)
	go func() {
		select {
		case <-reply.Gone(): // nobody waits any more
			cancel()
		case <-found:
		}
	}()
	value, err := s.source.Find(ctx, key)
	if err != nil {
		_ = reply.Fail(err.Error())
		return
	}
	_ = reply.Send(value) // an error says that nobody waits any more
}

// Stopped implements host.Stopper. Nothing of an incarnation goes on behind its end.
func (s *service) Stopped(ctx *host.Context) {
	ctx.Block()
	s.cancel()
	s.open.Wait()
	_ = s.source.Close()
}
