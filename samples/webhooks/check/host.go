package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// How the sample runs here: in small, and in a hurry.
const (
	open     = 100
	timeout  = 250 * time.Millisecond
	password = "of an operator"
)

var environment = []string{
	"OPEN=" + strconv.Itoa(open), "ATTEMPTS=9", "FIRST_PAUSE=30ms", "LONGEST_PAUSE=600ms", "LEASE=5s", "TIMEOUT=" + timeout.String(),
}

// host is the sample in a process, with a folder for its state that outlives it.
type host struct {
	ctx              context.Context
	bin, bundle, dir string
	url              string
	args             []string
	cmd              *exec.Cmd
	ended            chan error
}

func newHost(ctx context.Context, bin, bundle, destination string) (*host, error) {
	dir, err := os.MkdirTemp("", "webhooks")
	if err != nil {
		return nil, err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return nil, err
	}
	operators := filepath.Join(dir, "operators")
	if err := os.WriteFile(operators, []byte("operator:"+string(hash)+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	h := &host{ctx: ctx, bin: bin, bundle: bundle, dir: dir, url: "http://" + address}
	h.args = []string{"run", bundle, "--state", filepath.Join(dir, "state"), "--reports", "none",
		"--allow", "listen=" + address, "--allow", "connect=" + destination, "--allow", "connect=loopback", "--allow", "read=" + operators,
		"--allow", "env=WEBHOOK_SECRET_SHOP", "--allow", "env=WEBHOOK_SECRET_BANK"}
	for _, v := range append(environment, "LISTEN="+address, "DESTINATION="+destination, "OPERATORS="+operators) {
		h.args = append(h.args, "--env", v)
	}
	return h, nil
}

// start runs the sample, and waits until it answers.
func (h *host) start() error {
	log, err := os.OpenFile(filepath.Join(h.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	h.cmd = exec.Command(h.bin, h.args...)
	h.cmd.Env = h.env()
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(h.cmd, h.ended)
	for {
		res, err := http.Get(h.url + "/ready")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == 200 {
				return nil
			}
		}
		select {
		case err := <-h.ended:
			h.cmd = nil
			return fmt.Errorf("the host has ended: %w", err)
		case <-h.ctx.Done():
			return fmt.Errorf("the host is not ready: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (h *host) env() []string {
	return append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(h.dir, "run"), "WEBHOOK_SECRET_SHOP="+secret("shop"), "WEBHOOK_SECRET_BANK="+secret("bank"))
}

// kill is kill -9.
func (h *host) kill() error {
	if err := h.cmd.Process.Kill(); err != nil {
		return err
	}
	<-h.ended
	h.cmd = nil
	return nil
}

// crash has so many actors fail, as an operator can.
func (h *host) crash(pattern string, want int) error {
	cmd := exec.CommandContext(h.ctx, h.bin, "crash", pattern, "--bundle", strconv.Itoa(h.cmd.Process.Pid))
	cmd.Env = h.env()
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "\n"); err != nil || n != want {
		return fmt.Errorf("%s: %d actors have crashed, not %d: %w\n%s", pattern, n, want, err, out)
	}
	return nil
}

// stop ends it in good order.
func (h *host) stop() {
	if h.cmd == nil {
		return
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.ended:
	case <-time.After(10 * time.Second):
		_ = h.cmd.Process.Kill()
		<-h.ended
	}
}

// showLog writes the end of the log.
func (h *host) showLog() {
	f, err := os.Open(filepath.Join(h.dir, "log"))
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 8<<10 {
		_, _ = f.Seek(-8<<10, io.SeekEnd)
	}
	_, _ = io.Copy(os.Stderr, f)
}

func (h *host) remove() { _ = os.RemoveAll(h.dir) }
