package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type order,call,receipt,outcome,options

// order is what comes from outside: a request, and the trouble that the service
// will make about it, one word for each attempt. Later attempts go well.
type order struct {
	ID      int64    `cbor:"id,required"`
	Trouble []string `cbor:"trouble,omitempty"`
}

// call is one attempt: from the supervisor to the client, and on to the service.
type call struct {
	ID      int64  `cbor:"id,required"`
	Attempt int64  `cbor:"attempt,required"` // from 1
	Trouble string `cbor:"trouble,omitempty"`
}

// receipt is the service's answer, which the client brings its supervisor.
type receipt struct {
	ID   int64  `cbor:"id,required"`
	Text string `cbor:"text,required"`
}

// outcome is what the customer gets.
type outcome struct {
	ID       int64  `cbor:"id"`
	Text     string `cbor:"text"`
	Attempts int64  `cbor:"attempts"`
	WaitedMS int64  `cbor:"waited_ms"`
}

// options are the client's arguments.
type options struct {
	Service string `cbor:"service,required"` // a path
	Timeout int64  `cbor:"timeout_ms,required"`
	// Reset makes a success reset the supervisor's count of failures, for styles
	// in which it is the client that says when all is well again.
	Reset bool `cbor:"reset_on_success"`
}
