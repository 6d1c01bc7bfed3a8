package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endsWithin is how long an orderly end may take.
const endsWithin = 40 * time.Second

// server is the bundle as it runs, again and again with the same state.
type server struct {
	ctx         context.Context
	bin, bundle string
	dir         string // its state, and whatever else
	address     string
	url         string
	cmd         *exec.Cmd // nil: it does not run
	output      output
}

func newServer(ctx context.Context, bin, bundle string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chat")
	if err != nil {
		return nil, err
	}
	s := &server{ctx: ctx, bin: bin, bundle: bundle, dir: dir, address: address, url: "http://" + address}
	if err := s.start(); err != nil {
		s.close()
		return nil, fmt.Errorf("%w\nthe server says:\n%s", err, s.says())
	}
	return s, nil
}

// start begins a process, and waits until it serves.
func (s *server) start() error {
	s.cmd = exec.CommandContext(s.ctx, s.bin, "run", s.bundle, "--env", "LISTEN="+s.address, "--allow", "listen="+s.address, "--env", "IDLE=400ms", "--state", filepath.Join(s.dir, "state"))
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	var why error
	if err := until(s.ctx, func() bool { why = s.page(); return why == nil }); err != nil {
		return errors.Join(err, why)
	}
	return nil
}

// page gets the page, which is served when everything is.
func (s *server) page() error {
	r, err := http.Get(s.url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && (r.StatusCode != 200 || !strings.Contains(string(b), "chat.js")) {
		err = fmt.Errorf("the page: %d", r.StatusCode)
	}
	return err
}

// stop ends the process in good order; by SIGTERM, as a shell's background jobs ignore an interrupt. One that does not end is asked what it is doing: its goroutines are in what it says.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	process := s.cmd.Process
	late := time.AfterFunc(endsWithin, func() { _ = process.Signal(syscall.SIGQUIT) })
	err := s.cmd.Wait()
	late.Stop()
	s.cmd = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 143 {
		return nil
	}
	return fmt.Errorf("the server has ended with %v, want exit status 143", err)
}

// kill ends it at once.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) close() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// run runs another command of wasmactors, about this server.
func (s *server) run(args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, s.bin, append(args, "--bundle", strconv.Itoa(s.cmd.Process.Pid))...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
	}
	return string(out), err
}

func (s *server) says() string { return s.output.String() }

// output is what processes write; it may be read meanwhile.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
