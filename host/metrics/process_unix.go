//go:build unix

package metrics

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func cpuSeconds() (float64, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, true
}

// residentBytes is known where /proc is.
func residentBytes() (float64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return float64(pages * uint64(os.Getpagesize())), err == nil
}

// anonymousBytes is known on Linux. What shares pages of a file is resident for each mapping that has touched them.
func anonymousBytes() (float64, bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(text, []byte("\nRssAnon:"))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	kb, err := strconv.ParseUint(string(bytes.TrimSuffix(bytes.TrimSpace(line), []byte(" kB"))), 10, 64)
	return float64(kb << 10), err == nil
}

// descriptors are known where /proc is. The one that reads them does not count.
func descriptors() (open, most float64, ok bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0, false
	}
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return float64(len(names) - 1), float64(limit.Cur), err == nil
}
