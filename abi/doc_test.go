package abi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const page = "../docs/abi.md"

var (
	docBlock  = regexp.MustCompile("(?sm)^```hex ([a-z_]+) ?([a-z_]*)\n(.*?)^```")
	docNoise  = regexp.MustCompile(`(?m);.*$|\s+`)
	docVector = regexp.MustCompile("(?m)^\\| `([0-9a-f]{32})` \\| (\\d+) \\| (\\d+) \\| `0x([0-9a-f]{16})` \\|$")
)

func readPage(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile(page)
	if os.IsNotExist(err) {
		t.Skip("the page is not here: the module stands alone")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// Every example of the page must be what it says, and be what this package would
// have written.
func TestPageExamples(t *testing.T) {
	ops := map[Op]bool{}
	seen := map[string]bool{}
	for _, m := range docBlock.FindAllStringSubmatch(readPage(t), -1) {
		raw, err := hex.DecodeString(docNoise.ReplaceAllString(m[3], ""))
		if err != nil {
			t.Errorf("%s %s: %v", m[1], m[2], err)
			continue
		}
		seen[m[1]] = true
		again := raw
		switch m[1] {
		case "envelope":
			var e Envelope
			n, err := DecodeEnvelope(&e, raw)
			if err != nil || n != len(raw) || e.Kind.String() != m[2] {
				t.Errorf("envelope %s: %d of %d bytes, kind %v, %v", m[2], n, len(raw), e.Kind, err)
			}
			again = AppendEnvelope(nil, &e)
		case "command":
			var c Command
			n, err := DecodeCommand(&c, raw)
			if err != nil || n != len(raw) || c.Op.String() != m[2] {
				t.Errorf("command %s: %d of %d bytes, operation %v, %v", m[2], n, len(raw), c.Op, err)
			}
			ops[c.Op] = true
			again = appendCommand(nil, &c)
		case "description":
			var d Description
			if err := DecodeDescription(&d, raw); err != nil {
				t.Error(err)
			}
			again = AppendDescription(nil, &d)
		case "start":
			var s Start
			if err := DecodeStart(&s, raw); err != nil {
				t.Error(err)
			}
			again = AppendStart(nil, &s)
		case "failure":
			var f Failure
			if err := DecodeFailure(&f, raw); err != nil || f.Error() != "guest_error: bad" {
				t.Error(&f, err)
			}
		case "identities":
			listed, total, err := DecodeIdentities(raw)
			if err != nil {
				t.Error(err)
			}
			again = AppendIdentities(nil, total, listed)
		case "control":
			if len(raw) != ControlSize || binary.LittleEndian.Uint32(raw) != Version {
				t.Errorf("control block % x", raw)
			}
		default:
			t.Errorf("an example of %q", m[1])
		}
		if !bytes.Equal(again, raw) {
			t.Errorf("%s %s: the page has % x\nwritten here: % x", m[1], m[2], raw, again)
		}
	}
	for _, what := range []string{"envelope", "command", "description", "start", "failure", "identities", "control"} {
		if !seen[what] {
			t.Errorf("no example of %s", what)
		}
	}
	for o := range maxOp + 1 {
		if !ops[o] {
			t.Errorf("no example of %v", o)
		}
	}
}

// appendCommand writes a command from its decoded form.
func appendCommand(dst []byte, c *Command) []byte {
	to, path := c.ToRef, string(c.ToPath)
	switch c.Op {
	case OpSend:
		return AppendSend(dst, to, path, c.Correlation, c.Flags, c.Headers, c.Payload)
	case OpForward:
		return AppendForward(dst, to, path)
	case OpAsk:
		return AppendAsk(dst, to, path, c.Correlation, c.Delay, c.Headers, c.Payload)
	case OpSpawn:
		return AppendSpawn(dst, c.Ref, string(c.Type), string(c.Name), c.Payload, c.Options)
	case OpStop:
		return AppendStop(dst, to, path)
	case OpWatch:
		return AppendWatch(dst, to, path)
	case OpUnwatch:
		return AppendUnwatch(dst, to, path)
	case OpTimer:
		return AppendTimer(dst, c.Key, c.Delay, c.Period, c.Payload)
	case OpCancel:
		return AppendCancel(dst, c.Key)
	case OpReceiveTimeout:
		return AppendReceiveTimeout(dst, c.Delay)
	case OpStash:
		return AppendStash(dst)
	case OpUnstash:
		return AppendUnstash(dst)
	case OpFail:
		return AppendFail(dst, string(c.Reason))
	case OpUnhandled:
		return AppendUnhandled(dst)
	case OpDecide:
		return AppendDecide(dst, c.Directive)
	case OpResetBackoff:
		return AppendResetBackoff(dst)
	case OpCancelAsk:
		return AppendCancelAsk(dst, c.Correlation)
	case OpSaved:
		return AppendSaved(dst, c.Key, c.Payload, c.Options)
	case OpPersist:
		return AppendPersist(dst, c.Payload)
	}
	return AppendEnd(dst)
}

func TestPageChildRefs(t *testing.T) {
	vectors := docVector.FindAllStringSubmatch(readPage(t), -1)
	if len(vectors) < 8 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, m := range vectors {
		var key RefKey
		_, _ = hex.Decode(key[:], []byte(m[1]))
		node, _ := strconv.ParseUint(m[2], 10, 16)
		n, _ := strconv.ParseUint(m[3], 10, 64)
		want, _ := strconv.ParseUint(m[4], 16, 64)
		if got := ChildRef(key, uint16(node), n); got != Ref(want) {
			t.Errorf("ChildRef(%x, %d, %d) = %#x, the page says %#x", key, node, n, uint64(got), want)
		}
	}
}

// The tables of the page must have a row for each number, and the limits must be
// the constants.
func TestPageTables(t *testing.T) {
	src := readPage(t)
	need := func(row string) {
		t.Helper()
		if !strings.Contains(src, "\n"+row) {
			t.Errorf("the page has no row %q", row)
		}
	}
	for k := range maxKind + 1 {
		need("| " + strconv.Itoa(int(k)) + " | " + k.String() + " | ")
	}
	for o := range maxOp + 1 {
		need("| " + strconv.Itoa(int(o)) + " | " + o.String() + " | `[" + strconv.Itoa(int(o)))
	}
	for _, k := range FailureKinds() {
		need("| " + strconv.Itoa(int(k)) + " | " + k.String() + " | ")
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	need("| inbox, outbox | " + n(MinRing) + " to " + n(MaxRing) + " bytes each |")
	need("| nesting of CBOR | " + n(MaxNesting) + " |")
	need("| headers | " + n(MaxHeaders) + " |")
	need("| key of a header | " + n(MaxHeaderKey) + " bytes |")
	need("| value of a header | " + n(MaxHeaderValue) + " bytes |")
	need("| path | " + n(MaxPath) + " bytes |")
	need("| name of an actor | " + n(MaxName) + " bytes |")
	need("| name of a type | " + n(MaxTypeName) + " bytes |")
	need("| types in a description | " + n(MaxTypes) + " |")
	need("| services in a start payload | " + n(MaxServices) + " |")
	need("| name of a service | " + n(MaxServiceName) + " bytes |")
	need("| features in a description | " + n(MaxNeeds) + " |")
	need("| a diagram | " + n(MaxDiagram) + " bytes |")
	need("| reason of fail, text of panic | " + n(MaxReason) + " bytes |")
	need("| spawn options | " + n(MaxOptions) + " bytes |")
	need("| commands in a turn | " + n(MaxTurnCommands) + " |")
	need("| actors in the answer for a path with patterns | " + n(MaxIdentities) + " |")
	need("| delay, period | " + n(MaxDuration) + " ns |")
	need("| timeout of an ask | " + n(MinAskTimeout) + " to " + n(MaxAskTimeout) + " ns |")
	need("| receive timeout | 0, or at least " + n(MinReceiveTimeout) + " ns |")
}
