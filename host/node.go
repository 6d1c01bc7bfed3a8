package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// A system on one of several nodes. Its refs contain its node. Whatever is for a ref that nobody of its own has is given
// to the carrier, if there is one: so messages and signals between actors of one node cost what they cost without.

// WithNode sets the number of the node that the system is on, 1 to abi.MaxNode (1023); it is part of all refs. Nodes that
// talk to each other have different numbers. 0, the default, is a system that is alone. New fails for others.
func (c Config) WithNode(n uint16) Config { c.node = n; return c }

// WithEpoch sets which life of a saved secret this is: no ref of an ask, an inbox or a reply handle is one of another
// epoch, so that an answer to an ask of an earlier life is not taken for one of this. The default is 0, and with
// [Config.WithSecret] the time of New by the system's clock, in nanoseconds.
func (c Config) WithEpoch(n uint64) Config { c.epoch = &n; return c }

// epochOf is the epoch that a system begins in.
func (c *Config) epochOf() uint64 {
	switch {
	case c.epoch != nil:
		return *c.epoch
	case c.saved:
		return uint64(c.clock.Now().UnixNano())
	}
	return 0
}

func (c *Config) checkNode() error {
	if c.node > abi.MaxNode {
		return fmt.Errorf("host: node %d: at most %d", c.node, abi.MaxNode)
	}
	return nil
}

func init() { network.Join = join }

var (
	errAlone  = errors.New("host: the system has no node number: set Config.WithNode")
	errJoined = errors.New("host: the system has a carrier already")
)

func join(system any, c network.Carrier) (network.Port, error) {
	s := system.(*System)
	switch {
	case s.cfg.node == 0:
		return nil, errAlone
	case !s.carrier.CompareAndSwap(nil, &c):
		return nil, errJoined
	}
	return port{s}, nil
}

// carrierOf is the carrier for a ref, nil if the ref is of this node or there is no carrier.
func (s *System) carrierOf(to abi.Ref) network.Carrier {
	if c := s.carrier.Load(); c != nil && to.Node() != s.cfg.node && to.Node() != 0 {
		return *c
	}
	return nil
}

// marks are the flags of envelopes that mean something on another node.
var marks = [...]struct {
	flag uint16
	mark network.Marks
}{
	{mark.NoInfluence, network.NoInfluence}, {mark.Suppressed, network.Suppressed}, {mark.Lasting, network.Lasting},
	{mark.Poison, network.Poison}, {mark.Kill, network.Kill}, {mark.Identify, network.Identify}, {mark.Ours, network.OfHost}, {mark.ForGood, network.ForGood},
}

// sendAway gives a message for a ref of another node to the carrier; it is ErrUnknown if nobody carries it. The envelope
// stays the caller's.
func (s *System) sendAway(to abi.Ref, e *mailbox.Envelope) error {
	c := s.carrierOf(to)
	if c == nil {
		return ErrUnknown
	}
	m := network.Message{Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, SenderPath: e.SenderPath, Headers: e.Headers, Payload: e.Payload}
	for _, x := range marks {
		if e.Flags&x.flag != 0 {
			m.Marks |= x.mark
		}
	}
	if e.Flags&mark.Due != 0 { // its clock is another one
		m.Left = uint64(max(1, e.Due-s.time.Now()))
	}
	if !m.Fits() {
		return ErrTooLarge
	}
	if c.Carry(to, network.AppendMessage(nil, &m)) != nil {
		return ErrUnknown
	}
	return nil
}

// signalAway gives a signal for a ref of another node to the carrier; false if nobody carries it.
func (s *System) signalAway(to abi.Ref, m *signal.Signal) bool {
	c := s.carrierOf(to)
	if c == nil {
		return false
	}
	far := *m
	if m.Err != nil {
		far.Code, far.Reason = codeOf(m.Err)
		far.Err = nil
	}
	return c.Carry(to, network.AppendSignal(nil, &far)) == nil
}

// port implements network.Port.
type port struct{ s *System }

func (p port) Node() uint16 { return p.s.cfg.node }

func (p port) Arrive(to abi.Ref, frame []byte) error {
	s := p.s
	if to.Node() != s.cfg.node {
		return fmt.Errorf("%w: it is on node %d, not on %d", ErrUnknown, to.Node(), s.cfg.node)
	}
	m, g, err := network.Decode(frame)
	if err != nil {
		return err
	}
	if g != nil {
		arrived := *g
		if g.Kind == signal.Unanswered {
			arrived.Err = s.errorOf(g)
		}
		s.signal(nil, to, arrived)
		return nil
	}
	e := mailbox.New()
	e.Kind, e.Sender, e.SenderPath, e.Correlation = m.Kind, m.Sender, m.SenderPath, m.Correlation
	e.SetHeaders(m.Headers)
	e.SetPayload(m.Payload)
	for _, x := range marks {
		if m.Marks&x.mark != 0 {
			e.Flags |= x.flag
		}
	}
	if m.Left > 0 {
		due(e, s.time.Now()+int64(m.Left))
	}
	_ = s.deliver(nil, to, e) // refused, it is a dead letter here, and the asker is told
	return nil
}

// The errors that are the same on another node. Those that wrap another one of them come before it.
var codes = [...]error{
	1: ErrEnded, 2: ErrStopped, 3: ErrUnknown, 4: ErrMailboxFull, 5: ErrRestarting, 6: ErrTooLarge, 7: ErrTimeout, 8: ErrDenied,
	9: ErrDropped, 10: ErrDuplicate, 11: ErrLimit,
}

// codeOf is an error as it travels.
func codeOf(err error) (signal.Code, string) {
	if failed := (*TurnError)(nil); errors.As(err, &failed) && failed.Failure != nil {
		return signal.Failed + signal.Code(failed.Failure.Kind), failed.Failure.Reason
	}
	for code := 1; code < len(codes); code++ {
		if errors.Is(err, codes[code]) {
			return signal.Code(code), err.Error()
		}
	}
	return 0, err.Error()
}

// errorOf is the inverse of codeOf.
func (s *System) errorOf(m *signal.Signal) error {
	if kind, ok := m.Code.FailureKind(); ok {
		return &TurnError{Ref: s.refOf(m.From), Failure: &abi.Failure{Kind: kind, Reason: m.Reason}}
	}
	if m.Code == 0 || int(m.Code) >= len(codes) {
		return errors.New(m.Reason)
	}
	if err := codes[m.Code]; err.Error() == m.Reason {
		return err
	}
	return &farError{codes[m.Code], m.Reason}
}

// farError is an error of another node.
type farError struct {
	is   error
	text string
}

func (e *farError) Error() string { return e.text }
func (e *farError) Unwrap() error { return e.is }

// elsewhere is the ref of another node that the text of a ref names: wasm://other/user/a#uid.
func (s *System) elsewhere(text string) (abi.Ref, bool) {
	rest, ok := strings.CutPrefix(text, ref.Scheme)
	if !ok {
		return 0, false
	}
	name, _, _ := strings.Cut(rest, "/")
	_, uid, ok := ref.Split(name, text)
	return uid, ok && s.carrierOf(uid) != nil
}
