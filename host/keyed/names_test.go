package keyed_test

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A message with headers gets the key's beside its own; that key counts.
func TestForKeepsOtherHeaders(t *testing.T) {
	h := keyed.For("a", host.Headed{Value: "x", Headers: map[string]string{"other": "o", keyed.HeaderKey: "b"}})
	if h.Value != "x" || len(h.Headers) != 2 || h.Headers["other"] != "o" || h.Headers[keyed.HeaderKey] != "a" {
		t.Errorf("%+v", h)
	}
}

// The borders of what a name is made of.
func TestBordersOfNames(t *testing.T) {
	for key, want := range map[string]string{
		"AZaz09_.-": "AZaz09_.-", "@[`{/:": "~40~5B~60~7B~2F~3A", ",^": "~2C~5E",
		strings.Repeat("x", abi.MaxName): strings.Repeat("x", abi.MaxName), strings.Repeat("/", abi.MaxName/3): strings.Repeat("~2F", abi.MaxName/3),
	} {
		if got, err := keyed.Name(key); got != want || err != nil {
			t.Errorf("%q: %q, %v", key, got, err)
		}
		if again, ok := keyed.Key(want); !ok || again != key {
			t.Errorf("%q: %q, %v", want, again, ok)
		}
	}
}

// A key that is the name of another one's actor is a key of its own.
func TestAKeyLikeANameIsAnother(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.asks(r, keyed.For("a/b", "who"), "a~2Fb 1")
	w.asks(r, keyed.For("a~2Fb", "who"), "a~7E2Fb 1")
	w.asks(r, keyed.For("a/b", "who"), "a~2Fb 2")
}

// A field is found behind keys that are no texts, and numbers are decimal.
func TestFieldsOfMaps(t *testing.T) {
	w := newWorld(t)
	c := keyed.New(w.worker()).WithField("id")
	for _, m := range []struct {
		payload string
		want    string
	}{
		{"\xa1\x62id\x18\x7b", "123"},           // {"id": 123}
		{"\xa1\x62id\x38\x7b", "-124"},          // {"id": -124}
		{"\xa2\x01\x61a\x62id\x61b", "b"},       // {1: "a", "id": "b"}
		{"\xa2\x01\xa1\x01\x02\x62id\x03", "3"}, // {1: {1: 2}, "id": 3}
		{"\xa3\x01\x01\x02\x02\x62id\x03", "3"}, // {1: 1, 2: 2, "id": 3}
		{"\xa2\x62ie\x01\x62id\x02", "2"},       // {"ie": 1, "id": 2}
	} {
		if got, err := c.NameOf(host.Message{Payload: []byte(m.payload)}); got != m.want || err != nil {
			t.Errorf("% x: %q, %v", m.payload, got, err)
		}
	}
}
