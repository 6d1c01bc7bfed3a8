package keyed

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/keyed"
	"github.com/wasmactors/wasmactors/host"
)

// HeaderKey is the header with the key of a message, the same that routers look at.
const HeaderKey = "wasmactors.key"

// For is a message with a key, of at most abi.MaxHeaderValue bytes.
func For(key string, v any) host.Headed { return headed(v, HeaderKey, key) }

func headed(v any, key, value string) host.Headed {
	h, ok := v.(host.Headed)
	if !ok {
		return host.Headed{Value: v, Headers: map[string]string{key: value}}
	}
	headers := map[string]string{key: value}
	for k, x := range h.Headers {
		if k != key {
			headers[k] = x
		}
	}
	return host.Headed{Value: h.Value, Headers: headers}
}

// Name is the name of a key's actor: the key, in which every byte that is no letter, digit, '_', '.'
// or '-' is replaced by '~' and two hexadecimal digits. It fails with ErrBadKey if the key is empty, or the
// name longer than abi.MaxName.
func Name(key string) (string, error) {
	name, ok := keyed.Name(key)
	if !ok {
		return "", ErrBadKey
	}
	return name, nil
}

// Key is the inverse of Name; false if no key has this name.
func Key(name string) (string, bool) { return keyed.Key(name) }

// Of is the key of the actor whose turn it is; false if it is not a keyed actor.
func Of(ctx *host.Context) (string, bool) {
	at, err := ctx.System().AddressOf(ctx.Self().Path())
	if err != nil || !at.Kept() {
		return "", false
	}
	return keyed.Key(ctx.Self().Name())
}

// Bounds of the search for a key in a payload.
const (
	maxLooked = 64 << 10 // bytes
	maxFields = 64       // keys of the map
)

// nameOf is the name of the actor that a message is for.
func (h *head) nameOf(below string) (string, error) {
	m := &h.msg
	if below != "" {
		if _, ok := Key(below); !ok {
			return "", ErrBadKey
		}
		return below, nil
	}
	if h.key != nil {
		if key := h.called(); key != nil {
			return h.named(key)
		}
	}
	if len(m.Headers) > 0 && h.header != "" {
		if key, ok := abi.FindHeader(m.Headers, h.header); ok {
			return h.named(key)
		}
	}
	if h.field != "" {
		if key := h.inField(m.Payload); key != nil {
			return h.named(key)
		}
	}
	return "", ErrNoKey
}

// NameOf is the name of the actor that a message to the keeper is for, if it was not sent to the path of an
// actor. It fails with ErrNoKey and ErrBadKey.
func (c Config) NameOf(m host.Message) (string, error) {
	h := &head{Config: c, msg: m}
	return h.nameOf("")
}

// named is Name, without an allocation for a known key that is its own name.
func (h *head) named(key []byte) (string, error) {
	if e := h.entries[string(key)]; e != nil {
		if same, ok := keyed.Key(e.name); ok && same == e.name {
			return e.name, nil
		}
	}
	if len(key) > abi.MaxName {
		return "", ErrBadKey
	}
	return Name(string(key))
}

// called calls the function of the configuration.
func (h *head) called() (key []byte) {
	defer func() {
		if recover() != nil {
			key = nil
		}
	}()
	return h.key(&h.msg)
}

// inField is the value of the field in a payload that is a map, nil if there is none.
func (h *head) inField(payload []byte) []byte {
	h.read.Reset(payload[:min(len(payload), maxLooked)])
	r := &h.read
	if r.Peek() != abi.TypeMap {
		return nil
	}
	for range min(r.Map(), maxFields) {
		if r.Peek() != abi.TypeText {
			r.Skip()
			r.Skip()
			continue
		}
		if string(r.TextBytes()) == h.field && r.OK() {
			return h.value(r)
		}
		if r.Skip(); !r.OK() {
			return nil
		}
	}
	return nil
}

// value reads a key from the payload: a text, bytes, or a whole number as digits.
func (h *head) value(r *abi.Reader) (key []byte) {
	switch r.Peek() {
	case abi.TypeText:
		key = r.TextBytes()
	case abi.TypeBytes:
		key = r.ByteString()
	case abi.TypeUint:
		h.digits = strconv.AppendUint(h.digits[:0], r.Uint(), 10)
		key = h.digits
	case abi.TypeNint:
		h.digits = strconv.AppendInt(h.digits[:0], r.Int(), 10)
		key = h.digits
	}
	if !r.OK() || len(key) == 0 {
		return nil
	}
	return key
}
