// Package metrics lets an actor report figures that only it knows: orders, queue lengths, times. Each
// name must be granted in the manifest:
//
//	capabilities:
//	  metrics:
//	    orders_total: {kind: counter, help: orders taken}
//	    wait_seconds: {kind: histogram}
//
// What is counted is a message like any other: it leaves when the turn has ended, and a turn
// that fails has counted nothing. Each call of Add, Set or Observe sends one; a Batch sends
// many values in one.
package metrics

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Path is where the values are sent to.
const Path = "/system/metrics"

// MaxBatch is how many values a message may have.
const MaxBatch = 100

// Add increases a counter; v is not negative.
func Add(ctx *actor.Context, name string, v float64) { one(ctx, name, v) }

// Set sets this actor's part of a gauge: what is shown is the sum over all that set it.
func Set(ctx *actor.Context, name string, v float64) { one(ctx, name, v) }

// Observe adds a value to a histogram. Times are in seconds.
func Observe(ctx *actor.Context, name string, v float64) { one(ctx, name, v) }

func one(ctx *actor.Context, name string, v float64) {
	single = value{name, v}
	ctx.TellPath(Path, &single)
}

// single is what is sent: the encoder is done with it when TellPath returns.
var single value

type value struct {
	name string
	v    float64
}

// MarshalCBOR implements actor.Encoder.
func (u *value) MarshalCBOR(w *abi.Writer) {
	w.Array(1)
	u.write(w)
}

func (u *value) write(w *abi.Writer) {
	w.Array(2)
	w.Text(u.name)
	w.Float(u.v)
}

// Batch collects values, across turns if need be, until they are sent together. The zero
// value is empty.
type Batch struct{ values []value }

// Add adds a value: what it means depends on the kind of the metric, see the functions of
// the same names.
func (b *Batch) Add(name string, v float64) { b.values = append(b.values, value{name, v}) }

// Set is Add, for a gauge.
func (b *Batch) Set(name string, v float64) { b.Add(name, v) }

// Observe is Add, for a histogram.
func (b *Batch) Observe(name string, v float64) { b.Add(name, v) }

// Len is the number of values that were not sent yet.
func (b *Batch) Len() int { return len(b.values) }

// Send sends what was collected, in as many messages as that takes, and empties the batch. If
// the turn fails the values are lost.
func (b *Batch) Send(ctx *actor.Context) {
	for rest := b.values; len(rest) > 0; {
		n := min(len(rest), MaxBatch)
		part := part(rest[:n])
		ctx.TellPath(Path, &part)
		rest = rest[n:]
	}
	b.values = b.values[:0]
}

type part []value

// MarshalCBOR implements actor.Encoder.
func (p *part) MarshalCBOR(w *abi.Writer) {
	w.Array(len(*p))
	for i := range *p {
		(*p)[i].write(w)
	}
}
