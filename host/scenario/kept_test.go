package scenario

import (
	"strings"
	"testing"
)

// What is sent to the path of a key starts its actor if it is not there, and faults are about who a
// message is for, whatever names the key; an actor that is not there is not there for all else.
func TestKeptActors(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	for _, r := range plays(t, st, b, `
scenarios:
- name: sends and asks
  steps:
  - {expect-state: carts/ann, alive: false}
  - {ask: carts/ann, message: 5, answer: 5}
  - {expect-state: carts/ann, alive: true}
  - {advance: 1s}
  - {expect-stopped: carts/ann, reason: idle, within: 0}
  - {expect-state: carts/ann, alive: false}
  - {send: carts/ann, message: 6, from: me}
  - {expect: me, message: 6, from: carts/ann}
  - {advance: 1s}
  - {expect-state: carts/ann, alive: false}
  - {send: carts/ann, message: 0}
  - {expect-restart: carts/ann}
- name: what is dropped
  steps:
  - {drop: carts/ann, messages: 3}
  - {send: carts/ann, message: 1, from: me}
  - {send: carts/bob, message: 2, from: me}
  - {expect: me, message: 2}
  - {send: carts, message: 3, headers: {wasmactors.key: ann}, from: me}
  - {send: carts, message: {cart: ann}, from: me}
  - {expect-state: carts/ann, alive: false}
  - {send: carts, message: {cart: bob}, from: me}
  - {expect: me, message: {cart: bob}}
  - {send: carts/ann, message: 4, from: me}
  - {expect: me, message: 4}
- name: what is delayed and duplicated
  steps:
  - {delay: carts/ann, by: 5s}
  - {duplicate: carts/bob}
  - {send: carts/ann, message: 1, from: me}
  - {send: carts/bob, message: 2, from: me}
  - {expect: me, message: 2}
  - {expect: me, message: 2}
  - {expect-none: me, for: 4999ms}
  - {expect: me, message: 1, within: 1ms}
- name: all keys
  steps:
  - {drop: carts}
  - {send: carts/ann, message: 1, from: me}
  - {send: carts/ann, message: 2, from: me}
  - {expect: me, message: 2}
`) {
		holds(t, r)
	}
	for steps, want := range map[string]string{
		"- {ask: carts/ann, message: 5}\n  - {advance: 1s}\n  - {crash: carts/ann}":  "there is no actor /user/carts/ann at this time",
		"- {send: carts/ann, message: !ref /user/carts/bob}":                         "there is no actor /user/carts/bob at this time",
		"- {send: carts/ann/below, message: 1}":                                      "there is no actor /user/carts/ann/below at this time",
		"- {ask: carts/a~b, message: 1}":                                             "there is no answer but an error",
		"- {ask: 'carts/a:b', message: 1}":                                           "there is no actor /user/carts/a:b at this time",
		"- {delay: carts/ann, by: 4s}\n  - {ask: carts/ann, message: 1, within: 1s}": "no answer from /user/carts/ann within 1s",
	} {
		r := plays(t, st, b, "scenarios:\n- name: it\n  steps:\n  "+steps+"\n")[0]
		if r.Failure == nil || r.Failure.What != want {
			t.Errorf("%s: %+v, want %s", steps, r.Failure, want)
		}
	}
	f, err := Parse("it_test.yaml", []byte("scenarios:\n- name: it\n  steps:\n  - {crash: carts/ann, on-message: 1}\n"))
	if err == nil {
		err = f.Fits(b.Manifest)
	}
	if err == nil || !strings.Contains(err.Error(), "on-message is not for the actor of a key") {
		t.Error(err)
	}
}
