package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Orders of a shop over HTTP, as a user runs it: the command with a bundle, whose guests of standard Go ask two actors,
// pay at a server outside, and keep the order in kv and in sql. Beside it is the same in plain Go, with maps and locks.

// shopManifest has a place for the shops.
const shopManifest = `wasmactors: 1
name: shop
modules:
  shop: {wasm: ./shop.wasm}
limits: {memory: 64MiB, deadline: 5s}
services:
  kv: {store: memory}
  sql: {databases: {main: {sync: normal}}}
  http: {connections: 64}
actors:
  stock: {type: shop/items}
  prices: {type: shop/prices}
%s
http:
  listen: [{address: "${LISTEN:-localhost:8080}"}]
  health: {live: /live, ready: /ready}
  routes:
    POST /orders/{item}:
      pool: [/user/shop-1, /user/shop-2, /user/shop-3, /user/shop-4]
`

const oneShop = `  shop-%d:
    type: shop/shop
    args: "${BANK:-http://localhost:9000}/pay"
    capabilities:
      send: [/user/stock, /user/prices]
      kv: {namespace: orders, mode: rw, quota: 1GiB, keys: 10000000}
      sql: {databases: {main: rw}, at-once: 256}
      http: {hosts: ["${BANK:-http://localhost:9000}"], private: [loopback], methods: [POST], connections-per-host: 64, at-once: 256}
`

// shopFolder is a bundle in dir.
func shopFolder(dir string, code []byte) error {
	var shops strings.Builder
	for i := range 4 {
		fmt.Fprintf(&shops, oneShop, i+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.wasm"), code, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bundle.yaml"), fmt.Appendf(nil, shopManifest, &shops), 0o600)
}

// bank is the server outside. It is in the process that sends the orders.
func bank() (address string, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "paid")
	})}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = s.Close() }, nil
}

// freeAddress is one that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// runShop starts the command with the bundle and waits until it is ready.
func runShop(ctx context.Context, exe, dir, bank string) (address string, end func() error, err error) {
	if address, err = freeAddress(); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "run", dir, "--quiet", "--allow", "listen", "--allow", "connect", "--env", "LISTEN="+address, "--env", "BANK="+bank, "--cache-dir", filepath.Join(dir, "cache"))
	said := &tail{}
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		killer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer killer.Stop()
		_ = cmd.Wait() // by a signal
		return nil
	}
	for {
		r, err := http.Get("http://" + address + "/ready")
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return address, end, nil
			}
		}
		select {
		case <-ctx.Done():
			_ = end()
			return "", nil, fmt.Errorf("the shop is not ready: %s", said.text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// plainShop is the same in plain Go.
func plainShop(context.Context) (http.Handler, func() served, error) {
	bank := os.Getenv(bankVariable)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var mu sync.Mutex
	stock, keys, rows, n := map[string]int64{}, map[string]string{}, map[string][2]any{}, 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{item}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		item := r.PathValue("item")
		mu.Lock()
		stock[item]++
		n++
		id, price := "shop-"+strconv.Itoa(n), int64(100+len(item))
		mu.Unlock()
		paid, err := client.Post(bank+"/pay", "text/plain", strings.NewReader(id))
		if err == nil {
			_, err = io.Copy(io.Discard, paid.Body)
			_ = paid.Body.Close()
		}
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mu.Lock()
		keys[id] = item
		rows[id] = [2]any{item, price}
		mu.Unlock()
		body := orderAnswer(nil, item)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	return mux, func() served { return served{} }, nil
}

const bankVariable = "WASMACTORS_BENCH_BANK"

// orderAnswer is what an order of an item is answered with.
func orderAnswer(b []byte, item string) []byte {
	return append(strconv.AppendInt(append(append(append(b, `{"item":"`...), item...), `","price":`...), int64(100+len(item)), 10), '}')
}

// anOrder is a request, and what its answer must be.
func anOrder(request, want []byte, n int, _ *rand.Rand) (_, _ []byte, boom bool) {
	item := "i" + strconv.Itoa(n%1000)
	body := `{"count":1,"note":"` + strings.Repeat("x", 64) + `"}`
	request = append(append(append(request, "POST /orders/"...), item...), " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: "...)
	request = append(append(strconv.AppendInt(request, int64(len(body)), 10), "\r\n\r\n"...), body...)
	return request, orderAnswer(want, item), false
}

// gatewayConns is how many connections the pieces below have.
const gatewayConns = 16

// gatewayPiece measures requests of a guest behind the gateway beside net/http, and orders of the shop beside plain Go.
func gatewayPiece(l *lab) error {
	long := 3 * time.Second
	if l.quick {
		long = 300 * time.Millisecond
	}
	if err := l.requests(getBench, func(name string) (float64, error) { return l.served(name, long, aUser(0)) }, "gateway-go", "net/http"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	code, err := guestFile("shop")
	if err == nil {
		err = shopFolder(dir, code)
	}
	if err != nil {
		return err
	}
	exe, err := l.command()
	if err != nil {
		return err
	}
	address, end, err := bank()
	if err != nil {
		return err
	}
	defer end()
	return l.requests(postBench, func(name string) (rate float64, err error) {
		if name == "plain-shop" {
			return l.served(name, long, anOrder, bankVariable+"="+address)
		}
		at, end, err := runShop(l.ctx, exe, dir, address)
		if err != nil {
			return 0, err
		}
		defer func() { err = end() }()
		return l.rate(at, long, anOrder)
	}, "shop", "plain-shop")
}

// requests compares requests a second.
func (l *lab) requests(name string, rate func(name string) (float64, error), ours, baseline string) error {
	mine, theirs, err := l.interleave(func() (float64, error) { return rate(ours) }, func() (float64, error) { return rate(baseline) })
	if err != nil {
		return err
	}
	return l.report.more(name, "requests/s", mine, theirs, fmt.Sprintf("%.2f times the baseline, %s", mine/theirs, baseline))
}

// served is how many requests a second a server of this program answers.
func (l *lab) served(name string, long time.Duration, of asking, env ...string) (float64, error) {
	s, err := startServer(l.guests, name, env...)
	if err != nil {
		return 0, err
	}
	defer s.kill()
	return l.rate(s.address, long, of)
}

// rate sends requests, at first for a time that does not count. Each must be answered as it should be.
func (l *lab) rate(address string, long time.Duration, of asking) (float64, error) {
	if _, err := drive(address, gatewayConns, long/3, of); err != nil {
		return 0, err
	}
	d, err := drive(address, gatewayConns, long, of)
	if err != nil {
		return 0, err
	}
	if bad := d.wrong + d.missing; bad > 0 {
		return 0, fmt.Errorf("%d of %d requests were not answered as they must be: %s", bad, len(d.took), d.what)
	}
	return float64(len(d.took)) / d.long.Seconds(), nil
}

// command builds the command once a run.
func (l *lab) command() (string, error) {
	exe := filepath.Join(l.guests, "wasmactors")
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	var errs bytes.Buffer
	build := exec.CommandContext(l.ctx, "go", "build", "-trimpath", "-o", exe, "./cmd/wasmactors")
	build.Dir, build.Stderr = filepath.Dir(l.dir), &errs
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building the command: %w\n%s", err, &errs)
	}
	return exe, nil
}
