// Command httpusers is a web service with an actor for each user, in Go or in a sandbox.
//
//	go run ./docs/examples/httpusers &
//	curl -d 'buy milk' localhost:8080/users/ann/notes
//
// With -guest user.wasm each user's actor is an instance of that module. The one in guest
// is built by
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o user.wasm .
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// options are the flags.
type options struct {
	guest   string        // the module; empty: actors in Go
	idle    time.Duration // after which a user's actor ends
	timeout time.Duration // of a request
	grace   time.Duration // of the shutdown
}

func main() {
	runtime.CompileMain() // first: modules compile in processes of their own
	var o options
	listen := flag.String("listen", "localhost:8080", "address")
	flag.StringVar(&o.guest, "guest", "", "module with the actor type user; without it the actors are in Go")
	flag.DurationVar(&o.idle, "idle", 10*time.Minute, "end a user's actor after this time without requests")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Second, "of a request")
	flag.DurationVar(&o.grace, "grace", 10*time.Second, "for open requests, at the end")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Println("listening on", l.Addr())
		err = run(ctx, l, o, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends, then answers what is open and stops the actors.
func run(ctx context.Context, l net.Listener, o options, log *slog.Logger) error {
	user, closeEngine, err := userProps(ctx, o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer closeEngine()
	sys, err := host.New(host.NewConfig("notes").WithLog(log))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &server{sys: sys, user: user, timeout: o.timeout}
	web := &http.Server{Handler: s.handler(), ReadTimeout: o.timeout}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	select {
	case err = <-served: // it cannot listen any more
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.grace)
	defer cancel()
	return errors.Join(err, web.Shutdown(end), sys.Close(end)) // requests first, then those they ask
}

// userProps are those of a user's actor. Each may hold 16 requests; a guest has 8 MiB and half a
// second for one.
func userProps(ctx context.Context, o options) (p host.Props, closeEngine func(), err error) {
	limits := host.Limits{Mailbox: 16, Deadline: 500 * time.Millisecond}
	if o.guest == "" {
		p = host.Native(func() host.Actor { return &user{} })
		return p.WithArgs(o.idle).WithLimits(limits), func() {}, nil
	}
	code, err := os.ReadFile(o.guest)
	if err != nil {
		return p, nil, err
	}
	engine, err := runtime.New(ctx, runtime.NewConfig())
	if err != nil {
		return p, nil, err
	}
	closeEngine = func() { _ = engine.Close(context.WithoutCancel(ctx)) }
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "user", MemoryLimit: 8 << 20})
	if err != nil {
		closeEngine()
		return p, nil, err
	}
	return host.Guest(image, "user").WithArgs(o.idle).WithLimits(limits), closeEngine, nil
}
