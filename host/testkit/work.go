package testkit

import (
	"runtime"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// work counts work in goroutines outside the system. Virtual time does not pass while there is any.
type work struct {
	mu       sync.Mutex
	open     map[string]int
	services []*service.Running
}

// outcome is how a wait for goroutines has ended.
type outcome uint8

const (
	quiet outcome = iota // there was nothing to wait for
	waited
	tooLong
)

// Go runs f in a goroutine of its own; virtual time stands still until it returns. It is for
// the simulation of something slow outside: a server, a device.
func (k *Kit) Go(what string, f func()) {
	k.work.begin(what)
	go func() {
		defer k.tell()
		defer k.work.end(what)
		f()
	}()
}

// Uses makes virtual time stand still while a service works on requests, in its goroutines.
func (k *Kit) Uses(s *service.Running) {
	k.work.mu.Lock()
	defer k.work.mu.Unlock()
	k.work.services = append(k.work.services, s)
}

func (w *work) begin(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[string]int{}
	}
	w.open[what]++
}

func (w *work) end(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[what]--; w.open[what] == 0 {
		delete(w.open, what)
	}
}

// who names one worker that is busy, or "".
func (w *work) who() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	best := ""
	for what := range w.open {
		if best == "" || what < best {
			best = what
		}
	}
	for _, s := range w.services {
		if best == "" && s.Busy() > 0 {
			best = "the service " + s.Name()
		}
	}
	return best
}

// wait waits until no worker is busy.
func (w *work) wait(most time.Duration) outcome {
	if w.who() == "" {
		return quiet
	}
	for begun := time.Now(); w.who() != ""; {
		if time.Since(begun) > most {
			return tooLong
		}
		runtime.Gosched()
		time.Sleep(20 * time.Microsecond) // a service does not signal when it is done
	}
	return waited
}
