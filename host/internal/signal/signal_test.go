package signal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// one signal of each kind.
var each = []Signal{
	{Kind: Watch, From: 7, Once: true},
	{Kind: Unwatch, From: 1<<64 - 1},
	{Kind: Terminated, From: 7, Reason: "stopped"},
	{Kind: Unanswered, From: 7, Correlation: 1 << 63, Reason: "höher", Code: Failed + Code(abi.FailureTrap)},
	{Kind: Unanswered, Correlation: 1, Code: 3},
	{Kind: Terminated, From: 7, Reason: "stopped", Path: "wasm://a@2/user/ö"},
	{Kind: Unanswered, From: 7, Correlation: 1, Code: Failed + Code(abi.FailureTrap), Path: strings.Repeat("x", MaxPath)},
	{Kind: Delegate, From: 7, Other: 8, Correlation: 9},
	{Kind: Observe, From: 7, Correlation: 9},
	{Kind: Observe, From: 7},
	{Kind: Abandoned},
	{Kind: Stop, Reason: "idle"},
	{Kind: Kill},
	{Kind: Strayed, From: 7},
}

func TestEachSignalComesBackAsItWas(t *testing.T) {
	seen := map[Kind]bool{}
	for _, s := range each {
		seen[s.Kind] = true
		got, err := Decode(Append(nil, &s))
		if err != nil || got != s {
			t.Errorf("%v: %+v, %v, want %+v", s.Kind, got, err, s)
		}
		if s.Kind.String() == "" {
			t.Errorf("%d has no name", s.Kind)
		}
	}
	if len(seen) != int(kinds)-1 {
		t.Errorf("%d of %d kinds tried", len(seen), kinds-1)
	}
	if kinds.String() != "" {
		t.Error("what is no kind has a name")
	}
}

func TestSignalsThatAreNotWholeAreRefused(t *testing.T) {
	for name, s := range map[string]Signal{
		"no kind":                          {From: 1},
		"an unknown kind":                  {Kind: kinds, From: 1},
		"a watch by nobody":                {Kind: Watch},
		"a watch about an ask":             {Kind: Watch, From: 1, Correlation: 1},
		"an end with another actor":        {Kind: Terminated, From: 1, Other: 2},
		"an end of nobody":                 {Kind: Terminated, Reason: "stopped"},
		"no answer to no ask":              {Kind: Unanswered, From: 1},
		"delegation to nobody":             {Kind: Delegate, From: 1, Correlation: 1},
		"an observer of another kind":      {Kind: Observe, From: 1, Once: true},
		"a code where there is no error":   {Kind: Stop, Code: 1},
		"a reason where nothing has ended": {Kind: Unwatch, From: 1, Reason: "x"},
		"a path where nothing has ended":   {Kind: Watch, From: 1, Path: "x"},
		"a path of who has not failed":     {Kind: Unanswered, From: 1, Correlation: 1, Code: 3, Path: "x"},
		"a path of nobody":                 {Kind: Unanswered, Correlation: 1, Code: Failed, Path: "x"},
		"an abandoned ask of somebody":     {Kind: Abandoned, From: 1},
	} {
		if got, err := Decode(Append(nil, &s)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	whole := Append(nil, &Signal{Kind: Stop, Reason: strings.Repeat("x", MaxReason)})
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"a kind only":       {byte(Kill)},
		"an unknown flag":   {byte(Kill), 4, 0, 0, 0, 0},
		"a path of 0 bytes": {byte(Terminated), 2, 0, 7, 0, 0, 0},
		"half a path":       {byte(Terminated), 2, 0, 7, 0, 0, 2, 'x'},
		"a padded path":     {byte(Terminated), 2, 0, 7, 0, 0, 0x81, 0, 'x'},
		"a path, no text":   {byte(Terminated), 2, 0, 7, 0, 0, 1, 0xff},
		"a path too long":   append([]byte{byte(Terminated), 2, 0, 7, 0, 0, 0x81, 8}, make([]byte, MaxPath+1)...),
		"half a ref":        {byte(Unwatch), 0, 0, 0x80},
		"a padded number":   {byte(Kill), 0, 0, 0x80, 0, 0, 0},
		"a reason too long": append(bytes.Clone(whole), 'x'),
		"no text":           append(Append(nil, &Signal{Kind: Stop}), 0xff),
	} {
		if got, err := Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReasonsAreCut(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", MaxReason+1):       strings.Repeat("x", MaxReason),
		strings.Repeat("x", MaxReason-1) + "ö": strings.Repeat("x", MaxReason-1),
		"a\xffb":                               "a",
		"�":                                    "�",
	} {
		s, err := Decode(Append(nil, &Signal{Kind: Stop, Reason: text}))
		if err != nil || s.Reason != want {
			t.Errorf("%q, %v", s.Reason, err)
		}
	}
}

// What cannot be encoded of a path is left out: half a path would be that of another actor.
func TestPathsAreLeftOut(t *testing.T) {
	for _, path := range []string{strings.Repeat("x", MaxPath+1), "a\xffb"} {
		s, err := Decode(Append(nil, &Signal{Kind: Terminated, From: 7, Path: path, Reason: "stopped"}))
		if err != nil || s.Path != "" || s.Reason != "stopped" {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestTheErrorItselfSaysWhy(t *testing.T) {
	if s := (Signal{Kind: Unanswered, Reason: "a", Err: errors.New("b")}); s.Text() != "b" {
		t.Error(s.Text())
	}
	if s := (Signal{Kind: Unanswered, Reason: "a"}); s.Text() != "a" {
		t.Error(s.Text())
	}
	if k, ok := (Failed + Code(abi.FailureFuel)).FailureKind(); !ok || k != abi.FailureFuel {
		t.Error(k, ok)
	}
	if _, ok := Code(3).FailureKind(); ok {
		t.Error("another code is a failure")
	}
}

// Whatever comes in, what is accepted is written the same way.
func FuzzDecode(f *testing.F) {
	for _, s := range each {
		f.Add(Append(nil, &s))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			return
		}
		if again := Append(nil, &s); !bytes.Equal(again, b) {
			t.Errorf("%x is %+v, which is %x", b, s, again)
		}
	})
}
