package main

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// layout is where in its memory a guest of the benchmarks writes while it handles a message.
type layout struct {
	guest string
	size  int
	pages []int
}

// In WAT the guest's state and its two rings; in standard Go what TestStartOfAnSDKGuestIsLean finds.
var layouts = []layout{
	{"WAT", 64 << 10, []int{0, 4 << 10, 8 << 10}},
	{"standard Go", 4 << 20, []int{0x13a000, 0x14a000, 0x180000, 0x188000, 0x18a000, 0x20e000, 0x23a000, 0x24e000}},
}

// pages measures what the machine takes for the memory of 10^4 guests without any guest: the floor of their starts, and
// of a hop around them. A page of an image is copied when it is first written to; hypervisors differ in that by a
// hundred times. Written to again, it is in no cache of the processor's.
func pages(l *lab) error {
	for _, x := range layouts {
		n := l.scale(10_000)
		first, again, err := x.measure(l, n)
		if err != nil {
			return err
		}
		if err := l.report.alone(fmt.Sprintf("the machine: first write to the %d pages of a guest in %s", len(x.pages), x.guest), "us", first, "each is a copy of the image's; the floor of a spawn"); err != nil {
			return err
		}
		if err := l.report.alone(fmt.Sprintf("the machine: a write to the %d pages of each of %d guests in %s", len(x.pages), n, x.guest), "ns", again, "around all of them; the floor of a hop"); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the time of the first writes to a guest's pages in microseconds, and of later ones in nanoseconds.
func (x layout) measure(l *lab, n int) (first, again float64, err error) {
	fd, err := unix.MemfdCreate("bench", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	if _, err := unix.Pwrite(fd, slices.Repeat([]byte{1}, x.size), 0); err != nil {
		return 0, 0, err
	}
	var firsts, agains []float64
	for round := range l.rounds {
		if round > 0 && l.over() {
			break
		}
		f, a, err := x.round(fd, n)
		if err != nil {
			return 0, 0, err
		}
		firsts, agains = append(firsts, f), append(agains, a)
	}
	return median(firsts), median(agains), nil
}

func (x layout) round(fd, n int) (first, again float64, err error) {
	space, err := unix.Mmap(-1, 0, n*x.size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = unix.Munmap(space) }()
	for i := range n {
		at := unsafe.Pointer(&space[i*x.size])
		if _, err := unix.MmapPtr(fd, 0, at, uintptr(x.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE); err != nil {
			return 0, 0, err
		}
	}
	around := func() time.Duration {
		began := time.Now()
		for i := range n {
			guest := space[i*x.size:][:x.size]
			for _, at := range x.pages {
				guest[at]++
			}
		}
		return time.Since(began)
	}
	began := around()
	const times = 5
	var all time.Duration
	for range times {
		all += around()
	}
	return float64(began.Nanoseconds()) / 1e3 / float64(n), float64(all.Nanoseconds()) / times / float64(n), nil
}
