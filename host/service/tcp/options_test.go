//go:build unix

package tcp

import (
	"syscall"
	"testing"
	"time"
)

// M02: Nagle's algorithm is off unless it is asked for, and probes are sent unless they are not wanted; of both ends that the service has.
func TestM02_NoDelay(t *testing.T) {
	for _, c := range []struct {
		options          args
		noDelay, probing bool
	}{
		{nil, true, true},
		{args{"delay": true}, false, true},
		{args{"alive": -1}, true, false},
		{args{"alive": int64(time.Minute)}, true, true},
	} {
		w := newWorld(t, Options{}, nil)
		p := w.puppet("p", usual())
		options := args{}
		if c.options != nil {
			options["options"] = c.options
		}
		p.connect(server(t), options)
		_, address := p.listen(options)
		p.accept(address)
		v := w.svc.Provider().(*provider)
		v.mu.Lock()
		var all []*conn
		for e := range v.open {
			if c, ok := e.(*conn); ok {
				all = append(all, c)
			}
		}
		v.mu.Unlock()
		if len(all) != 2 {
			t.Fatal(len(all))
		}
		for _, x := range all {
			noDelay, probing := 0, 0
			var err1, err2 error
			if err := x.raw.Control(func(fd uintptr) {
				noDelay, err1 = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
				probing, err2 = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
			}); err != nil || err1 != nil || err2 != nil {
				t.Fatal(err, err1, err2)
			}
			if (noDelay != 0) != c.noDelay || (probing != 0) != c.probing {
				t.Errorf("%v: no delay %d, probes %d", c.options, noDelay, probing)
			}
		}
	}
}
