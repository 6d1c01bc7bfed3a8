package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// start measures the whole life of a process, `wasmactors run` of samples/hello
// with its four messages: with what the first run has left in the cache, next to
// that first run. Go's own build cache is warm for both.
func start(l *lab) error {
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Dir(l.dir)
	exe, err := l.command()
	if err != nil {
		return err
	}
	hello := filepath.Join(root, "samples", "hello")
	run := func(cache string) (float64, error) {
		cmd := exec.CommandContext(l.ctx, exe, "run", hello, "--compiler", "go", "--quiet", "--input", filepath.Join(hello, "input.ndjson"), "--cache-dir", cache)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		began := time.Now()
		err := cmd.Run()
		took := time.Since(began)
		if err != nil || bytes.Count(out.Bytes(), []byte(`"reply":"hello `)) != 3 {
			return 0, fmt.Errorf("%s: %v\n%s%s", hello, err, &out, &errs)
		}
		return float64(took.Microseconds()) / 1e3, nil
	}
	caches := 0
	cold := func() (float64, error) {
		caches++
		return run(filepath.Join(dir, fmt.Sprint("cache", caches)))
	}
	if _, err := cold(); err != nil { // for Go's build cache
		return err
	}
	warm := func() (float64, error) {
		var took []float64
		for range l.scale(20) {
			ms, err := run(filepath.Join(dir, fmt.Sprint("cache", caches)))
			if err != nil {
				return 0, err
			}
			took = append(took, ms)
		}
		return median(took), nil
	}
	second, first, err := l.interleave(warm, cold)
	if err != nil {
		return err
	}
	if err := l.report.compare(startBench, "ms", second, first, "the whole process, four messages included; baseline: the first start"); err != nil {
		return err
	}
	floor, err := l.repeat(func() (float64, error) {
		began := time.Now()
		err := exec.CommandContext(l.ctx, exe, "version").Run()
		return float64(time.Since(began).Microseconds()) / 1e3, err
	})
	if err != nil {
		return err
	}
	return l.report.alone("wasmactors version, a process that does nothing", "ms", floor, "part of every start")
}
