package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/plainjson"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Mail is a message for all actors that are selected.
type Mail struct {
	To      string          `json:"to,omitempty"` // the name of a top-level actor, or a path, also with patterns; or
	Select  observe.Select  `json:"select,omitzero"`
	Message json.RawMessage `json:"message"` // any JSON
	DryRun  bool            `json:"dry_run,omitempty"`
}

// Question is a message for one actor that must be answered.
type Question struct {
	To        string          `json:"to"` // the name of a top-level actor, or a path
	Message   json.RawMessage `json:"message"`
	TimeoutNS int64           `json:"timeout_ns,omitempty"` // 0 is a minute; an hour at most
}

// Answer is the outcome of a question.
type Answer struct {
	Version int             `json:"version"`
	To      string          `json:"to"`             // path
	Kind    string          `json:"kind"`           // reply, error, failed or timeout
	From    string          `json:"from,omitempty"` // path of the actor that has answered
	Reply   json.RawMessage `json:"reply,omitempty"`
	Reason  string          `json:"reason,omitempty"` // why there is no reply
	TookNS  int64           `json:"took_ns"`
}

// payload is a message as the guest gets it.
func payload(message json.RawMessage) (host.Raw, error) {
	if message == nil {
		return nil, bad("bad_body", `"message" is missing`, "any JSON will do, null too")
	}
	v, err := plainjson.Parse(message)
	if err != nil {
		return nil, bad("bad_message", "the message: "+err.Error(), "")
	}
	raw, err := host.Encode(v)
	if err != nil {
		return nil, bad("bad_message", "the message: "+err.Error(), "")
	}
	return raw, nil
}

// pathOf lets a bare name stand for a top-level actor.
func pathOf(to string) string {
	if to == "" || strings.HasPrefix(to, "/") || strings.Contains(to, "://") {
		return to
	}
	return "/user/" + to
}

// mostReceivers bounds those that one message is sent to.
const mostReceivers = 10_000

func (s *Server) send(c *call) error {
	var m Mail
	if err := c.decode(&m); err != nil {
		return err
	}
	raw, err := payload(m.Message)
	if err != nil {
		return err
	}
	to, err := s.receivers(m)
	if err != nil {
		return err
	}
	out := observe.Outcome{Version: observe.Version, Verb: "send", DryRun: m.DryRun, Total: len(to), Changed: []observe.Change{}}
	for _, x := range to {
		change := observe.Change{Path: x.Path(), Did: "sent"}
		if ref, there := s.at().sys.Find(x); there {
			change.Ref = fmt.Sprintf("%016x", uint64(ref.UID()))
		}
		if !m.DryRun {
			if err := s.at().sys.TryTell(x.To, x.Message(raw)); err != nil {
				change.Did, change.Error = "", printable.Line(bare(err), maxReason)
			}
		}
		if change.Error == "" {
			out.Done++
		} else {
			out.Failed++
		}
		out.Changed = append(out.Changed, change)
	}
	return c.json(out)
}

// receivers are the actors that a message is for: for a path the actor there, even if a keeper has to start it;
// for patterns and selections, those that exist.
func (s *Server) receivers(m Mail) ([]host.Address, error) {
	switch {
	case m.To != "" && !m.Select.Empty():
		return nil, bad("bad_body", `"to" and "select" exclude each other`, "")
	case m.To != "" && !strings.ContainsAny(m.To, "*?"):
		one, err := s.at().sys.AddressOf(pathOf(m.To))
		return []host.Address{one}, err
	case m.To != "":
		m.Select.Paths = []string{pathOf(m.To)}
	}
	if err := chosen(m.Select); err != nil {
		return nil, err
	}
	var to []host.Address
	for offset := 0; ; offset += observe.MaxLimit {
		page, err := s.at().model.Actors(observe.Query{Select: m.Select, Offset: offset, Limit: observe.MaxLimit, Now: true})
		if err != nil {
			return nil, err
		}
		if page.Total > mostReceivers {
			return nil, bad("too_many", fmt.Sprintf("%d actors are chosen; a message goes to %d at most", page.Total, mostReceivers), "")
		}
		for _, a := range page.Actors {
			path := a.Path
			if len(m.Select.Refs) > 0 { // this incarnation and no other
				uid, _ := strconv.ParseUint(a.Ref, 16, 64)
				path = fmt.Sprintf("%s#%d", path, uid)
			}
			one, err := s.at().sys.AddressOf(path)
			if _, there := s.at().sys.Find(one); err == nil && there { // it may have ended meanwhile
				to = append(to, one)
			}
		}
		if offset+observe.MaxLimit >= page.Total {
			break
		}
	}
	if len(to) == 0 {
		return nil, fmt.Errorf("%w: no actor matches the selection", host.ErrUnknown)
	}
	return to, nil
}

func (s *Server) ask(c *call) error {
	var q Question
	if err := c.decode(&q); err != nil {
		return err
	}
	raw, err := payload(q.Message)
	if err != nil {
		return err
	}
	wait := time.Duration(q.TimeoutNS)
	switch {
	case q.TimeoutNS < 0 || wait > s.cfg.bounds.ask:
		return bad("bad_body", fmt.Sprintf("timeout_ns is from 0 to %d", s.cfg.bounds.ask.Nanoseconds()), "")
	case q.TimeoutNS == 0:
		wait = time.Minute
	}
	if q.To == "" {
		return bad("bad_body", `"to" is missing`, "")
	}
	to, err := s.at().sys.AddressOf(pathOf(q.To))
	if err != nil {
		return err
	}
	began := now()
	p, err := s.at().sys.TryRequest(to.To, to.Message(raw))
	if err != nil {
		return err
	}
	_ = c.rc.SetWriteDeadline(began.Add(wait + s.cfg.bounds.readTime))
	a := Answer{Version: observe.Version, To: to.Path()}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case m, ok := <-p.Answer():
		m.Payload = s.at().sys.Redaction().Bytes(m.Payload)
		a.from(m, ok)
		a.Reason = s.at().sys.Redaction().Text(a.Reason)
	case <-t.C:
		p.Cancel()
		a.Kind, a.Reason = "timeout", "no answer within "+wait.String()
	case <-s.at().sys.Terminated():
		p.Cancel()
		a.Kind, a.Reason = "failed", "the bundle has ended"
	case <-c.r.Context().Done():
		p.Cancel()
		return c.r.Context().Err()
	}
	a.TookNS = now().Sub(began).Nanoseconds()
	return c.json(a)
}

// from copies the outcome of an ask.
func (a *Answer) from(m host.Message, ok bool) {
	err := m.Err()
	var negative *host.ReplyError
	switch {
	case !ok:
		a.Kind, a.Reason = "failed", "no answer will come"
	case errors.As(err, &negative):
		a.Kind, a.From, a.Reason = "error", m.Sender.Path(), printable.Line(negative.Reason, maxReason)
	case errors.Is(err, host.ErrTimeout):
		a.Kind, a.Reason = "timeout", bare(err)
	case err != nil:
		a.Kind, a.Reason = "failed", printable.Line(bare(err), maxReason)
	default:
		reply, err := host.ToJSON(m.Payload)
		if err != nil {
			a.Kind, a.Reason = "failed", printable.Line(err.Error(), maxReason)
			return
		}
		a.Kind, a.From, a.Reply = "reply", m.Sender.Path(), reply
	}
}
