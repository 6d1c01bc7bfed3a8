//go:build unix

package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
)

// scarceChild is set in the process that has few descriptors.
const scarceChild = "WASMACTORS_TEST_FEW_DESCRIPTORS"

// TestFewDescriptors: a process with 100 descriptors answers although 300 connections were opened and left, and
// opens files all the time.
func TestFewDescriptors(t *testing.T) {
	if os.Getenv(scarceChild) != "" {
		fewDescriptors(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestFewDescriptors$")
	child.Env = append(os.Environ(), scarceChild+"=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	child.Stderr = &log
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	defer func() { _ = in.Close() }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal(log.String())
	}
	address := lines.Text()
	for range 300 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); os.IsTimeout(err) {
			t.Fatal("a connection is left to hang")
		}
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r, err := client.Get("http://" + address + "/")
		if err == nil {
			text, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if string(text) != "a file was opened" {
				t.Errorf("%q", text)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if text := log.String(); !strings.Contains(text, "out of file descriptors") {
		t.Errorf("nothing is said: %q", text)
	}
}

func fewDescriptors(t *testing.T) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
		t.Skip(err)
	}
	s := open(t, gateway.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/a"}}}},
		map[string]host.Props{"a": answering(func(*host.Context) any {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return []any{500, nil, err.Error()}
			}
			_ = f.Close()
			return []any{200, nil, "a file was opened"}
		})})
	fmt.Println(s.g.Addrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}
