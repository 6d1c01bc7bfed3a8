package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/observe"
)

// Server serves one system, or a recording. Its methods are for any goroutine.
type Server struct {
	cfg      Config
	replay   *recorded // nil: it serves a system
	served   atomic.Pointer[served]
	own      *observe.Observer // closed with the server
	sessions sessions
	rooms    [shares]room
	routes   map[string]map[string]*route // by path and method

	ctx       context.Context // ends what is under way
	end       context.CancelCauseFunc
	servers   []*http.Server
	limits    []*connLimit
	readiness readiness
	refusals  refusals
	cut       atomic.Int64 // streams that ended because nobody read them
	tcp       net.Addr
	health    net.Addr
	wg        sync.WaitGroup // listeners that are served
	closing   sync.Once
	reloading sync.Mutex    // held by the reload that is under way
	reading   chan struct{} // held by the caller that reads the store
}

func now() time.Time { return time.Now() }

// Serve begins to serve a system and returns. The server ends when ctx does, or with Close.
// An error says what could not be opened; nothing is left open then.
func Serve(ctx context.Context, sys *host.System, cfg Config) (*Server, error) {
	return serve(ctx, cfg, nil, &served{sys: sys, metrics: cfg.metrics})
}

func serve(ctx context.Context, cfg Config, replay *recorded, of *served) (*Server, error) {
	if cfg.log == nil {
		return nil, errors.New("admin: the Config is not valid: make it with NewConfig")
	}
	s := &Server{
		cfg: cfg, replay: replay, sessions: sessions{most: cfg.bounds.sessions}, reading: make(chan struct{}, 1),
	}
	for h := range share(shares) {
		s.rooms[h] = h.room(cfg.bounds)
	}
	s.routes = routeTable()
	s.served.Store(of)
	s.ctx, s.end = context.WithCancelCause(ctx)
	if err := s.open(); err != nil {
		s.end(err)
		return nil, errors.Join(fmt.Errorf("admin: %w", err), s.Close())
	}
	go func() {
		<-s.ctx.Done()
		_ = s.Close()
	}()
	return s, nil
}

// open opens all listeners before any is served.
func (s *Server) open() error {
	type open struct {
		l net.Listener
		d *door
	}
	var all []open
	giveUp := func(err error) error {
		for _, o := range all {
			_ = o.l.Close()
		}
		return err
	}
	if s.cfg.socket != "" {
		l, err := endpoint.Listen(s.cfg.socket)
		if err != nil {
			return giveUp(err)
		}
		all = append(all, open{l, socketDoor()})
	}
	if s.cfg.tcp != "" {
		address, err := checkLoopback(s.cfg.tcp)
		if err != nil {
			return giveUp(err)
		}
		if s.cfg.full.isZero() {
			return giveUp(errors.New("TCP needs a token: every user of the machine can connect"))
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return giveUp(err)
		}
		s.tcp = l.Addr()
		all = append(all, open{l, tcpDoor(l.Addr())})
	}
	if s.cfg.health != "" {
		l, err := net.Listen("tcp", s.cfg.health)
		if err != nil {
			return giveUp(err)
		}
		s.health = l.Addr()
		all = append(all, open{l, &door{health: true}})
	}
	switch {
	case s.replay != nil: // which is the model
	case s.cfg.observer != nil:
		s.at().model = s.cfg.observer
	default:
		s.own = observe.New(s.at().sys, observe.Options{}.WithHistory())
		s.at().model = s.own
	}
	for _, o := range all {
		srv := s.httpServer(o.d)
		s.servers = append(s.servers, srv)
		l := limitedListener{o.l, &connLimit{most: s.cfg.bounds.connections, in: map[*limitedConn]struct{}{}}}
		s.limits = append(s.limits, l.limit)
		s.wg.Go(func() {
			if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				s.cfg.log.Error("the admin endpoint has ended", "error", err)
			}
		})
	}
	return nil
}

func (s *Server) httpServer(d *door) *http.Server {
	b := s.cfg.bounds
	return &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(d, w, r) }),
		ReadHeaderTimeout: b.headTime, ReadTimeout: b.readTime, WriteTimeout: b.readTime, IdleTimeout: b.idleTime,
		MaxHeaderBytes: b.header,
		ConnContext:    noteConn,
		BaseContext:    func(net.Listener) context.Context { return s.ctx },
		ErrorLog:       slog.NewLogLogger(s.cfg.log.Handler(), slog.LevelDebug),
	}
}

// served is the system that a server shows.
type served struct {
	sys     *host.System // nil: a recording is served
	model   model
	metrics http.Handler // nil: none
}

func (s *Server) at() *served { return s.served.Load() }

// Show goes on with another system, after the one before has ended: with its observer, which the caller closes, and
// its metrics, nil for none. Listeners, tokens and sessions stay. Streams of the system before have ended with its observer.
// It is for servers of systems.
func (s *Server) Show(sys *host.System, o *observe.Observer, metrics http.Handler) {
	s.served.Store(&served{sys, o, metrics})
	s.readiness.forget()
}

// Addr is the server's TCP address; nil if it does not listen on TCP.
func (s *Server) Addr() net.Addr { return s.tcp }

// HealthAddr is the address of the health listener; nil if there is none.
func (s *Server) HealthAddr() net.Addr { return s.health }

// errEnds is the reason why streams end with the server.
var errEnds = errors.New("the server ends")

// closeTime is how long answers that are under way may take at the end.
const closeTime = 2 * time.Second

// Close ends the server: streams are told, other answers may take two more seconds.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.end(errEnds)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		var wg sync.WaitGroup
		for _, srv := range s.servers {
			wg.Go(func() {
				if srv.Shutdown(ctx) != nil {
					_ = srv.Close()
				}
			})
		}
		wg.Wait()
		s.wg.Wait()
		if s.own != nil {
			s.own.Close()
		}
	})
	return nil
}
