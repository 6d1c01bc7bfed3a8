package pubsub

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service"
)

// readPublish reads {"topic": text, "value": any, ? "retain": bool}. The value is part of args.
func readPublish(args []byte) (name string, value []byte, retain bool, err error) {
	r := abi.NewReader(args)
	var hasName bool
	for range r.Map() {
		switch key := r.TextBytes(); {
		case string(key) == "topic" && !hasName:
			name, hasName = r.Text(), true
		case string(key) == "value" && value == nil:
			value = r.Raw()
		case string(key) == "retain" && !retain:
			retain = r.Bool()
		case r.OK():
			return "", nil, false, service.Errorf(service.BadRequest, "publish: the key %.40q is unknown, or there twice", key)
		}
	}
	if err := r.Done(); err != nil {
		return "", nil, false, service.Errorf(service.BadRequest, "publish: %w", err)
	}
	if !hasName || value == nil {
		return "", nil, false, service.Errorf(service.BadRequest, "publish: it needs topic and value")
	}
	return name, value, retain, nil
}

// appendEvent appends what a subscriber gets: ["event", {"n", "topic", "value", ? "missed"}].
func appendEvent(dst []byte, n uint64, e *Event, missed uint64) []byte {
	w := abi.NewWriter(dst)
	w.Array(2)
	w.Text("event")
	entries := 3
	if missed > 0 {
		entries++
	}
	w.Map(entries)
	w.Text("n")
	w.Uint(n)
	w.Text("topic")
	w.Text(e.Topic)
	w.Text("value")
	w.Encoded(string(e.Value))
	if missed > 0 {
		w.Text("missed")
		w.Uint(missed)
	}
	return w.Bytes()
}

// readOrder reads what a subscriber tells its subscription: ["ack", n] or ["close", null].
func readOrder(payload []byte) (op string, n uint64, err error) {
	r := abi.NewReader(payload)
	if r.Array() != 2 {
		r.Fail(abi.ErrArity)
	}
	switch op = r.Text(); op {
	case "ack":
		n = r.Uint()
	case "close":
		r.Skip()
	default:
		if r.OK() {
			return "", 0, service.Errorf(service.BadRequest, "there is no operation %.40q of a subscription", op)
		}
	}
	if err := r.Done(); err != nil {
		return "", 0, service.Errorf(service.BadRequest, "a subscription takes [\"ack\", n] and [\"close\", null]: %w", err)
	}
	return op, n, nil
}
