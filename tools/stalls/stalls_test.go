package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// A toolchain whose scheduler has changed is told apart, not run unchanged.
func TestOtherSchedulersAreRefused(t *testing.T) {
	if _, err := stalling("package runtime\n"); err == nil || !strings.Contains(err.Error(), "tools/stalls") {
		t.Error(err)
	}
	twice := changes[0].from + changes[0].from
	if _, err := stalling(twice); err == nil {
		t.Error("a place that is there twice is changed")
	}
}

// On the stalling runtime a test that looks too early fails, and its output is kept; one that waits passes.
func TestEarlyTestsFail(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("builds a runtime: make tools")
	}
	early := "./" + filepath.Join("testdata", "early")
	o := options{every: 2, rounds: 1, workers: 1, timeout: time.Minute, out: t.TempDir()}
	var report strings.Builder
	failed, err := run(context.Background(), o, []string{early}, &report)
	if err != nil || failed != 1 || !strings.Contains(report.String(), "FAIL github.com/wasmactors/wasmactors/tools/stalls/testdata/early") {
		t.Fatalf("%d failed, %v\n%s", failed, err, &report)
	}
	kept, err := filepath.Glob(filepath.Join(o.out, "*early.1"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if out, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(out), "not done") {
		t.Errorf("%s %v", out, err)
	}
	o.run = "TestWaits"
	report.Reset()
	if failed, err := run(context.Background(), o, []string{early}, &report); err != nil || failed != 0 {
		t.Errorf("%d failed, %v\n%s", failed, err, &report)
	}
}

// A folder that is named stays, also if nothing is put into it; one of its own stays only with what has failed.
func TestNamedFoldersStay(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("builds a runtime: make tools")
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, out := range []string{t.TempDir(), ""} {
		o := options{every: 1, rounds: 1, workers: 1, timeout: time.Minute, out: out}
		if failed, err := run(context.Background(), o, []string{"../../internal/race"}, os.Stderr); err != nil || failed != 0 {
			t.Fatal(failed, err)
		}
		if out == "" {
			out = os.TempDir()
		}
		if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
			t.Error(left, err)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, o := range []options{{every: 0, rounds: 1, workers: 1}, {every: 1, rounds: 0, workers: 1}, {every: 1, rounds: 1}} {
		if _, err := run(context.Background(), o, []string{"."}, os.Stderr); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := run(context.Background(), options{every: 1, rounds: 1, workers: 1}, nil, os.Stderr); err == nil {
		t.Error("no packages are taken")
	}
}
