package admin

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// refusals are logged, but not each of them: a refused client could fill the log.
type refusals struct {
	mu     sync.Mutex
	last   time.Time
	silent int

	second time.Time // start of the second in which they are counted
	count  int
}

// tellEvery is how often refusals are logged.
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

// delay is how long the next refusal waits: a client that is refused again and again, from as many
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
