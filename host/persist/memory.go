package persist

import (
	"context"
	"sync"

	"github.com/wasmactors/wasmactors/host/record"
)

// Memory is a journal that ends with the process, and the recorder of a system that has it (host.Config.WithStore). What is
// stored counts at once, so that a system in steps stays one: it is for tests, scenarios and simulations.
type Memory struct {
	*Journal
	mu sync.Mutex
	at uint64
}

// NewMemory makes one.
func NewMemory() (*Memory, error) {
	j, err := Open(Options{})
	if err != nil {
		return nil, err
	}
	return &Memory{Journal: j, at: 1}, nil
}

var _ interface {
	record.Recorder
	record.Outputs
} = (*Memory)(nil)

// Turn implements record.Recorder.
func (m *Memory) Turn(t *record.Turn) {
	x, _, err := m.Prepare(t)
	if err == nil && x.Record != nil {
		m.mu.Lock()
		at := m.at
		m.at += uint64(len(x.Record))
		m.Stored(&x, at)
		m.Durable(m.at)
		m.mu.Unlock()
		if m.Busy() {
			err = m.await(context.Background(), at+1)
		}
	}
	t.Answer(err)
}

// Note implements record.Recorder.
func (*Memory) Note(*record.Record) {}

// Later implements record.Outputs.
func (*Memory) Later(_ uint64, _ int, f func(error)) { f(nil) }
