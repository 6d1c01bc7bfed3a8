package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/observe"
)

// looks are what people and programs ask for again and again, each as the requests that it
// sends.
var looks = []struct {
	name string
	gets []string
}{
	{"a scrape", []string{"/metrics"}},
	{"a refresh of top", []string{"/v1/system", "/v1/actors?sort=turns&desc=true&limit=50"}},
	{"a refresh of the dashboard", []string{"/v1/system", "/v1/tree?depth=1&limit=100", "/v1/actors?sort=restarts&desc=true&limit=20"}},
}

// paced is how many messages a second flow meanwhile.
const paced = 100_000

// looking measures what it takes to look at 10^5 actors through the admin endpoint while 10^5
// messages a second flow, and how many fewer flow for one look of each kind a second. Windows
// with and without looks alternate.
func looking(l *lab) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n := max(1000, l.scale(100_000))
	w, err := openWatched(n, filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	defer w.close()
	go w.flow()
	for _, k := range looks {
		took, err := l.repeat(func() (float64, error) {
			time.Sleep(300 * time.Millisecond) // looks share a walk for some time
			start := time.Now()
			err := w.look(k.gets)
			return float64(time.Since(start).Microseconds()) / 1e3, err
		})
		if err != nil {
			return err
		}
		if err := l.report.alone(fmt.Sprintf("%s, %d actors, %d messages a second", k.name, n, paced), "ms", took, "by HTTP over a Unix socket"); err != nil {
			return err
		}
	}
	window := func(looking bool) (float64, error) {
		start, before := time.Now(), w.done.Load()
		if looking {
			for _, k := range looks {
				if err := w.look(k.gets); err != nil {
					return 0, err
				}
			}
		}
		time.Sleep(time.Second - time.Since(start))
		return float64(w.done.Load()-before) / time.Since(start).Seconds(), nil
	}
	l.rounds *= 3 // short windows, and small differences
	defer func() { l.rounds /= 3 }()
	with, without, err := l.interleave(func() (float64, error) { return window(true) }, func() (float64, error) { return window(false) })
	if err != nil {
		return err
	}
	return l.report.compare(fmt.Sprintf("messages handled while %d actors are looked at, each way once a second", n), "messages/s", with, without, "the baseline: nobody looks")
}

// watched is a system with an admin endpoint.
type watched struct {
	sys      *host.System
	observer *observe.Observer
	server   *admin.Server
	client   *http.Client
	refs     []host.Ref
	done     atomic.Int64
	end      chan struct{}
	ended    chan struct{}
}

func openWatched(n int, socket string) (*watched, error) {
	sys, err := host.New(host.NewConfig("watched"))
	if err != nil {
		return nil, err
	}
	w := &watched{sys: sys, end: make(chan struct{}), ended: make(chan struct{})}
	w.observer = observe.New(sys, observe.Options{})
	shown, err := metrics.New(w.observer, metrics.Options{})
	if err != nil {
		return nil, err
	}
	w.server, err = admin.Serve(context.Background(), sys, admin.NewConfig().WithSocket(socket).WithObserver(w.observer).WithMetrics(shown))
	if err != nil {
		return nil, err
	}
	w.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	member := host.Func(func(*host.Context, host.Message) error { w.done.Add(1); return nil })
	const each = 1000
	for p := 0; len(w.refs) < n; p++ {
		var kids []host.Child
		for i := range min(each, n-len(w.refs)) {
			kids = append(kids, host.Child{Name: fmt.Sprint("w-", i), Props: member})
		}
		pool, err := sys.Spawn(fmt.Sprint("pool-", p), host.Func(func(*host.Context, host.Message) error { return nil }).WithChildren(kids...))
		if err != nil {
			return nil, err
		}
		for i := range kids {
			for {
				if ref, err := sys.Lookup(pool.Path() + "/" + kids[i].Name); err == nil {
					w.refs = append(w.refs, ref)
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	return w, nil
}

// flow sends a message to one actor after the other, so many a second.
func (w *watched) flow() {
	defer close(w.ended)
	var message any = host.Raw{0xf6}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for start, sent := time.Now(), 0; ; {
		select {
		case <-w.end:
			return
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * paced); sent < due; sent++ {
			_ = w.sys.Tell(w.refs[sent*7919%len(w.refs)], message)
		}
	}
}

func (w *watched) look(gets []string) error {
	for _, get := range gets {
		answer, err := w.client.Get("http://wasmactors" + get)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", get, answer.Status)
		}
	}
	return nil
}

func (w *watched) close() {
	close(w.end)
	<-w.ended
	_ = w.server.Close()
	w.observer.Close()
	_ = w.sys.Close(context.Background())
}
