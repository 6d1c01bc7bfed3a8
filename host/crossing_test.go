package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
)

// Crash files are repeated on machines of another kind than they were written on. The tests of crash files leave
// theirs in the folder that crashFilesTo names; TestCrashFilesOfAnotherMachine repeats those of crashFilesFrom.
// `make arm64` runs both on amd64 and arm64.
const (
	crashFilesTo   = "WASMACTORS_TEST_CRASH_FILES_TO"
	crashFilesFrom = "WASMACTORS_TEST_CRASH_FILES_FROM"
)

// leave keeps a crash file, with its module, for another machine.
func leave(t *testing.T, f *blackbox.File, wasm []byte) {
	t.Helper()
	dir := os.Getenv(crashFilesTo)
	if dir == "" {
		return
	}
	with := *f
	with.Module = wasm
	b := with.Append(nil)
	sum := sha256.Sum256(b)
	name := filepath.Join(dir, runtime.GOARCH+"-"+f.Failure.Kind.String()+"-"+hex.EncodeToString(sum[:8])+blackbox.Suffix)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCrashFilesOfAnotherMachine(t *testing.T) {
	dir := os.Getenv(crashFilesFrom)
	if dir == "" {
		t.Skip("no crash files of another machine: see `make arm64`")
	}
	names := must(filepath.Glob(filepath.Join(dir, "*"+blackbox.Suffix)))(t)
	slices.Sort(names)
	engines := replayEngines(t)
	kinds := map[abi.FailureKind]int{}
	for _, name := range names {
		f := must(blackbox.Decode(must(os.ReadFile(name))(t)))(t)
		if r := reproduces(t, engines, f, nil); r != nil && r.Reproduced {
			kinds[f.Failure.Kind]++
		}
	}
	t.Logf("of %d files reproduced, by failure: %v", len(names), kinds)
	for _, k := range []abi.FailureKind{abi.FailureTrap, abi.FailureGuestPanic, abi.FailureGuestError, abi.FailureFuel, abi.FailureMemoryLimit,
		abi.FailureStackOverflow, abi.FailureABIViolation, abi.FailureExit, abi.FailureKilled, abi.FailureDeadline} {
		if kinds[k] == 0 {
			t.Errorf("no %v was repeated", k)
		}
	}
}
