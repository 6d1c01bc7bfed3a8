package schedule

import (
	"context"
	"errors"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// Run is the payload of the message to the actor, whose sender is none, or one that the actor
// does not know.
type Run struct {
	Run     string          `cbor:"run"`     // its id: the same for all attempts
	Entry   string          `cbor:"entry"`   // the name
	Planned int64           `cbor:"planned"` // ns since 1970
	Attempt int             `cbor:"attempt"` // from 1, in this process
	Missed  uint64          `cbor:"missed"`  // earlier planned times that it stands for; 1000: 1000 or more
	Payload cbor.RawMessage `cbor:"payload"` // the entry's, or null
}

var null = cbor.RawMessage{0xf6}

// sender delivers runs to actors of a system.
type sender struct {
	sys   *host.System
	clock host.Clock
}

// send delivers one attempt and, unless it is a tell, waits for the outcome. retry says that it
// must be tried again: it was not delivered, or is an ask that has failed.
func (s *sender) send(ctx context.Context, r *run) (retry bool, err error) {
	x := r.item
	m := Run{Run: r.id(), Entry: x.Name, Planned: r.planned, Attempt: r.attempt, Missed: r.missed, Payload: x.Payload}
	if len(m.Payload) == 0 {
		m.Payload = null
	}
	var message any = &m
	if x.owner != "" { // entries of the manifest have no owner
		message = host.OnBehalf{Value: message, Of: x.owner}
	}
	at, err := s.sys.AddressOf(x.target())
	if err != nil {
		return true, err
	}
	to, v := at.To, at.Message(message)
	if x.delivery() == Tell {
		err := s.sys.TryTell(to, v)
		return err != nil, err
	}
	p, err := s.sys.TryRequest(to, v)
	if err != nil {
		return true, err
	}
	expired := make(chan struct{})
	timer := s.clock.AfterFunc(x.timeout(), func() { close(expired) })
	defer timer.Stop()
	again := x.delivery() == Ask
	answer, which := executor.Take(s.clock, p.Answer(), expired, ctx.Done())
	switch which {
	case 0:
		err := answer.Err()
		return again && err != nil, err
	case 1:
		p.Cancel()
		return again, errNoAnswer
	default:
		p.Cancel()
		return again, ctx.Err()
	}
}

var errNoAnswer = errors.New("no answer in time")
