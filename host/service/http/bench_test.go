//go:build unix

package httpclient_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// BenchmarkRequest is what a request costs beside net/http alone, on kept connections over loopback. The
// three take turns, so that a machine that is busy with something else is so for all of them.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		for _, at := range []int{1, 16} {
			b.Run(fmt.Sprintf("bytes=%d/at-once=%d", size, at), func(b *testing.B) { request(b, size, at) })
		}
	}
}

func request(b *testing.B, size, at int) {
	w := newWorld(b)
	body := make([]byte, size)
	server := w.serve("", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	kind := httpclient.New(httpclient.Options{})
	sys, err := host.New(host.NewConfig("bench"))
	if err != nil {
		b.Fatal(err)
	}
	f := &fixture{t: b, sys: sys, kind: kind}
	if f.running, err = kind.Start(sys, nil, nil); err != nil {
		b.Fatal(err)
	}
	defer f.close()
	grant := kind.Grant(httpclient.Grant{Hosts: []string{"http://*:*"}, Private: []string{"loopback"}, PerHost: at}, service.Bounds{AtOnce: 1000, Bytes: 64 << 20})
	native := f.with(func(p host.Props) host.Props { return p.WithGrant(httpclient.Name, grant) })
	guest, err := sys.Spawn("guest", host.GuestOf(servicetest.Module(b), "http-user").WithGrant(httpclient.Name, grant))
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: at, MaxConnsPerHost: at, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ways := []struct {
		name string
		do   func() error
		took time.Duration
		cpu  time.Duration // of the process: client, server and all
	}{
		{name: "net/http", do: func() error {
			res, err := client.Get(server.URL)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			_, err = io.ReadAll(res.Body)
			return err
		}},
		{name: "actor", do: func() error {
			_, err := sys.Ask(context.Background(), native.ref, order{Op: "do", Args: args{"url": server.URL}})
			return err
		}},
		{name: "guest", do: func() error {
			_, err := sys.Ask(context.Background(), guest, []any{"get", server.URL, 0})
			return err
		}},
	}
	round := func(n int) {
		for i := range ways {
			began, used := time.Now(), processor()
			var all sync.WaitGroup
			for range at {
				all.Go(func() {
					for range n {
						if err := ways[i].do(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			ways[i].took += time.Since(began)
			ways[i].cpu += processor() - used
		}
	}
	round(10)
	for i := range ways {
		ways[i].took, ways[i].cpu = 0, 0
	}
	n := 0
	for b.Loop() {
		round(10)
		n += 10 * at
	}
	for _, way := range ways {
		b.ReportMetric(float64(way.took.Nanoseconds())/float64(n), way.name+"-ns")
		b.ReportMetric(float64(way.cpu.Nanoseconds())/float64(n), way.name+"-cpu-ns")
	}
	b.ReportMetric(float64(ways[1].took)/float64(ways[0].took), "actor/plain")
	b.ReportMetric(float64(ways[2].took)/float64(ways[0].took), "guest/plain")
	b.ReportMetric(0, "ns/op")
}

// processor is the time of processors that the process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
