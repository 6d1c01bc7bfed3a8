//go:build !wasip1

// Package fake has the host's services for tests of guests: kv, sql, http and schedule, in the memory of a
// [actortest.World] and in its virtual time.
//
//	w := actortest.NewWorld(t)
//	store := fake.NewKV(w)
//	store.Put("greeting", []byte("hello"))
//	counter := w.Spawn("counter")
//	...
//	if n := store.Count("visits"); n != 1 { ... }
//
// A fake is made before the actors that use it, and all of them are granted it, see [actortest.World.Serve]. It answers at
// once unless it is told otherwise by [Service.Delay] or [Service.Fail]. It has no quotas and no limits of rates: what the real
// service refuses because of them is answered by Fail.
package fake

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Service is what all fakes have. Its methods may be called between messages and by functions that a fake calls.
type Service struct {
	*actortest.Fake
	w     *actortest.World
	delay time.Duration
	fail  func(*actortest.Call) *Fault
}

// Fault is what goes wrong with a request. The zero value answers with the code failed.
type Fault struct {
	Code   service.Code // "": service.Failed
	Text   string
	Done   bool // what was requested happens nevertheless
	Silent bool // and there is no answer at all, so that the asker's time ends
}

// Delay has answers come so much later, in virtual time; 0: at once. What is requested happens when the request comes.
func (s *Service) Delay(d time.Duration) { s.delay = d }

// Fail has a function decide about each request before it is carried out; nil from it: nothing goes wrong. A nil function
// ends that.
func (s *Service) Fail(f func(*actortest.Call) *Fault) { s.fail = f }

// FailOnce has the next request fail with a code.
func (s *Service) FailOnce(code service.Code) {
	s.fail = func(*actortest.Call) *Fault {
		s.fail = nil
		return &Fault{Code: code}
	}
}

// begin makes the fake of a service. do carries out a request, and returns its answer or what is wrong with it.
func (s *Service) begin(w *actortest.World, name string, do func(c *actortest.Call) (actor.Encoder, *service.Error)) {
	s.w = w
	s.Fake = w.Serve(name, func(c *actortest.Call) { s.request(c, do) })
}

func (s *Service) request(c *actortest.Call, do func(c *actortest.Call) (actor.Encoder, *service.Error)) {
	var fault *Fault
	if s.fail != nil {
		fault = s.fail(c)
	}
	if fault == nil || fault.Done {
		answer, err := do(c)
		if fault == nil {
			s.answer(c, answer, err)
			return
		}
	}
	if !fault.Silent {
		code, text := fault.Code, fault.Text
		if code == "" {
			code = service.Failed
		}
		if text == "" {
			text = "as the test wants it"
		}
		s.answer(c, nil, &service.Error{Code: code, Text: text})
	}
}

// answer answers after the delay, with what is so now.
func (s *Service) answer(c *actortest.Call, v actor.Encoder, err *service.Error) {
	then := func() { c.Fail(err.Code, err.Text) }
	if err == nil {
		raw := encoded(v)
		then = func() { c.Answer(raw) }
	}
	if s.delay <= 0 {
		then()
		return
	}
	s.w.After(s.delay, then)
}

func encoded(v actor.Encoder) actor.Raw {
	w := abi.NewWriter(nil)
	if v == nil {
		w.Null()
	} else {
		v.MarshalCBOR(w)
	}
	return actor.Raw(w.Bytes())
}

// wrong is an error of the request.
func wrong(code service.Code, text string) *service.Error {
	return &service.Error{Code: code, Text: text}
}

// fields reads the arguments of a request, of which all keys must be known.
func fields(r *abi.Reader, field func(key string, r *abi.Reader) bool) *service.Error {
	if r.Peek() == abi.TypeNull {
		r.Null()
	} else {
		for range r.Map() {
			key := r.Text()
			if !r.OK() {
				break
			}
			if !field(key, r) {
				return wrong(service.BadRequest, "unknown key "+key)
			}
		}
	}
	if err := r.Err(); err != nil {
		return wrong(service.BadRequest, "the arguments: "+err.Error())
	}
	return nil
}
