//go:build !wasip1

package actortest

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// How reports show messages.

var sentNames = [...]string{"tell", "ask", "reply", "reply_error", "forward", "terminated", "timeout"}

// String is the kind's name.
func (k SentKind) String() string {
	if int(k) < len(sentNames) {
		return sentNames[k]
	}
	return fmt.Sprint("kind ", uint8(k))
}

// shownMessages bounds what a list shows.
const shownMessages = 10

func list(all []Sent) string {
	if len(all) == 0 {
		return "nothing"
	}
	var parts []string
	for i, s := range all {
		if i == shownMessages {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, describe(s))
	}
	return strings.Join(parts, ", ")
}

func describe(s Sent) string {
	text := item(s.Payload)
	if s.Kind != Tell {
		text = s.Kind.String() + " " + text
	}
	return text
}

// maxShown bounds what is shown of one payload, in bytes.
const maxShown = 200

// item is a payload as CBOR's diagnostic notation has it.
func item(payload []byte) string {
	var b strings.Builder
	r := abi.NewReader(payload)
	if abi.Valid(payload) == nil {
		diagnose(&b, r)
	}
	if r.Done() != nil || b.Len() == 0 {
		return fmt.Sprintf("% x", payload[:min(len(payload), maxShown)])
	}
	if b.Len() > maxShown {
		return b.String()[:maxShown] + "..."
	}
	return b.String()
}

func diagnose(b *strings.Builder, r *abi.Reader) {
	switch r.Peek() {
	case abi.TypeUint:
		fmt.Fprint(b, r.Uint())
	case abi.TypeNint:
		fmt.Fprint(b, r.Int())
	case abi.TypeBytes:
		fmt.Fprintf(b, "h'%x'", r.ByteString())
	case abi.TypeText:
		fmt.Fprintf(b, "%q", r.Text())
	case abi.TypeBool:
		fmt.Fprint(b, r.Bool())
	case abi.TypeFloat:
		fmt.Fprint(b, r.Float())
	case abi.TypeArray:
		b.WriteByte('[')
		for i, n := 0, r.Array(); i < n && r.OK(); i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			diagnose(b, r)
		}
		b.WriteByte(']')
	case abi.TypeMap:
		b.WriteByte('{')
		for i, n := 0, r.Map(); i < n && r.OK(); i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			diagnose(b, r)
			b.WriteString(": ")
			diagnose(b, r)
		}
		b.WriteByte('}')
	case abi.TypeNull:
		r.Null()
		b.WriteString("null")
	default:
		r.Skip()
		b.WriteString("?")
	}
}
