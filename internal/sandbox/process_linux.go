package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
)

// deathSignal is sent to the process when its parent dies. Tests can turn it off.
var deathSignal = syscall.SIGKILL

// processAttributes has the process be killed with the thread that has started it, and not
// get the signals of the terminal, such as Ctrl-C.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: deathSignal, Setpgid: true}
}

// ownPath is the running program, even if its file was replaced since.
func ownPath() (string, error) { return "/proc/self/exe", nil }

// closeInherited closes the files that the process has inherited from its parent by
// accident, but not those of Go's runtime.
func closeInherited() {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || fd <= 2 {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + n.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "/sys/fs/cgroup/") || strings.HasPrefix(to, "/proc/") {
			continue
		}
		_ = syscall.Close(fd)
	}
}

// limitProcess sets the kernel's limits, in case the watch comes too late. The limit on
// address space is added to what the process has reserved at its start.
func limitProcess(l compileLimits) {
	const slack = 128 << 20 // Go takes address space in pieces of 64 MiB
	var reserved uint64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseUint(pages, 10, 64)
		reserved = n * uint64(os.Getpagesize())
	}
	if reserved > 0 && !race.Enabled {
		atMost(syscall.RLIMIT_AS, reserved+l.Memory+l.Memory/4+slack)
	}
	seconds := uint64((l.Time+2*l.Init)/time.Second) + 2
	atMost(syscall.RLIMIT_CPU, seconds)
	atMost(syscall.RLIMIT_CORE, 0)
}

func atMost(resource int, n uint64) {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil && n < now.Max {
		_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n})
	}
}
