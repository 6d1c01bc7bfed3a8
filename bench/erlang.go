package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

//go:embed erlang/bench.erl
var erlangSource []byte

// openErlang starts a node that runs the same scenario and measures itself.
func openErlang(e *env) (*subject, error) {
	dir, err := os.MkdirTemp("", "wasmactors-erlang-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the node has loaded the code when it has answered
	file := filepath.Join(dir, "bench.erl")
	if err := os.WriteFile(file, erlangSource, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("erlc", "-o", dir, file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("erlc: %w: %s", err, out)
	}
	procs := strconv.Itoa(runtime.GOMAXPROCS(0))
	cmd := exec.Command("erl", "+S", procs+":"+procs, "+P", "2000000", "-noshell", "-pa", dir, "-eval", "bench:main([\""+e.b.name+"\"]).")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out := bufio.NewScanner(pipe)
	s := &subject{close: func() error { _ = in.Close(); return cmd.Wait() }}
	s.timed = func(n int) (float64, error) {
		if _, err := fmt.Fprintln(in, n); err != nil {
			return 0, err
		}
		if !out.Scan() {
			return 0, fmt.Errorf("the node has ended: %v", cmd.Wait())
		}
		ns, err := strconv.ParseFloat(out.Text(), 64)
		if err != nil {
			return 0, fmt.Errorf("%s", out.Text())
		}
		return ns, nil
	}
	switch e.b.name {
	case "fan-in", "fan-out":
		s.unit = fans * window
	case "pairs-1", "pairs-2":
		s.unit = pairs
	case "skynet":
		s.fixed = nodes(e.leaves(fewer["erlang"]))
	case "spawn-living", "memory-awake":
		s.fixed = e.some(10_000, 100)
	case "crash-queue":
		s.note = "sent one after the other: what is queued when a process dies is lost"
	}
	if _, err := s.timed(max(1, s.unit)); err != nil && s.fixed == 0 {
		return nil, err
	}
	return s, nil
}

func erlangVersion() string {
	out, err := exec.Command("erl", "-noshell", "-eval", `io:put_chars(erlang:system_info(otp_release)), halt().`).Output()
	if err != nil {
		return ""
	}
	return "OTP " + strings.TrimSpace(string(out))
}

var erlang = &contestant{
	name: "erlang", title: "Erlang/OTP", version: erlangVersion,
	opens:  erlangOpens(),
	absent: func() string { return lacksProgram("erl") },
	lacks:  map[string]string{},
}

func erlangOpens() map[string]func(*env) (*subject, error) {
	m := map[string]func(*env) (*subject, error){}
	for _, b := range []string{"ping-pong", "struct", "payload-1k", "payload-64k", "payload-1m", "fan-in", "fan-out", "pairs-1", "pairs-2", "ring", "skynet", "ask", "spawn-again", "spawn-living", "memory-awake", "crash", "crash-queue"} {
		m[b] = openErlang
	}
	return m
}
