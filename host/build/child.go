package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// run starts a tool in a clean environment and a process group of its own, with a
// deadline and, where the system has it, a bound of memory. When it ends early, so
// does all that it has started. It returns the standard output.
func (c *compiler) run(ctx context.Context, dir, tmp, path string, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.o.Deadline, ErrDeadline)
	defer cancel()
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Dir, cmd.Env = dir, c.forTarget(tmp)
	cmd.WaitDelay = 2 * time.Second // in case a process that it has started holds the pipes open
	group(cmd)
	stdout, stderr := bounded{most: MaxModuleBytes}, bounded{most: maxOutput}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		limit(cmd.Process.Pid)
		err = cmd.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("building %s: %w: it was stopped after %v", dir, ErrDeadline, c.o.Deadline)
	case err != nil:
		text := stderr.String()
		if out := stdout.String(); args[0] == "build" {
			text += out[:min(len(out), maxOutput)]
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || strings.TrimSpace(text) == "" {
			text += fmt.Sprintf("%s %s: %v\n", path, args[0], err)
		}
		return nil, &Error{Dir: dir, Output: text, Hint: hint(text)}
	}
	return stdout.Bytes(), nil
}

// hint says what to do about errors that are due to how guests are built here.
func hint(output string) string {
	for text, what := range map[string]string{
		"GOVCS disallows":   "version control is off for builds: run `go mod download` in the guest's folder yourself, or vendor the modules",
		"GOTOOLCHAIN=local": "no other toolchain is downloaded for a bundle: install the Go that go.mod asks for",
	} {
		if strings.Contains(output, text) {
			return what
		}
	}
	return ""
}

// bounded keeps the first so many bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
