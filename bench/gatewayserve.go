package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"

	extism "github.com/extism/go-sdk"

	"github.com/wasmactors/wasmactors/guest-sdk/web"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
)

// gatewayServers are those that are put under load.
var gatewayServers = []struct {
	name  string
	ours  bool
	open  func(ctx context.Context) (http.Handler, func() served, error)
	lacks func() string
}{
	{"net/http", false, plainServer, func() string { return "" }},
	{"gateway-go", true, func(ctx context.Context) (http.Handler, func() served, error) { return gatewayServer(ctx, "go") }, func() string { return "" }},
	{"gateway-tinygo", true, func(ctx context.Context) (http.Handler, func() served, error) { return gatewayServer(ctx, "tinygo") }, func() string { return lacksProgram("tinygo") }},
	{"plain-shop", false, plainShop, func() string { return "it is a piece of run" }},
	{"extism", false, extismServer, func() string { return "" }},
}

// gatewayGuests builds what the servers need.
func gatewayGuests(dir string) error {
	return buildGuests(context.Background(), sourceDir(), dir)
}

// gatewayServe serves until its input ends, and says then what there was.
func gatewayServe(args []string) error {
	for _, s := range gatewayServers {
		if len(args) != 1 || s.name != args[0] {
			continue
		}
		h, end, err := s.open(context.Background())
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: h}
		go func() { _ = server.Serve(l) }()
		begun := processTime()
		stop, err := profileCPU()
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		_ = server.Close()
		stop()
		s := end()
		s.CPU = processTime() - begun
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	return fmt.Errorf("no such server: %v", args)
}

// profileVariable names a file for a profile of what a server does.
const profileVariable = "WASMACTORS_BENCH_CPUPROFILE"

func profileCPU() (stop func(), err error) {
	name := os.Getenv(profileVariable)
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, nil
}

// processTime is the processor time that this process has had.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// plainServer is net/http with a handler in Go; what crashes is answered by a recover.
func plainServer(context.Context) (http.Handler, func() served, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		body := append(make([]byte, 0, 64), `{"id":`...)
		body = web.AppendJSON(body, r.PathValue("id"))
		body = append(body, `,"q":`...)
		body = append(web.AppendJSON(body, r.URL.Query().Get("q")), '}')
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	mux.HandleFunc("GET /boom", func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.Header().Set("Content-Length", "0")
				w.WriteHeader(http.StatusBadGateway)
			}
		}()
		panic("boom")
	})
	return mux, func() served { return served{} }, nil
}

// gatewayServer is the gateway in front of a pool of guests.
func gatewayServer(ctx context.Context, guest string) (http.Handler, func() served, error) {
	code, err := guestFile(guest)
	if err != nil {
		return nil, nil, err
	}
	p, err := newProductWith(ctx, code, 0, func(c host.Config) host.Config { return c })
	if err != nil {
		return nil, nil, err
	}
	events := p.sys.Subscribe(1<<16, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	reports := []string{}
	var all sync.WaitGroup
	all.Go(func() {
		for e := range events.C() {
			reports = append(reports, e.ID)
		}
	})
	var pool []string
	for i := range 2 * runtime.GOMAXPROCS(0) {
		name := "web-" + strconv.Itoa(i)
		if _, err := p.sys.Spawn(name, host.Guest(p.image, "web")); err != nil {
			return nil, nil, err
		}
		pool = append(pool, "/user/"+name)
	}
	g, err := gateway.New(p.sys, gateway.Config{Routes: []gateway.Route{
		{Pattern: "GET /users/{id}", To: gateway.Target{Pool: pool}}, {Pattern: "GET /boom", To: gateway.Target{Pool: pool}},
	}})
	if err != nil {
		return nil, nil, err
	}
	return g, func() served {
		_ = g.Drain(ctx)
		events.Close()
		all.Wait()
		if n := events.Dropped(); n > 0 {
			fmt.Fprintln(os.Stderr, n, "events were lost")
		}
		return served{Reports: reports}
	}, nil
}

// extismServer calls a plugin for each request; there is one for each processor, and a new
// one after a crash.
func extismServer(ctx context.Context) (http.Handler, func() served, error) {
	code, err := guestFile("extism")
	if err != nil {
		return nil, nil, err
	}
	extism.SetLogLevel(extism.LogLevelOff)
	c, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: code}}}, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	free := make(chan *extism.Plugin, runtime.GOMAXPROCS(0))
	for range cap(free) {
		p, err := c.Instance(ctx, extism.PluginInstanceConfig{})
		if err != nil {
			return nil, nil, err
		}
		free <- p
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := <-free
		defer func() { free <- p }()
		_, out, err := p.Call("users", []byte(r.URL.Path+"\n"+r.URL.RawQuery))
		if err != nil {
			_ = p.Close(ctx)
			if p, err = c.Instance(ctx, extism.PluginInstanceConfig{}); err != nil {
				panic(err)
			}
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
		_, _ = w.Write(out)
	})
	return h, func() served { return served{} }, nil
}
