package abi

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestEnvelopeRoundTrip(t *testing.T) {
	headers := AppendHeader(AppendHeader(nil, "trace", "abc"), "hop", "1")
	for _, e := range []Envelope{
		{},
		{Kind: KindMessage, Time: 1_700_000_000_123_456_789, Sender: 1 << 63, Correlation: 70000, Headers: headers, Payload: []byte{1}},
		{Kind: KindTerminated, Time: -5, Sender: 23, Correlation: 24, Payload: bytes.Repeat([]byte{0xf6}, 300)},
		{Kind: KindStart, Time: -1 << 63, Sender: 255, Correlation: 256},
		{Kind: KindMessage, Time: 1_700_000_000_123_456_789, Sender: 1 << 40, Payload: []byte{1}, Sequence: 23},
		{Kind: KindMessage, Time: 1_700_000_000_123_456_789, Sender: 1 << 40, Payload: []byte{1}, Sequence: 1 << 33, Position: 24},
		{Kind: KindTimer, Sender: 1 << 40, Position: 1 << 20},
		{Kind: KindMessage, Time: 1_700_000_000_123_456_789, Sender: 1 << 40, Apart: 1 << 20},
		{Kind: KindStart, Headers: headers, Apart: 1, Sequence: 9},
	} {
		enc := AppendEnvelope(nil, &e)
		if len(enc) != EnvelopeSize(&e) {
			t.Errorf("EnvelopeSize %d, encoded %d", EnvelopeSize(&e), len(enc))
		}
		var got Envelope
		n, err := DecodeEnvelope(&got, append(enc, 0xff))
		if err != nil || n != len(enc) {
			t.Fatalf("decode: %d of %d, %v", n, len(enc), err)
		}
		if e.Payload == nil && e.Apart == 0 {
			e.Payload = []byte{}
		}
		if !reflect.DeepEqual(e, got) {
			t.Errorf("got %+v\nwant %+v", got, e)
		}
		for i := range enc {
			if _, err := DecodeEnvelope(&got, enc[:i]); err == nil {
				t.Errorf("%d of %d bytes were accepted", i, len(enc))
			}
		}
	}
}

func TestCommandRoundTrip(t *testing.T) {
	h := AppendHeader(nil, "k", "v")
	for _, c := range []struct {
		enc  []byte
		want Command
	}{
		{AppendSend(nil, 7, "", 1, FlagReply, h, []byte("x")), Command{Op: OpSend, ToRef: 7, Correlation: 1, Flags: 1, Headers: h, Payload: []byte("x")}},
		{AppendSend(nil, 0, "/user/a", 0, 0, nil, []byte("x")), Command{Op: OpSend, ToPath: []byte("/user/a"), Payload: []byte("x")}},
		{AppendForward(nil, 1<<40, ""), Command{Op: OpForward, ToRef: 1 << 40}},
		{AppendAsk(nil, 9, "", 5, 2_000_000, nil, []byte("q")), Command{Op: OpAsk, ToRef: 9, Correlation: 5, Delay: 2_000_000, Payload: []byte("q")}},
		{AppendSpawn(nil, 3, "acct", "a1", []byte{1}, nil), Command{Op: OpSpawn, Ref: 3, Type: []byte("acct"), Name: []byte("a1"), Payload: []byte{1}}},
		{AppendSpawn(nil, 3, "acct", "", []byte{1}, []byte{0xa0}), Command{Op: OpSpawn, Ref: 3, Type: []byte("acct"), Payload: []byte{1}, Options: []byte{0xa0}}},
		{AppendSpawn(nil, 3, "a type", "a name/", []byte{1}, nil), Command{Op: OpSpawn, Ref: 3, Type: []byte("a type"), Name: []byte("a name/"), Payload: []byte{1}}},
		{AppendStop(nil, 2, ""), Command{Op: OpStop, ToRef: 2}},
		{AppendWatch(nil, 2, ""), Command{Op: OpWatch, ToRef: 2}},
		{AppendUnwatch(nil, 0, "./x"), Command{Op: OpUnwatch, ToPath: []byte("./x")}},
		{AppendTimer(nil, 4, 100, 200, []byte("t")), Command{Op: OpTimer, Key: 4, Delay: 100, Period: 200, Payload: []byte("t")}},
		{AppendCancel(nil, 4), Command{Op: OpCancel, Key: 4}},
		{AppendReceiveTimeout(nil, 1_000_000), Command{Op: OpReceiveTimeout, Delay: 1_000_000}},
		{AppendStash(nil), Command{Op: OpStash}},
		{AppendUnstash(nil), Command{Op: OpUnstash}},
		{AppendFail(nil, "no"), Command{Op: OpFail, Reason: []byte("no")}},
		{AppendUnhandled(nil), Command{Op: OpUnhandled}},
		{AppendEnd(nil), Command{Op: OpEnd}},
	} {
		var got Command
		n, err := DecodeCommand(&got, append(bytes.Clone(c.enc), 0xff))
		if err != nil || n != len(c.enc) {
			t.Errorf("%v: %d of %d, %v", c.want.Op, n, len(c.enc), err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got %+v\nwant %+v", got, c.want)
		}
		for i := range c.enc {
			if _, err := DecodeCommand(&got, c.enc[:i]); err == nil {
				t.Errorf("%v: %d of %d bytes were accepted", c.want.Op, i, len(c.enc))
			}
		}
	}
}

func TestCommandRefusals(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *Error
	}{
		{"", ErrTruncated},
		{"\x80", ErrArity},
		{"\x01", ErrType},
		{"\x82\x18\x63\x01", ErrOp},
		{"\x82\x18\x20\x01", ErrOp},
		{"\x82\x13\x01", ErrOpLater},
		{"\x82\x11\x01", ErrArity},
		{"\x84\x11\x01\x40\x01", ErrType},
		{"\x87\x18\x1f\x01\x01\x01\x01\x01\x01", ErrOpLater},
		{"\x82\x18\x04\x01", ErrNotShortest},
		{"\x9f\x0a\xff", ErrIndefinite},
		{"\x82\x04\x00", ErrRef},
		{"\x82\x04\x60", ErrPath},
		{"\x82\x04\xf5", ErrType},
		{"\x82\x0a\x00", ErrArity},
		{"\x86\x00\x01\x00\x08\xf6\x40", ErrFlags},
		{"\x86\x00\x01\x00\x03\xf6\x40", ErrFlags},
		{"\x86\x02\x01\x00\x1a\x00\x0f\x42\x40\xf6\x40", ErrCorrelation},
		{"\x86\x02\x01\x01\x01\xf6\x40", ErrRange},
		{"\x82\x09\x01", ErrRange},
		{"\x86\x00\x01\x00\x00\xf6\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", ErrTruncated},
		{"\x86\x00\x63\xff\xfe\xfd\x00\x00\xf6\x40", ErrUTF8},
		{"\x86\x00\x01\x00\x00\xa2\x61a\x61b\x61a\x61c\x40", ErrDuplicate},
		{"\x86\x03\x01\x61\xff\xf6\x40\xf6", ErrUTF8},
		{"\x86\x03\x01\x61a\x79\x10\x01", ErrTruncated},
	} {
		var cmd Command
		if _, err := DecodeCommand(&cmd, []byte(c.in)); !errors.Is(err, c.want) {
			t.Errorf("% x: %v, want %v", c.in, err, c.want)
		}
	}
}

func TestEnvelopeRefusals(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *Error
	}{
		{"\x85\x00\x00\x00\x00\xf6", ErrArity},
		{"\x89\x00\x00\x00\x00\xf6\x40\x01\x01\x01", ErrArity},
		{"\x86\x0e\x00\x00\x00\xf6\x40", ErrKindLater},
		{"\x86\x18\x1f\x00\x00\x00\xf6\x40", ErrKindLater},
		{"\x86\x18\x20\x00\x00\x00\xf6\x40", ErrKind},
		{"\x87\x00\x00\x00\x00\xf6\x40\x00", ErrRange},
		{"\x88\x00\x00\x00\x00\xf6\x40\x01\x00", ErrRange},
		{"\x88\x00\x00\x00\x00\xf6\x40\x01", ErrTruncated},
		{"\xa6\x00\x00\x00\x00\xf6\x40", ErrType},
	} {
		var e Envelope
		if _, err := DecodeEnvelope(&e, []byte(c.in)); !errors.Is(err, c.want) {
			t.Errorf("% x: %v, want %v", c.in, err, c.want)
		}
	}
}

func TestDescriptionDiagrams(t *testing.T) {
	describe := func(diagrams ...Diagram) []byte {
		return AppendDescription(nil, &Description{ABI: 1, SDK: "x/1", Types: []string{"a"}, Diagrams: diagrams})
	}
	want := []Diagram{{"a", "stateDiagram-v2"}, {"b/c", ""}}
	var d Description
	if err := DecodeDescription(&d, describe(want...)); err != nil || !reflect.DeepEqual(d.Diagrams, want) {
		t.Errorf("%v, %+v", err, d)
	}
	for _, c := range []struct {
		diagrams []Diagram
		want     error
	}{
		{[]Diagram{{"a b", ""}}, ErrTypeName},
		{[]Diagram{{"a", ""}, {"a", "x"}}, ErrDuplicate},
		{[]Diagram{{"a", strings.Repeat("x", MaxDiagram+1)}}, ErrTooLong},
		{[]Diagram{{"a", strings.Repeat("x", MaxDiagram)}}, nil},
	} {
		if err := DecodeDescription(&d, describe(c.diagrams...)); !errors.Is(err, c.want) {
			t.Errorf("%.40v: %v, want %v", c.diagrams, err, c.want)
		}
	}
	many := make([]Diagram, MaxTypes+1)
	for i := range many {
		many[i].Type = strings.Repeat("x", i%100+1) + strconv.Itoa(i)
	}
	if err := DecodeDescription(&d, describe(many...)); !errors.Is(err, ErrRange) {
		t.Errorf("%d diagrams: %v", len(many), err)
	}
}

func TestDescriptionSilent(t *testing.T) {
	describe := func(silent ...string) []byte {
		return AppendDescription(nil, &Description{ABI: 1, SDK: "x/1", Types: []string{"a", "b"}, Silent: silent})
	}
	var d Description
	if err := DecodeDescription(&d, describe("b")); err != nil || !reflect.DeepEqual(d.Silent, []string{"b"}) {
		t.Errorf("%v, %+v", err, d)
	}
	if err := DecodeDescription(&d, describe()); err != nil || d.Silent != nil {
		t.Errorf("of nobody anything is known, but %v, %+v", err, d)
	}
	for _, c := range []struct {
		silent []string
		want   error
	}{
		{[]string{"b", "b"}, ErrDuplicate},
		{[]string{"b c"}, ErrTypeName},
		{make([]string, MaxTypes+1), ErrRange},
	} {
		if err := DecodeDescription(&d, describe(c.silent...)); !errors.Is(err, c.want) {
			t.Errorf("%.40v: %v, want %v", c.silent, err, c.want)
		}
	}
}

func TestDescriptionSaves(t *testing.T) {
	describe := func(saves ...string) []byte {
		return AppendDescription(nil, &Description{ABI: 1, SDK: "x/1", Types: []string{"a", "b"}, Saves: saves})
	}
	var d Description
	if err := DecodeDescription(&d, describe("b")); err != nil || !reflect.DeepEqual(d.Saves, []string{"b"}) {
		t.Errorf("%v, %+v", err, d)
	}
	if err := DecodeDescription(&d, describe()); err != nil || d.Saves != nil {
		t.Errorf("nobody saves, but %v, %+v", err, d)
	}
	for _, c := range []struct {
		saves []string
		want  error
	}{
		{[]string{"b", "b"}, ErrDuplicate},
		{[]string{"b c"}, ErrTypeName},
		{make([]string, MaxTypes+1), ErrRange},
	} {
		if err := DecodeDescription(&d, describe(c.saves...)); !errors.Is(err, c.want) {
			t.Errorf("%.40v: %v, want %v", c.saves, err, c.want)
		}
	}
}

func TestStartState(t *testing.T) {
	start := Start{Type: "a", Path: "wasm://s/user/a#1", Self: 1, Args: []byte{0xf6}, State: &State{Version: 7, Payload: []byte{1}, Own: []byte{0xa0}}}
	b := AppendStart(nil, &start)
	var got Start
	if err := DecodeStart(&got, b); err != nil || !reflect.DeepEqual(got.State, start.State) {
		t.Fatalf("%v, %+v", err, got.State)
	}
	at := bytes.Index(b, []byte("state")) + len("state")
	for name, wrong := range map[string]byte{"two items": 0x82, "a map": 0xa3} {
		c := bytes.Clone(b)
		c[at] = wrong
		if err := DecodeStart(&got, c); err == nil {
			t.Errorf("a state that is %s is read", name)
		}
	}
}

func TestDescriptionNeeds(t *testing.T) {
	enc := AppendDescription(nil, &Description{ABI: 1, SDK: "x/1", Types: []string{"a"}, Needs: []string{"b", "c"}})
	var d Description
	if err := DecodeDescription(&d, enc); err != nil || d.Lacks() != "b" {
		t.Errorf("%+v, %v", d, err)
	}
	many := make([]string, MaxNeeds+1)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	for _, c := range []struct {
		needs []string
		want  *Error
	}{{[]string{"b", "b"}, ErrDuplicate}, {[]string{""}, ErrFeature}, {many, ErrRange}} {
		enc := AppendDescription(nil, &Description{ABI: 1, SDK: "x/1", Types: []string{"a"}, Needs: c.needs})
		if err := DecodeDescription(&d, enc); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.needs, err, c.want)
		}
	}
}

func TestDocumentsRoundTrip(t *testing.T) {
	start := Start{Type: "a", Path: "wasm://s/user/a#7", Self: 7, Parent: 1, Seed: [16]byte{1, 2}, RefKey: RefKey{1, 15: 2}, Spawned: 3, Incarnation: 1, Args: []byte{0xf6}, Reason: "trap"}
	var s Start
	if err := DecodeStart(&s, AppendStart(nil, &start)); err != nil || !reflect.DeepEqual(s, start) {
		t.Errorf("start: %+v, %v", s, err)
	}
	src := AppendStart(nil, &start)
	if err := DecodeStartInPlace(&s, src); err != nil || !reflect.DeepEqual(s, start) {
		t.Errorf("in place: %+v: %v", s, err)
	}
	for i := range src {
		src[i] = 'x'
	}
	if want := strings.Repeat("x", len(start.Path)); s.Path != want || s.Type != want[:len(s.Type)] || string(s.Args) != want[:len(s.Args)] {
		t.Errorf("what was read in place does not alias its source: %+v", s)
	}
	description := Description{ABI: 1, SDK: "x/1", Types: []string{"a", "b/c"}}
	var d Description
	if err := DecodeDescription(&d, AppendDescription(nil, &description)); err != nil || !reflect.DeepEqual(d, description) {
		t.Errorf("description: %+v, %v", d, err)
	}
	failure := Failure{Kind: FailureTrap, Reason: "r", Message: "m", Stack: []string{"f", "g"}, Turn: 9, Fuel: 10, GuestStack: "s"}
	var f Failure
	if err := DecodeFailure(&f, AppendFailure(nil, &failure)); err != nil || !reflect.DeepEqual(f, failure) {
		t.Errorf("failure: %+v, %v", f, err)
	}
}

func TestStartServices(t *testing.T) {
	base := Start{Type: "a", Path: "/user/a", Self: 7, Args: []byte{0xf6}}
	plain := AppendStart(nil, &base)
	if bytes.Contains(plain, []byte("services")) {
		t.Errorf("no services, and yet % x", plain)
	}
	// with is the start payload with this behind the key.
	with := func(value func(w *Writer)) []byte {
		w := NewWriter(bytes.Clone(plain))
		w.Bytes()[0]++
		w.Text("services")
		value(w)
		return w.Bytes()
	}
	refs := func(pairs ...any) []byte {
		return with(func(w *Writer) {
			w.Map(len(pairs) / 2)
			for i := 0; i < len(pairs); i += 2 {
				w.Text(pairs[i].(string))
				w.Uint(uint64(pairs[i+1].(int)))
			}
		})
	}
	most := make([]any, 0, 2*MaxServices+2)
	for i := range MaxServices {
		most = append(most, "s"+string(rune('A'+i/26))+string(rune('a'+i%26)), i+1)
	}
	long := strings.Repeat("n", MaxServiceName)

	for _, c := range []struct {
		in   []byte
		want []Service
	}{
		{plain, nil},
		{refs(), nil},
		{refs("kv", 300), []Service{{"kv", 300}}},
		{refs("http", 2, "kv", 1), []Service{{"http", 2}, {"kv", 1}}},
		{refs("kv", 1, "sql", 3, "http", 2), []Service{{"http", 2}, {"kv", 1}, {"sql", 3}}}, // in any order
		{refs(long, 1), []Service{{long, 1}}},
	} {
		var s Start
		if err := DecodeStart(&s, c.in); err != nil || !reflect.DeepEqual(s.Services, c.want) {
			t.Errorf("% x: %v, %v, want %v", c.in, s.Services, err, c.want)
		}
		if again := AppendStart(nil, &s); len(c.want) == 1 && !bytes.Equal(again, c.in) {
			t.Errorf("% x becomes % x", c.in, again)
		}
	}
	var s Start
	if err := DecodeStart(&s, refs(most...)); err != nil || len(s.Services) != MaxServices {
		t.Errorf("%d services: %v", len(s.Services), err)
	}
	for _, c := range []struct {
		in   []byte
		want *Error
	}{
		{refs(append(most, "t", 9)...), ErrRange},
		{refs("kv", 1, "kv", 1), ErrDuplicate},
		{refs("kv", 1, "a", 2, "kv", 3), ErrDuplicate},
		{refs("kv", 0), ErrRef},
		{refs("", 1), ErrServiceName},
		{refs("a/b", 1), ErrServiceName},
		{refs(long+"n", 1), ErrServiceName},
		{refs("\xff", 1), ErrUTF8},
		{with(func(w *Writer) { w.Map(1); w.Text("kv"); w.Int(-1) }), ErrType},
		{with(func(w *Writer) { w.Map(1); w.Text("kv"); w.Text("x") }), ErrType},
		{with(func(w *Writer) { w.Map(1); w.Uint(1); w.Uint(1) }), ErrType},
		{with(func(w *Writer) { w.Array(0) }), ErrType},
		{with(func(w *Writer) { w.Null() }), ErrType},
	} {
		if err := DecodeStart(&s, c.in); !errors.Is(err, c.want) || s.Services != nil {
			t.Errorf("% x: %v, %v, want %v", c.in, s.Services, err, c.want)
		}
	}
	both := AppendStart(nil, &Start{Type: "a", Reason: "r", Services: []Service{{"kv", 1}}})
	if err := DecodeStart(&s, both); err != nil || s.Reason != "r" || len(s.Services) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A guest that was made before there were services steps over them.
func TestStartServicesCanBeIgnored(t *testing.T) {
	in := AppendStart(nil, &Start{Type: "a", Path: "p", Self: 7, Args: []byte{1}, Reason: "r", Services: []Service{{"http", 2}, {"kv", 300}}})
	r := NewReader(in)
	got := map[string]bool{}
	seen := decodeMap(r, startKeys[:10], func(key int) { got[startKeys[key]] = true; r.Skip() })
	if err := r.Done(); err != nil || len(got) != 10 || seen != 1<<10-1 {
		t.Errorf("%v, %v", got, err)
	}
}

// The key of a keyed actor may have any bytes; a guest that was made before there were keys steps over it.
func TestStartKey(t *testing.T) {
	for _, key := range []string{"ann", "a/b", "\x00\xff", strings.Repeat("k", 255)} {
		in := AppendStart(nil, &Start{Type: "a", Path: "p", Self: 7, Args: []byte{1}, Key: key})
		var s Start
		if err := DecodeStart(&s, in); err != nil || s.Key != key {
			t.Errorf("%q: %q, %v", key, s.Key, err)
		}
		if again := AppendStart(nil, &s); !bytes.Equal(again, in) {
			t.Errorf("% x becomes % x", in, again)
		}
		r := NewReader(in)
		if seen := decodeMap(r, startKeys[:11], func(int) { r.Skip() }); r.Done() != nil || seen != 1<<9-1 {
			t.Errorf("%q: %b, %v", key, seen, r.Done())
		}
	}
	if bytes.Contains(AppendStart(nil, &Start{Type: "a"}), []byte("\x63key")) {
		t.Error("an actor without a key has one")
	}
}

func TestChildRef(t *testing.T) {
	var key RefKey
	for i := range key {
		key[i] = byte(i)
	}
	// The vector of 8 bytes that the authors of SipHash publish.
	if got := SipHash(key, 0x0706050403020100); got != 0x93f5f5799a932462 {
		t.Errorf("SipHash-2-4: %#x", got)
	}
	const low = 0x93f5f5799a932462 & (1<<54 - 1)
	for _, c := range []struct {
		node uint16
		want Ref
	}{{0, low}, {1, 1<<54 | low}, {MaxNode, MaxNode<<54 | low}, {MaxNode + 3, 2<<54 | low}} {
		got := ChildRef(key, c.node, 0x0706050403020100)
		if got != c.want || got.Node() != c.node&MaxNode {
			t.Errorf("node %d: %#x of node %d, want %#x", c.node, uint64(got), got.Node(), uint64(c.want))
		}
	}
}

func TestTurnPathDoesNotAllocate(t *testing.T) {
	e := Envelope{Time: 1_700_000_000_123_456_789, Sender: 1 << 63, Payload: []byte{0x1a, 0, 0, 0, 0}}
	buf := make([]byte, 256)
	out := make([]byte, 0, 256)
	var got Envelope
	var c Command
	if n := testing.AllocsPerRun(100, func() {
		n, _ := PutEnvelope(buf, &e)
		if _, err := DecodeEnvelope(&got, buf[:n]); err != nil {
			t.Fatal(err)
		}
		out = AppendSend(out[:0], got.Sender, "", 0, 0, nil, got.Payload)
		if _, err := DecodeCommand(&c, out); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeCommand(&c, out[:5]); err == nil {
			t.Fatal("truncated command accepted")
		}
	}); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

func BenchmarkPutEnvelope(b *testing.B) {
	e := Envelope{Time: 1_700_000_000_123_456_789, Sender: 1 << 63, Payload: []byte{0x1a, 0, 0, 0, 0}}
	buf := make([]byte, 256)
	for i := 0; i < b.N; i++ {
		PutEnvelope(buf, &e)
	}
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	enc := AppendEnvelope(nil, &Envelope{Time: 1_700_000_000_123_456_789, Sender: 1 << 63, Payload: []byte{0x1a, 0, 0, 0, 0}})
	var e Envelope
	for i := 0; i < b.N; i++ {
		DecodeEnvelope(&e, enc)
	}
}

func BenchmarkDecodeSend(b *testing.B) {
	enc := AppendSend(nil, 1<<63, "", 0, 0, nil, []byte{0x1a, 0, 0, 0, 0})
	var c Command
	for i := 0; i < b.N; i++ {
		DecodeCommand(&c, enc)
	}
}

// An exit with code 0 is a failure as well, and its reason says how an actor ends.
func TestExitReason(t *testing.T) {
	if got := ExitReason(3); got != "exit code 3" {
		t.Error(got)
	}
	if got := ExitReason(0); !strings.HasPrefix(got, "exit code 0: ") || !strings.Contains(got, "command stop") {
		t.Error(got)
	}
}
