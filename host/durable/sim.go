package durable

import (
	"io"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// Sim is what a store of a simulation follows from besides what it is told: the same gives the same bytes. The store does
// nothing by itself, but in Work, Checkpoint and Close. It is for one goroutine, the one that steps its system.
type Sim struct {
	Secret  host.Secret // of the system; it outlives each process
	Rand    io.Reader   // for the log's salts
	Segment int64       // bytes of a file of the log at most; 0: as it is otherwise
	Modules *sync.Map   // files of modules by name, which outlive each process; nil: none are kept
	Packed  *sync.Map   // what such files have, by name, so that it is made only once for many stores without a key; nil: for each

	Opened    func(*Store)       // called when the store is open; nil: nobody is told
	Recovered func(*host.System) // called when durable actors are back, and nothing else has happened; nil: nobody is told
	Released  func()             // called when what was under way has arrived, and all may go on; nil: nobody is told
}

func (m *Sim) configure(o *wal.Options) {
	if m == nil {
		return
	}
	o.Manual, o.Rand = true, m.Rand
	if m.Segment > 0 {
		o.Segment = m.Segment
	}
}

// Work has the store of a simulation do what it would do by itself: one write and one sync for all that has been recorded, and
// what waits for that. It reports whether there was anything to do. Checkpoints are made when Checkpoint is called.
func (s *Store) Work() bool {
	did := s.log.Work()
	if j := s.events.Load(); j != nil && s.Err() == nil {
		did = j.Work() || did
	}
	if f := s.ending; f != nil {
		s.ending, did = nil, true
		f()
	}
	return did
}

// Steps reports whether the store is that of a simulation, and does nothing by itself.
func (s *Store) Steps() bool { return s.opt.Sim != nil }

// Waits reports whether something was recorded that is not durable.
func (s *Store) Waits() bool { return s.log.Pending() > 0 }

// End is the position behind all that is durable.
func (s *Store) End() uint64 { return uint64(s.log.Durable()) }
