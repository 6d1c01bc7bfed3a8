package message

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/span"
)

// Content is what a message says, to be sent on in another name: the payload, which is not copied, and the headers without those of
// its trace.
func Content(m *Message, lasting bool) any {
	var headers map[string]string
	for rest := m.Headers; ; {
		key, value, next, more := abi.NextHeader(rest)
		if !more {
			break
		}
		if k := string(key); k != span.HeaderParent && k != span.HeaderState {
			if headers == nil {
				headers = map[string]string{}
			}
			headers[k] = string(value)
		}
		rest = next
	}
	var v any = Raw(m.Payload)
	if headers != nil {
		v = Headed{Value: v, Headers: headers}
	}
	if lasting {
		v = Marked{Value: v, Marks: Lasting}
	}
	return v
}
