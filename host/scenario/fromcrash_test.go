package scenario

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/blackbox"
)

// A message of a crash file is in the scenario what it was.
func TestMessagesOfCrashFiles(t *testing.T) {
	canonical, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		nil, true, uint64(7), int64(-7), uint64(math.MaxUint64), int64(math.MinInt64), 1.5, 1e300, -0.25, 2.0, "", "text", "yes", "null", "5", "a: b\n\x1b'\"#", "!ref x", []byte{}, []byte("\x00\xff"),
		[]any{uint64(1), "two", []any{}}, map[string]any{"add": int64(-1), "yes": map[string]any{"": []byte("x")}, "5": nil},
	} {
		want, err := canonical.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		n, err := messageOf(want)
		if err != nil {
			t.Errorf("%#v: %v", v, err)
			continue
		}
		text, err := yaml.Marshal(map[string]*yaml.Node{"message": n})
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := valueOf(doc.Content[0].Content[1], nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if b, err := canonical.Marshal(got); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%#v becomes %#v (%v), by %s", v, got, err, text)
		}
	}
	for what, b := range map[string][]byte{
		"empty": nil, "no text": {0xa1, 0x01, 0x02}, "no number": {0xf9, 0x7e, 0x00}, "kind": {0xc2, 0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0}, "EOF": {0x82, 0x01},
	} {
		if _, err := messageOf(b); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

// What cannot be a scenario is said.
func TestCrashFilesThatAreNoScenario(t *testing.T) {
	for want, f := range map[string]*blackbox.File{
		"not an actor below": {Path: "wasm://a/system/x#1"}, "not an actor": {}, "a known secret": {Path: "wasm://a/user/x#1", Inexact: "it has handled a known secret"},
		"cannot send": {Path: "wasm://a/user/x#1"},
	} {
		if _, err := FromCrash(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
