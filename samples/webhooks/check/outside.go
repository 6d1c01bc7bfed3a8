package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// outside is where the hooks are to go. It notes what has arrived.
type outside struct {
	server *httptest.Server

	mu      sync.Mutex
	mood    mood
	changed chan struct{} // closed with the mood
	got     map[string]*arrival
	tries   map[string]int // failures so far, by idempotency key
	asked   int            // requests while it was flaky
	failed  int
	rand    *rand.Rand
}

// mood is how the outside is today.
type mood int

const (
	well  mood = iota
	flaky      // every second request fails: with 500, a connection that is cut, before or after it was taken, or no answer in time
	down       // 503
	held       // no answer until it is another
)

// arrival is a hook that has arrived.
type arrival struct {
	id, key, path, body string
	times               int
}

// mostFailures is how often one hook may fail, so that none becomes a dead letter by chance.
const mostFailures = 5

func newOutside() *outside {
	o := &outside{changed: make(chan struct{}), got: map[string]*arrival{}, tries: map[string]int{}, rand: rand.New(rand.NewPCG(1, 2))}
	o.server = httptest.NewServer(http.HandlerFunc(o.serve))
	return o
}

func (o *outside) close() {
	o.be(well)
	o.server.CloseClientConnections()
	o.server.Close()
}

// be changes the mood.
func (o *outside) be(m mood) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mood = m
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *outside) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	key := r.Header.Get("idempotency-key")
	cut := func() {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	switch o.decide(key) {
	case "down":
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "reset":
		cut()
		return
	case "taken":
		defer cut()
	case "hang":
		select {
		case <-r.Context().Done():
		case <-time.After(10 * timeout):
		}
		return
	case "hold":
		o.mu.Lock()
		changed := o.changed
		held := o.mood == held
		o.mu.Unlock()
		if held {
			select {
			case <-r.Context().Done():
				return // nobody would know
			case <-changed:
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id := r.Header.Get("webhook-id")
	a := o.got[id+" "+key]
	if a == nil {
		a = &arrival{id: id, key: key, path: r.URL.Path, body: string(body)}
		o.got[id+" "+key] = a
	}
	if a.path != r.URL.Path || a.body != string(body) || r.Header.Get("content-type") != "application/json" {
		a.body = "not what it was before"
	}
	a.times++
}

func (o *outside) decide(key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.mood {
	case down:
		return "down"
	case held:
		return "hold"
	case flaky:
		o.asked++
		if o.tries[key] < mostFailures && o.rand.IntN(2) == 0 {
			o.tries[key]++
			o.failed++
			return [...]string{"500", "reset", "taken", "hang"}[o.rand.IntN(4)]
		}
	}
	return "well"
}

func (o *outside) requests() (asked, failed int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked, o.failed
}

func (o *outside) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.got {
		if a.id == id {
			return true
		}
	}
	return false
}

func (o *outside) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.got)
}

// repeated is how many have arrived more than once.
func (o *outside) repeated() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.got {
		if a.times > 1 {
			n++
		}
	}
	return n
}

// compare compares what has arrived with what was acknowledged.
func (o *outside) compare(want map[string]*hook) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.got {
		h := want[a.id]
		switch {
		case h == nil:
			return fmt.Errorf("%s has arrived, and nobody has acknowledged it", a.id)
		case a.key != h.job:
			return fmt.Errorf("%s has arrived with the idempotency key %s, and its job is %s", a.id, a.key, h.job)
		case a.path != "/"+h.source || a.body != h.body:
			return fmt.Errorf("%s has arrived at %s with another body", a.id, a.path)
		}
	}
	if len(o.got) != len(want) {
		return fmt.Errorf("%d hooks have arrived, %d were acknowledged", len(o.got), len(want))
	}
	return nil
}
