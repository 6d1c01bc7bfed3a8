package journal

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/record"
)

// bound is the error of a bound that actors reach by what they store. Senders learn the manifest's key.
type bound struct{ text, key string }

func (b bound) Error() string       { return "journal: " + b.text }
func (b bound) ManifestKey() string { return b.key }

// What an actor asks for and cannot have.
var (
	errBusy  error = bound{fmt.Sprintf("%d MiB of what actors of this node store wait for the log of the cluster: have them store less at a time (limits.durable)", mostWaiting>>20), "limits.durable"}
	errFull  error = bound{"the log of the bundle's events is full: have its keys keep less (limits.durable), or delete some: wasmactors cluster journal delete", "limits.durable"}
	errKind        = errors.New("journal: only the actors of keys that are spread over the cluster keep events here")
	errStart       = errors.New("journal: an actor stores nothing in its start")
)

// blamed is the answer to a turn: what an actor has caused is its own failure, and not the host's, whose failures escalate. All else is as
// it was.
func blamed(err error) error {
	switch {
	case errors.Is(err, cluster.ErrFull):
		return record.Refuse(abi.FailureMemoryLimit, fmt.Errorf("%w (%w)", errFull, err))
	case errors.Is(err, errKind), errors.Is(err, errStart):
		return record.Refuse(abi.FailureInit, err) // it would fail again
	case errors.As(err, new(bound)):
		return record.Refuse(abi.FailureMemoryLimit, err)
	}
	return err
}
