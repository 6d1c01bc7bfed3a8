package observe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// refText is a ref's number as 16 hexadecimal digits.
func refText(r host.Ref) string { return uidText(r.UID()) }

// parseRef is the inverse.
func parseRef(text string) (abi.Ref, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 || n == 0 {
		return 0, invalid("a ref is 16 hexadecimal digits, not %q", clip(text))
	}
	return abi.Ref(n), nil
}

// mostLine is how long a line of a row may be, in bytes.
const mostLine = 200

// line is the first line of a guest's text, safe to show.
func line(s string) string { return printable.Line(s, mostLine) }

// text is a guest's text of several lines, safe to show.
func text(s string) string { return printable.Text(s) }

// clip is a text from outside for an error about it.
func clip(s string) string { return printable.Line(s, 80) }

func uidText(uid abi.Ref) string { return fmt.Sprintf("%016x", uint64(uid)) }

// payloadJSON is a payload as JSON, nil if it cannot be shown so.
func payloadJSON(payload []byte) RawJSON {
	j, err := host.ToJSON(payload)
	if err != nil {
		return nil
	}
	return j
}

// reason is the text of an error of the host's in an outcome.
func reason(err error) string { return line(strings.TrimPrefix(err.Error(), "host: ")) }
