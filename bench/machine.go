package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// guestsVariable tells a child where the guests are that its parent has built.
const guestsVariable = "WASMACTORS_BENCH_GUESTS"

// module is the version of a module that is linked in.
func module(path string) func() string {
	return func() string {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return ""
		}
		for _, d := range info.Deps {
			if d.Path == path {
				if d.Replace != nil && d.Replace.Version != "" {
					d = d.Replace
				}
				if strings.HasPrefix(d.Path, "github.com/wasmactors") {
					return commit()
				}
				return d.Version
			}
		}
		return ""
	}
}

// commit is what the sources are at, with + when they were changed.
func commit() string {
	out, err := exec.Command("git", "-C", sourceDir(), "describe", "--always", "--dirty=+", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// lacksProgram says that a program is not on PATH, "" if it is.
func lacksProgram(name string) string {
	if _, err := exec.LookPath(name); err != nil {
		return name + " is not installed"
	}
	return ""
}

// machine says what the figures were measured on.
func machine() map[string]any {
	m := map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "cores": runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m["cpu"] = strings.TrimSpace(v)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
		m["kernel"] = kernel
	}
	return m
}

// runQuiet runs a program; an error carries what it has written.
func runQuiet(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
