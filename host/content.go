package host

import "github.com/wasmactors/wasmactors/host/internal/message"

// Content is what the current message says, for an actor that asks or tells it on in its own name: the payload, which is
// not copied, and the headers without those of its trace, since what is sent has its own. It lasts if
// the message does, see [Head.Lasting].
func (h Head) Content(m *Message) any {
	return message.Content(m, h.Lasting())
}
