package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type hook,verdict,task,report,record

// hook is what an intake brings to the queue, which answers with a verdict. Its signature was right.
type hook struct {
	Source   string `cbor:"source,required"`
	Delivery string `cbor:"delivery,required"` // the sender's id of it
	Kind     string `cbor:"kind,omitempty"`    // content type
	Body     []byte `cbor:"body"`
}

// verdict is what has become of a hook.
type verdict struct {
	Job     string `cbor:"job"`
	Outcome string `cbor:"outcome,required"` // accepted, duplicate, full or later
}

// The outcomes of a hook.
const (
	accepted  = "accepted"  // it is kept
	duplicate = "duplicate" // it was kept before
	full      = "full"      // there is no room
	later     = "later"     // nobody knows whether it is kept: it is to come again
)

// task asks a worker to deliver a job once.
type task struct {
	Number   uint64 `cbor:"number,required"`
	Epoch    uint64 `cbor:"epoch,omitempty"` // the worker's incarnation that it is for
	Job      string `cbor:"job,required"`
	Source   string `cbor:"source,required"`
	Delivery string `cbor:"delivery,required"`
	Kind     string `cbor:"kind,omitempty"`
}

// report is what a worker says when it has nothing to do: at first, and after each task.
type report struct {
	Epoch   uint64 `cbor:"epoch"` // its incarnation
	Last    uint64 `cbor:"last"`  // number of the task that it has done last; 0: none
	Job     string `cbor:"job,omitempty"`
	Outcome string `cbor:"outcome,omitempty"` // delivered, again or refused
	Problem string `cbor:"problem,omitempty"` // why it was not delivered
	AfterMS int64  `cbor:"after_ms,omitempty"`
}

// The outcomes of a task.
const (
	delivered = "delivered"
	again     = "again"   // it may succeed later
	refused   = "refused" // it will not
)

// record is a job as the store has it. Times are ms since 1970.
type record struct {
	Source   string `cbor:"source,required"`
	Delivery string `cbor:"delivery,required"`
	Kind     string `cbor:"kind,omitempty"`
	Received int64  `cbor:"received"`
	Attempts int64  `cbor:"attempts,omitempty"` // that have failed, in this round
	Round    int64  `cbor:"round,omitempty"`    // how often it was taken back from the dead letters
	Due      int64  `cbor:"due,omitempty"`      // when the next attempt may be
	Problem  string `cbor:"problem,omitempty"`  // of the last attempt
}
