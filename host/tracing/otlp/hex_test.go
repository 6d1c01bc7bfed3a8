package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
)

var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]*)"`)

// hexIDs makes the IDs of OTLP, which are hexadecimal, those of protocol buffers' JSON, which
// are base64.
func hexIDs(text []byte) []byte {
	return ids.ReplaceAllFunc(text, func(m []byte) []byte {
		parts := ids.FindSubmatch(m)
		b, err := hex.DecodeString(string(parts[2]))
		if err != nil {
			panic(err)
		}
		return []byte(`"` + string(parts[1]) + `":"` + base64.StdEncoding.EncodeToString(b) + `"`)
	})
}
