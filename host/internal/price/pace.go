package price

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/paths"
)

// Pace lets others run from time to time while commands are carried out. The zero value is ready to use.
type Pace struct {
	Carried int // work since others were let run
}

// What is carried out before others get their turn: so many commands, or bytes.
const (
	carriedCommands = 256
	CarriedBytes    = 4 << 10 // count as one command
	CarriedOption   = 1 << 10 // so many bytes count as one of a spawn's options, which takes about 1.3 µs to read
	walkedBytes     = 128     // so many bytes that are copied take as long as passing an actor
)

// Yielder lets others run.
type Yielder interface{ Yield() bool }

// Carry notes a command that is carried out, and bytes that it has copied.
func (p *Pace) Carry(w Yielder, bytes int) {
	if p.Carried += 1 + bytes/CarriedBytes; p.Carried >= carriedCommands {
		p.Carried = 0
		w.Yield()
	}
}

// Walks lets others run during the search of a command that is carried out.
func (p *Pace) Walks(w Yielder) paths.Toll {
	return paths.Toll{Pass: func(visits int) *abi.Failure {
		p.Carry(w, visits*walkedBytes)
		return nil
	}}
}
