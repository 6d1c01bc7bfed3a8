package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pkg is a package with tests.
type pkg struct {
	ImportPath   string
	Dir          string
	TestGoFiles  []string
	XTestGoFiles []string

	binary string
}

// run builds the tests of the packages and runs them, and returns how many runs failed.
func run(ctx context.Context, o options, patterns []string, w io.Writer) (failed int, err error) {
	if len(patterns) == 0 {
		return 0, errors.New("no packages; try ./...")
	}
	if o.every < 1 || o.rounds < 1 || o.workers < 1 {
		return 0, errors.New("-every, -rounds and -workers are at least 1")
	}
	work, err := os.MkdirTemp("", "stalls")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "stalls-failed"); err != nil {
			return 0, err
		}
		defer os.Remove(o.out) // unless something is in it
	} else if err := os.MkdirAll(o.out, 0o700); err != nil {
		return 0, err
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return 0, err
	}
	if err := build(ctx, o, work, packages); err != nil {
		return 0, err
	}
	for round := 1; round <= o.rounds && ctx.Err() == nil; round++ {
		failed += o.all(ctx, round, packages, w)
	}
	if failed > 0 {
		fmt.Fprintf(w, "%d failed, see %s\n", failed, o.out)
	}
	return failed, ctx.Err()
}

// list returns those of the packages that have tests.
func list(ctx context.Context, patterns []string) (with []*pkg, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := d.Decode(p); err == io.EOF {
			return with, nil
		} else if err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			with = append(with, p)
		}
	}
}

// build makes a test binary of each package.
func build(ctx context.Context, o options, work string, packages []*pkg) error {
	changed, err := overlay(work)
	if err != nil {
		return err
	}
	for i, p := range packages {
		p.binary = filepath.Join(work, strconv.Itoa(i)+".test")
		args := []string{"test", "-c", "-overlay", changed, "-o", p.binary}
		if o.race {
			args = append(args, "-race")
		}
		cmd := exec.CommandContext(ctx, "go", append(args, p.ImportPath)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", p.ImportPath, err, out)
		}
	}
	return nil
}

// all runs each binary once, some at a time.
func (o *options) all(ctx context.Context, round int, packages []*pkg, w io.Writer) (failed int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan *pkg)
	for range o.workers {
		wg.Go(func() {
			for p := range next {
				start := time.Now()
				out, err := o.one(ctx, p)
				if ctx.Err() != nil {
					continue
				}
				mu.Lock()
				verdict := "ok  "
				if err != nil {
					verdict = "FAIL"
					failed++
					name := fmt.Sprintf("%s.%d", strings.ReplaceAll(p.ImportPath, "/", "_"), round)
					if err := os.WriteFile(filepath.Join(o.out, name), out, 0o600); err != nil {
						fmt.Fprintf(w, "%s\n%v\n", out, err)
					}
				}
				fmt.Fprintf(w, "%s %s %.1fs\n", verdict, p.ImportPath, time.Since(start).Seconds())
				mu.Unlock()
			}
		})
	}
	for _, p := range packages {
		next <- p
	}
	close(next)
	wg.Wait()
	return failed
}

func (o *options) one(ctx context.Context, p *pkg) ([]byte, error) {
	args := []string{"-test.count=1", "-test.timeout=" + o.timeout.String()}
	if o.short {
		args = append(args, "-test.short")
	}
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(o.every))
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = append(out, err.Error()...)
	}
	return out, err
}
