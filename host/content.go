package host

import "github.com/wasmactors/wasmactors/abi"

// Content is what the current message says, for an actor that asks or tells it on in its own name: the payload, which is
// not copied, and the headers without those of its trace, since what is sent has its own. It lasts if
// the message does, see [Head.Lasting].
func (h Head) Content(m *Message) any {
	var headers map[string]string
	for rest := m.Headers; ; {
		key, value, next, more := abi.NextHeader(rest)
		if !more {
			break
		}
		if k := string(key); k != HeaderTraceParent && k != HeaderTraceState {
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
	if h.Lasting() {
		v = Marked{Value: v, Marks: Lasting}
	}
	return v
}
