package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestScripts runs the commands of testdata/script in processes of their own.
func TestScripts(t *testing.T) {
	if race.Enabled {
		t.Skip("processes, not goroutines: the detector has nothing to see, and takes minutes")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the scripts use a shell")
	}
	abs := func(path string) string {
		p, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(out))
	if signal.Ignored(syscall.SIGHUP) { // by nohup: what the scripts run would ignore it as well
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGHUP)
		t.Cleanup(func() { signal.Stop(c) })
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ECHO", abs("../../host/testdata/echo.wasm"))
			e.Setenv("TALLY", abs("../../host/upgrade/testdata/wat"))
			e.Setenv("TRAP", abs("../../host/testdata/hostile/unreachable.wasm"))
			e.Setenv("DIVIDE", abs("../../host/testdata/hostile/divide.wasm"))
			e.Setenv("ECHO_SINGLE", abs("../../host/testdata/echo_single.wasm"))
			e.Setenv("FAMILY", abs("../../host/testdata/family"))
			e.Setenv("REPO", abs("../.."))
			e.Setenv("WASMACTORS_CACHE_DIR", testCache)
			e.Setenv("GOCACHE", caches[0])
			e.Setenv("GOMODCACHE", caches[1])
			e.Setenv("GOPROXY", "off")
			e.Setenv("TERM", "xterm-256color")
			e.Setenv("STALLS_EVERY", os.Getenv("STALLS_EVERY")) // what the scripts run stalls, too: see tools/stalls
			e.Setenv("XDG_RUNTIME_DIR", runtimeDir(t))          // each has its own running bundles
			return os.Mkdir(filepath.Join(e.WorkDir, "tmp"), 0o755)
		},
		Cmds: scriptCommands,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "long":
				return !testing.Short(), nil
			case "slow":
				return thorough.Slow, nil
			}
			return false, nil
		},
	})
}
