package feed

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service"
)

// appendEvent appends what a subscriber gets: [word, {"n", "topic", "value", ? "missed"}].
func appendEvent(dst []byte, word string, n uint64, topic string, value []byte, missed uint64) []byte {
	w := abi.NewWriter(dst)
	w.Array(2)
	w.Text(word)
	entries := 3
	if missed > 0 {
		entries++
	}
	w.Map(entries)
	w.Text("n")
	w.Uint(n)
	w.Text("topic")
	w.Text(topic)
	w.Text("value")
	w.Encoded(string(value))
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
