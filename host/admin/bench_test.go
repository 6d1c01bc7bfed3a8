package admin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// BenchmarkTurnsUnderAttack is what a turn takes while nobody is connected, and while the
// server is attacked: a thousand connections that say nothing, slow readers of every stream,
// and requests without a token as fast as they are refused. Compare the two: most of what
// the attackers cost here is their own work, which is done by the same processors.
func BenchmarkTurnsUnderAttack(b *testing.B) {
	for _, attack := range []string{"calm", "connections", "slow readers", "wrong tokens"} {
		b.Run(attack, func(b *testing.B) {
			sys, err := host.New(host.NewConfig("shop"))
			if err != nil {
				b.Fatal(err)
			}
			defer sys.Close(context.Background())
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			var peers [2]host.Ref
			for i := range peers {
				if peers[i], err = sys.Spawn(fmt.Sprint("p", i), host.Func(func(c *host.Context, m host.Message) error {
					if n := left.Add(-1); n == 0 {
						close(done)
					} else if n < 0 {
						return nil
					}
					c.Tell(peers[1-i], 1)
					return nil
				})); err != nil {
					b.Fatal(err)
				}
			}
			end := attackServer(b, sys, attack)
			defer end()
			b.ResetTimer()
			if err := sys.Tell(peers[0], 1); err != nil {
				b.Fatal(err)
			}
			<-done
			b.StopTimer()
		})
	}
}

// attackServer opens a server and attacks it until end is called.
func attackServer(b *testing.B, sys *host.System, attack string) (end func()) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	token := NewToken()
	server, err := Serve(context.Background(), sys, NewConfig().WithSocket(filepath.Join(dir, "s")).WithTCP("127.0.0.1:0").WithToken(token))
	if err != nil {
		b.Fatal(err)
	}
	address := server.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ends := []func(){func() { os.RemoveAll(dir) }, func() { server.Close() }, cancel}
	connect := func(text string) {
		if c, err := dialRaw(address, text); err == nil {
			ends = append(ends, func() { c.Close() })
		}
	}
	switch attack {
	case "connections":
		for range 1000 {
			connect("GET /v1/sys")
		}
	case "slow readers":
		for range 30 {
			connect("GET /v1/events?follow HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + token.Reveal() + "\r\n\r\n")
		}
	case "wrong tokens":
		go func() {
			for ctx.Err() == nil {
				if c, err := dialRaw(address, "GET /v1/system HTTP/1.1\r\nHost: "+address+"\r\nAuthorization: Bearer wrong\r\n\r\n"); err == nil {
					_ = c.SetReadDeadline(time.Now().Add(time.Second))
					_, _ = c.Read(make([]byte, 1000))
					c.Close()
				}
			}
		}()
	}
	return func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
}
