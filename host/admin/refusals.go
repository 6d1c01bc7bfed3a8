package admin

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// refusals are told to the log, but not each of them: who is refused could fill it.
type refusals struct {
	mu     sync.Mutex
	last   time.Time
	silent int

	second time.Time // since when they are counted
	count  int
}

// tellEvery is how often refusals are told.
const tellEvery = 10 * time.Second

func (x *refusals) note(l *slog.Logger, p *Problem, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := now()
	if t.Sub(x.last) < tellEvery {
		x.silent++
		return
	}
	x.last = t
	l.Warn("a request was refused", "why", p.Message, "path", printable.Line(r.URL.Path, 100), "from", r.RemoteAddr, "others", x.silent)
	x.silent = 0
}

// delay is how long the next refusal waits: who is refused again and again, from as many
// connections as there may be, gets little of the processors.
func (x *refusals) delay(b bounds) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := now()
	if t.Sub(x.second) >= time.Second {
		x.second, x.count = t, 0
	}
	if x.count++; x.count <= b.refusals {
		return 0
	}
	return b.penalty
}
