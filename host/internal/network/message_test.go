package network

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

var headers = abi.AppendHeader(abi.AppendHeader(nil, "a", "1"), "b", "2")

var messages = []Message{
	{Kind: abi.KindMessage, Payload: []byte{0xf6}},
	{Kind: abi.KindMessage, Marks: NoInfluence | Suppressed | Lasting, Left: 5, Sender: 1 << 60, Correlation: 9, SenderPath: "wasm://a/user/ö", Headers: headers, Payload: []byte{1}},
	{Kind: abi.KindReply, Marks: OfHost, Sender: 3, Correlation: 1, Payload: []byte{0xf6}},
	{Kind: abi.KindReplyError, Sender: 3, Correlation: 1, Payload: []byte{0x61, 'x'}},
	{Kind: abi.KindMessage, Marks: Poison | ForGood},
	{Kind: abi.KindMessage, Marks: Identify, Sender: 4, Correlation: 1},
	{Kind: abi.KindMessage, Marks: Identify, Sender: 4, Correlation: 1, Below: "user/a", Headers: headers},
	{Kind: abi.KindMessage, Marks: Bound, Sender: 4, Correlation: 1, Via: 5, Below: "k~20", Payload: []byte{1}},
}

func TestEachFrameComesBackAsItWas(t *testing.T) {
	for _, m := range messages {
		got, s, err := Decode(AppendMessage(nil, &m))
		if err != nil || s != nil || !m.Fits() || m.Size() != len(AppendMessage(nil, &m)) {
			t.Fatalf("%+v: %v", m, err)
		}
		if len(got.Headers) == 0 {
			got.Headers = nil
		}
		if len(got.Payload) == 0 {
			got.Payload = nil
		}
		if !reflect.DeepEqual(*got, m) {
			t.Errorf("%+v, want %+v", *got, m)
		}
	}
	want := signal.Signal{Kind: signal.Terminated, From: 7, Reason: "stopped"}
	if m, s, err := Decode(AppendSignal(nil, &want)); m != nil || err != nil || *s != want {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWhatNoHostSendsIsRefused(t *testing.T) {
	for name, m := range map[string]Message{
		"a timer":                    {Kind: abi.KindTimer, Payload: []byte{0xf6}},
		"an end":                     {Kind: abi.KindTerminated, Payload: []byte{0xf6}},
		"a message of the host":      {Kind: abi.KindMessage, Marks: OfHost, Payload: []byte{0xf6}},
		"an answer that kills":       {Kind: abi.KindReply, Marks: Kill},
		"for good, without a stop":   {Kind: abi.KindMessage, Marks: ForGood},
		"a stop that says something": {Kind: abi.KindMessage, Marks: Poison, Payload: []byte{1}},
		"no payload":                 {Kind: abi.KindMessage},
		"half a payload":             {Kind: abi.KindMessage, Payload: []byte{0x62, 'x'}},
		"headers that are a number":  {Kind: abi.KindMessage, Headers: []byte{1}, Payload: []byte{1}},
		"headers of numbers":         {Kind: abi.KindMessage, Headers: []byte{0xa1, 1, 1}, Payload: []byte{1}},
		"headers and more":           {Kind: abi.KindMessage, Headers: append(bytes.Clone(headers), 1), Payload: []byte{1}},
		"an unknown mark":            {Kind: abi.KindMessage, Marks: allMarks + 1, Payload: []byte{1}},
		"a child that is no text":    {Kind: abi.KindMessage, Below: "\n", Payload: []byte{1}},
		"too much time":              {Kind: abi.KindMessage, Left: 1 << 63, Payload: []byte{1}},
		"a path that is no text":     {Kind: abi.KindMessage, SenderPath: "\xff", Payload: []byte{1}},
	} {
		if got, _, err := Decode(AppendMessage(nil, &m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no frame": {3}, "a message without an end": {1, byte(abi.KindMessage)},
		"a path beyond the end": {1, byte(abi.KindMessage), 0, 0, 0, 0, 0, 9, 0, 0, 1}, "a padded number": {1, byte(abi.KindMessage), 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 1},
		"no signal": {2, 0},
	} {
		if _, _, err := Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (&Message{Payload: make([]byte, MaxPayload+1)}).Fits() {
		t.Error("what is too large fits")
	}
}

// A path is that of an actor of the node that the signal is about: a node can make up no other.
func TestPathsOfSignals(t *testing.T) {
	of := abi.Ref(2)<<54 | 1
	for path, want := range map[string]bool{
		"wasm://b@2/user/y":        true,
		"wasm://b@2/user/y/~20.a":  true,
		"wasm://b@3/user/y":        false,
		"wasm://b/user/y":          false,
		"wasm://b@2/":              false,
		"wasm://b@2/user//y":       false,
		"wasm://b@2/user/y#" + "9": false,
		"wasm://b@2/user/a b":      false,
		"wasm://b@2/user/..":       false,
		"wasm://b c@2/user/y":      false,
		"/user/y":                  false,
	} {
		_, s, err := Decode(AppendSignal(nil, &signal.Signal{Kind: signal.Terminated, From: of, Path: path}))
		if got := err == nil && s.Path == path; got != want {
			t.Errorf("%q: %v, %v", path, s, err)
		}
	}
}

// Whatever arrives, what is accepted is written the same way.
func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		f.Add(AppendMessage(nil, &m))
	}
	f.Add(AppendSignal(nil, &signal.Signal{Kind: signal.Kill}))
	f.Add(AppendSignal(nil, &signal.Signal{Kind: signal.Terminated, From: 2<<54 | 1, Path: "wasm://b@2/user/y", Reason: "stopped"}))
	f.Add(AppendSignal(nil, &signal.Signal{Kind: signal.Unanswered, From: 2<<54 | 1, Correlation: 5, Code: signal.Failed, Path: "wasm://b@2/user/y"}))
	var d Decoder
	f.Fuzz(func(t *testing.T, b []byte) {
		m, s, err := Decode(b)
		if m2, s2, err2 := d.Decode(b); !reflect.DeepEqual(m, m2) || !reflect.DeepEqual(s, s2) || err != err2 {
			t.Errorf("%x is %+v %+v, and %+v %+v", b, m, s, m2, s2)
		}
		var again []byte
		switch {
		case err != nil:
			return
		case m != nil:
			if again = AppendMessage(nil, m); m.Size() != len(again) {
				t.Errorf("%d bytes, want %d", m.Size(), len(again))
			}
		default:
			again = AppendSignal(nil, s)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x is written %x", b, again)
		}
	})
}
