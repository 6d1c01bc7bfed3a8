package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// offer is the code of a child, for the node that is to run it and lacks it. Only the actor that the node has named gets it.
type offer struct {
	read    func(context.Context) ([]byte, error) // nil: it cannot be given
	to      host.Ref                              // zero: nobody
	code    []byte
	found   *[]byte     // what is being read, which is there with the answer
	waiting *host.Reply // for the code to be read
	at      int64       // of which part
}

// fetching handles the answer of a node that lacks the code: it asks who fetches it there for the outcome, and gives the parts meanwhile.
func (s *standIn) fetching(ctx *host.Context, f abi.Ref) {
	to, err := ctx.System().RefOf(f, host.Ref{})
	switch {
	case err != nil:
	case f.Node() != s.asks[0].Number:
		err = errors.New("it names an actor of another node")
	case s.offer.read == nil, s.requests >= mostRequested:
		err = ErrLacks
	default:
		s.offer.to = to
		err = ctx.Ask(to, host.Headed{Value: host.Raw{0xf6}, Headers: map[string]string{offering: version}}, s.step+fetching, 3*fetchTime)
	}
	if err != nil {
		s.withdraw(ctx)
		s.next(err)
		s.find(ctx)
	}
}

// outcome handles the word of who fetches the code. Nothing was started yet, so whatever it is, the next node may be asked.
func (s *standIn) outcome(ctx *host.Context, m host.Message) {
	s.withdraw(ctx)
	a, ok := answer{}, false
	if m.Kind == abi.KindReply {
		a, ok = decodeAnswer(m.Payload)
	}
	switch {
	case ok && a.Refused != "":
		s.next(errors.New(a.Refused))
		s.find(ctx)
	default: // it is there, or who has fetched it is gone
		s.send(ctx)
	}
}

// withdraw forgets the code.
func (s *standIn) withdraw(ctx *host.Context) {
	s.offer.to, s.offer.code, s.offer.found = host.Ref{}, nil, nil
	if s.offer.waiting != nil {
		_ = s.offer.waiting.Fail("the code is not given any more")
		s.offer.waiting = nil
	}
	ctx.CancelAsk(s.step + reading)
	_ = ctx.Head().Hold(0)
}

// give gives a part of the code, if the message asks for one.
func (s *standIn) give(ctx *host.Context, m host.Message) bool {
	o := &s.offer
	if o.to.IsZero() || !m.Sender.Equal(o.to) || m.Correlation == 0 {
		return false
	}
	p, err := decodePart(m.Payload)
	switch {
	case err != nil:
	case o.waiting != nil:
		err = errors.New("remote: the code is being read")
	case o.code != nil:
		err = ctx.Reply(s.part(p.At))
	default:
		read, digest := o.read, s.request.Digest
		if o.waiting, err = ctx.Later(); err == nil {
			o.at = p.At
			code := &[]byte{}
			o.found = code
			err = ctx.Head().Pipe(func(ctx context.Context) (any, error) {
				var err error
				*code, err = read(ctx)
				if sum := sha256.Sum256(*code); err == nil && !bytes.Equal(sum[:], digest) {
					err = errors.New("it has changed since it was loaded")
				}
				return nil, err
			}, s.step+reading, partTime)
		}
	}
	if err != nil {
		o.waiting = nil
		_ = ctx.ReplyError(fmt.Sprintf("%.200s", err))
	}
	return true
}

// wasRead handles the code.
func (s *standIn) wasRead(ctx *host.Context, m host.Message) {
	o := &s.offer
	reply := o.waiting
	if o.waiting = nil; reply == nil {
		return
	}
	if err := m.Err(); err != nil || m.Kind != abi.KindReply {
		_ = reply.Fail(fmt.Sprintf("the code cannot be read: %.200v", err))
		return
	}
	code := *o.found
	if err := ctx.Head().Hold(int64(len(code))); err != nil {
		_ = reply.Fail(fmt.Sprintf("%.200s", err))
		return
	}
	o.code = code
	_ = reply.Send(s.part(o.at))
}

func (s *standIn) part(at int64) part {
	size := int64(len(s.offer.code))
	at = min(at, size)
	return part{At: at, Size: size, Code: s.offer.code[at:min(at+partSize, size)]}
}
