package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/state"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// detachFlags are the flags for a run in the background.
func detachFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the bundle is up, and leave it running in the background; ps, describe and stop --all reach it"},
		&cli.StringFlag{Name: "log-file", Usage: "with --detach: append what would be printed to `FILE` (default: run.log in the bundle's folder for state)"},
	}
}

// notice is what a run in the background says to the command that has started it.
type notice struct {
	Bundle string `json:"bundle"`
	PID    int    `json:"pid"`
	Log    string `json:"log"`
}

// starter is the command that has started this process by run --detach, and waits; the zero value: there is none.
type starter struct {
	pipe *os.File
	log  string // where this process writes
}

func detached() starter {
	log := os.Getenv(detachedKey)
	if log == "" {
		return starter{}
	}
	_ = os.Unsetenv(detachedKey)
	return starter{inherited(), log}
}

// tellUp says that the bundle is up.
func (s starter) tellUp(m *bundle.Manifest) {
	if s.pipe != nil {
		_ = json.NewEncoder(s.pipe).Encode(notice{m.Name, os.Getpid(), s.log}) // the starter may have gone
		s.close()
	}
}

func (s starter) close() {
	if s.pipe != nil {
		_ = s.pipe.Close()
	}
}

// detachedKey is the variable that tells a process that run --detach has started it.
const detachedKey = "WASMACTORS_DETACHED"

// detach starts the same command in the background, and returns when its bundle is up.
func detach(c *cli.Context, env *environment, path string) error {
	switch {
	case c.String("input") == "-":
		return usage("--detach leaves the terminal, and --input - reads from it: --input needs a file")
	case c.String("admin") == "off":
		return usage("--detach needs --admin unix: nothing else could reach the bundle to end it")
	}
	name, err := logFile(c, path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return usage("--log-file: %s is not a file", name)
	}
	log, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return usage("--log-file: %v", err)
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := &exec.Cmd{Path: self, Args: os.Args, Env: append(os.Environ(), detachedKey+"="+name), Stdout: log, Stderr: log, ExtraFiles: []*os.File{tell}}
	if err := leave(cmd); err != nil {
		return errors.Join(err, tell.Close())
	}
	err = cmd.Start()
	_ = tell.Close()
	if err != nil {
		return fmt.Errorf("it cannot be started: %w", err)
	}
	up := make(chan *notice, 1)
	go func() {
		n := &notice{}
		if json.NewDecoder(io.LimitReader(ready, 64<<10)).Decode(n) != nil {
			n = nil // it has ended
		}
		up <- n
	}()
	select {
	case n := <-up:
		if n == nil {
			return ended(env, cmd, name, begin)
		}
		return tellDetached(env, n)
	case <-c.Context.Done(): // Ctrl-C before it is up
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have inherited that SIGINT is ignored
		giveUp := time.AfterFunc(2*stopGrace, func() { _ = cmd.Process.Kill() })
		defer giveUp.Stop()
		_ = cmd.Wait()
		return c.Context.Err()
	}
}

// logFile is the file that a run in the background writes to.
func logFile(c *cli.Context, path string) (string, error) {
	if name := c.String("log-file"); name != "" {
		return filepath.Abs(name)
	}
	vars, err := variables(c)
	if err != nil {
		return "", err
	}
	m, err := bundle.LoadWith(path, vars, all.Kinds()...)
	if err != nil {
		var ds bundle.Diagnostics
		if errors.As(err, &ds) {
			return "", err
		}
		return "", usage("%v", err)
	}
	dir, err := state.Default(m.File, m.Name)
	if err != nil {
		return "", usage("%w; --log-file names one", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", usage("%w; --log-file names another place", err)
	}
	return filepath.Join(dir, "run.log"), nil
}

// tellDetached prints what runs now.
func tellDetached(env *environment, n *notice) error {
	if env.json {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		return write(env.stdout, string(text)+"\n")
	}
	return write(env.stdout, fmt.Sprintf("bundle %s is up: process %d, which writes to %s\nwasmactors stop --all --bundle %d ends it\n", n.Bundle, n.PID, n.Log, n.PID))
}

// mostLog bounds what is printed of the log of a run that did not come up, in bytes.
const mostLog = 16 << 10

// ended prints why a run has ended before it was up, and returns its exit code.
func ended(env *environment, cmd *exec.Cmd, log string, begin int64) error {
	_ = cmd.Wait()
	text := ""
	if f, err := regular.Open(log); err == nil {
		if _, err := f.Seek(begin, io.SeekStart); err == nil {
			all, _ := io.ReadAll(io.LimitReader(f, mostLog))
			text = string(all)
		}
		_ = f.Close()
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		_, _ = io.WriteString(env.stderr, text+"\n")
	}
	return &codeError{cmd.ProcessState.ExitCode()}
}

// codeError is the exit code of a process that has said why itself.
type codeError struct{ code int }

func (e *codeError) Error() string {
	return fmt.Sprintf("it has ended before it was up, with exit code %d", e.code)
}
func (e *codeError) Unwrap() error { return errSilent }
