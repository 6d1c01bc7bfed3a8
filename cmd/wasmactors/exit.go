package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1   // the bundle has failed
	exitUsage       = 2   // the command line or the manifest is wrong
	exitLines       = 3   // lines had an outcome that --fail-on names
	exitOutput      = 4   // answers cannot be written
	exitAbsent      = 5   // no such bundle runs, or it has no such actor
	exitHangup      = 129 // SIGHUP
	exitInterrupted = 130 // Ctrl-C
	exitTerminated  = 143 // SIGTERM
)

const exitCodes = "Exit codes: 0 done, 1 the bundle failed, 2 wrong usage, manifest or input, 3 an outcome that --fail-on names, 4 answers could\n" +
	"not be written, 5 the bundle or the actor is not there, 129 SIGHUP, 130 interrupted, 143 SIGTERM."

// usageError is a wrong command line or manifest.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// outputError is an answer that cannot be written.
type outputError struct{ err error }

func (e *outputError) Error() string { return "the answers cannot be written: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// linesError is a run some of whose lines had outcomes that are not accepted.
type linesError struct{ text string }

func (e *linesError) Error() string { return e.text }

// errSilent ends a command whose error was reported already.
var errSilent = errors.New("reported")

func exitCode(ctx context.Context, err error) int {
	var u *usageError
	var ds bundle.Diagnostics
	var out *outputError
	var lines *linesError
	var absent *unreachableError
	var sig *signalError
	var code *codeError
	switch {
	case ctx.Err() != nil:
		if errors.As(context.Cause(ctx), &sig) {
			switch sig.signal {
			case syscall.SIGTERM:
				return exitTerminated
			case syscall.SIGHUP:
				return exitHangup
			}
		}
		return exitInterrupted
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return code.code
	case errors.As(err, &u), errors.As(err, &ds):
		return exitUsage
	case errors.As(err, &out):
		return exitOutput
	case errors.As(err, &lines):
		return exitLines
	case errors.As(err, &absent):
		return exitAbsent
	}
	return exitFailed
}

// problem is one error in JSON.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Module  string `json:"module,omitempty"`
	Message string `json:"message"`
}

// problems splits a joined error.
func problems(err error) []problem {
	var list []problem
	switch e := err.(type) {
	case nil:
		return nil
	case bundle.Diagnostics:
		for _, d := range e {
			list = append(list, problem{File: d.File, Line: d.Line, Column: d.Column, Message: d.Message})
		}
		return list
	case *bundle.ModuleError:
		var broken *build.Error
		if errors.As(e.Err, &broken) {
			for _, p := range broken.Problems() {
				list = append(list, problem{File: p.File, Line: p.Line, Column: p.Column, Module: e.Module, Message: p.Message})
			}
			return list
		}
		bare := *e
		bare.File = ""
		return []problem{{File: e.File, Line: e.Line, Column: e.Column, Module: e.Module, Message: bare.Error()}}
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			list = append(list, problems(x)...)
		}
		return list
	}
	return []problem{{Message: strings.TrimPrefix(err.Error(), "wasmactors: ")}}
}

// report prints an error on standard error.
func (env *environment) report(err error, code int) {
	if env.json {
		env.writeJSON(map[string]any{"event": "error", "code": code, "problems": problems(err)})
		return
	}
	fmt.Fprintln(env.stderr, "wasmactors: "+strings.TrimPrefix(shown(err), "wasmactors: "))
}

// shown is an error as text. In a compiler's output, paths are relative to the present folder.
func shown(err error) string {
	switch e := err.(type) {
	case *bundle.ModuleError:
		var broken *build.Error
		if !errors.As(e.Err, &broken) {
			break
		}
		text := fmt.Sprintf("module %s: building %s has failed:", e.Module, near(broken.Dir))
		for _, p := range problems(e) {
			text += "\n" + p.String()
		}
		return text
	case interface{ Unwrap() []error }:
		var lines []string
		for _, x := range e.Unwrap() {
			lines = append(lines, shown(x))
		}
		return strings.Join(lines, "\n")
	}
	return err.Error()
}

// String is file:line:column: message, as far as it is known.
func (p problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return fmt.Sprintf("%s: %s", near(p.File), p.Message)
	case p.Column == 0:
		return fmt.Sprintf("%s:%d: %s", near(p.File), p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", near(p.File), p.Line, p.Column, p.Message)
}

// near makes a path relative to the present folder, if it lies in it.
func near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// writeJSON writes a line to standard error.
func (env *environment) writeJSON(v any) {
	if text, err := json.Marshal(v); err == nil {
		_, _ = env.stderr.Write(append(printable.JSON(text), '\n'))
	}
}
