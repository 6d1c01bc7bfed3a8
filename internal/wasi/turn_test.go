package wasi

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestArgsAndEnviron(t *testing.T) {
	g := newGuest(t)
	for _, test := range []struct{ sizes, get, text string }{
		{"args_sizes_get", "args_get", "actor\x00-v\x00"},
		{"environ_sizes_get", "environ_get", "KEY=value\x00"},
	} {
		g.want(errnoSuccess, test.sizes, atResult, atResult+4)
		count, size := g.u32(atResult), g.u32(atResult+4)
		if int(count) != strings.Count(test.text, "\x00") || int(size) != len(test.text) {
			t.Errorf("%s: %d strings, %d bytes", test.sizes, count, size)
		}
		g.want(errnoSuccess, test.get, atList, atData)
		if got := g.text(atData, size); got != test.text {
			t.Errorf("%s: %q, want %q", test.get, got, test.text)
		}
		at := uint32(atData)
		for i, one := range strings.SplitAfter(strings.TrimSuffix(test.text, "\x00"), "\x00") {
			if got := g.u32(uint32(atList + 4*i)); got != at {
				t.Errorf("%s: pointer %d is %d, want %d", test.get, i, got, at)
			}
			at += uint32(len(one))
		}
		g.want(errnoFault, test.get, atEnd-2, atData)
		g.want(errnoFault, test.get, atList, atEnd-2)
		g.want(errnoFault, test.sizes, atEnd-2, atResult)
		g.want(errnoFault, test.sizes, atResult, 0xffffffff)
	}
}

func TestClocks(t *testing.T) {
	g := newGuest(t)
	for clock := range uint64(2) {
		g.want(errnoSuccess, "clock_time_get", clock, 1, atResult)
		if got := g.u64(atResult); got != uint64(g.h.now) {
			t.Errorf("clock %d shows %d, want %d", clock, got, g.h.now)
		}
		g.want(errnoSuccess, "clock_res_get", clock, atResult)
		if got := g.u64(atResult); got != 1 {
			t.Errorf("clock %d has a resolution of %d", clock, got)
		}
	}
	g.want(errnoInval, "clock_time_get", 2, 1, atResult)
	g.want(errnoInval, "clock_res_get", 3, atResult)
	g.want(errnoFault, "clock_time_get", 0, 1, atEnd-7)
	g.want(errnoFault, "clock_res_get", 0, 0xffffffff)
}

func TestRandom(t *testing.T) {
	g := newGuest(t)
	g.want(errnoSuccess, "random_get", atData, 3)
	if got := g.text(atData, 4); got != "\x01\x02\x03\x00" {
		t.Errorf("%q", got)
	}
	g.h.charged = 0
	g.want(errnoSuccess, "random_get", 0, 1<<16)
	if g.h.charged < 1<<16 {
		t.Errorf("64 KiB cost %d", g.h.charged)
	}
	g.want(errnoFault, "random_get", 1, 1<<16)
	g.want(errnoFault, "random_get", 0xfffffff0, 0xfffffff0)
}

// TestChargeEndsTheTurn: work is paid for before it is done.
func TestChargeEndsTheTurn(t *testing.T) {
	g := newGuest(t)
	g.h.budget = 20 << 10
	defer func() {
		if _, ok := recover().(spent); !ok {
			t.Error("64 KiB of random bytes for 20 Ki units")
		}
		if g.text(randomChunk, 1) != "\x00" {
			t.Error("more was done than paid for")
		}
	}()
	g.call("random_get", 0, 1<<16)
}

func TestPollNeverWaits(t *testing.T) {
	g := newGuest(t)
	type sub struct {
		kind    byte
		subject uint32
		want    errno
	}
	subs := []sub{
		{eventClock, 0, errnoSuccess}, {eventClock, 1, errnoSuccess}, {eventClock, 2, errnoInval},
		{eventFdRead, 0, errnoSuccess}, {eventFdWrite, 1, errnoSuccess}, {eventFdRead, 3, errnoBadf},
		{9, 0, errnoInval},
	}
	p, _ := g.mod.Memory().Read(atData, uint32(len(subs)*subscriptionSize))
	for i, s := range subs {
		one := p[i*subscriptionSize:]
		binary.LittleEndian.PutUint64(one, uint64(1000+i))
		one[8] = s.kind
		binary.LittleEndian.PutUint32(one[16:], s.subject)
		binary.LittleEndian.PutUint64(one[24:], 1<<62) // a century or so
	}
	g.want(errnoSuccess, "poll_oneoff", atData, atList, uint64(len(subs)), atResult)
	if got := g.u32(atResult); int(got) != len(subs) {
		t.Fatalf("%d events, want %d", got, len(subs))
	}
	for i, s := range subs {
		at := uint32(atList + i*eventSize)
		if mark := g.u64(at); mark != uint64(1000+i) {
			t.Errorf("event %d: mark %d", i, mark)
		}
		if word := g.u32(at + 8); errno(word&0xffff) != s.want || byte(word>>16) != s.kind {
			t.Errorf("event %d: errno %d of kind %d, want %d of %d", i, word&0xffff, word>>16, s.want, s.kind)
		}
	}
	g.want(errnoInval, "poll_oneoff", atData, atList, 0, atResult)
	g.want(errnoInval, "poll_oneoff", atData, atList, maxSubscriptions+1, atResult)
	g.want(errnoFault, "poll_oneoff", atEnd-40, atList, 1, atResult)
	g.want(errnoFault, "poll_oneoff", atData, atEnd-30, 1, atResult)
	g.want(errnoFault, "poll_oneoff", atData, atList, 1, atEnd-3)
}

// The host is asked about polls that could end by the clock alone, and only those.
func TestPollAsksBeforeItWaits(t *testing.T) {
	g := newGuest(t)
	g.h.refuse = true
	now := uint64(g.h.now)
	type sub struct {
		kind  byte
		clock uint32
		time  uint64
		flags byte
	}
	for _, c := range []struct {
		name  string
		subs  []sub
		waits bool
	}{
		{"a while", []sub{{eventClock, 1, 1, 0}}, true},
		{"no while", []sub{{eventClock, 1, 0, 0}}, false},
		{"a point in time", []sub{{eventClock, 0, now + 1, clockAbsolute}}, true},
		{"now", []sub{{eventClock, 0, now, clockAbsolute}}, false},
		{"the first of two", []sub{{eventClock, 0, 9, 0}, {eventClock, 0, 1, clockAbsolute}}, false},
		{"both", []sub{{eventClock, 0, 9, 0}, {eventClock, 1, 7, 0}}, true},
		{"or input", []sub{{eventClock, 0, 9, 0}, {kind: eventFdRead}}, false},
		{"input", []sub{{kind: eventFdRead}}, false},
		{"a clock that is none", []sub{{eventClock, 2, 9, 0}}, false},
	} {
		p, _ := g.mod.Memory().Read(atData, uint32(len(c.subs)*subscriptionSize))
		clear(p)
		for i, s := range c.subs {
			one := p[i*subscriptionSize:]
			one[8], one[40] = s.kind, s.flags
			binary.LittleEndian.PutUint32(one[16:], s.clock)
			binary.LittleEndian.PutUint64(one[24:], s.time)
		}
		g.h.waited = 0
		want := errnoSuccess
		if c.waits {
			want = errnoNotsup
		}
		if got := g.call("poll_oneoff", atData, atList, uint64(len(c.subs)), atResult); got != want || (g.h.waited == 1) != c.waits {
			t.Errorf("%s: errno %d, asked %d times", c.name, got, g.h.waited)
		}
	}
}

func TestStandardStreams(t *testing.T) {
	g := newGuest(t)
	list, n := g.data("one ", "", "two")
	g.want(errnoSuccess, "fd_write", 1, list, n, atResult)
	if string(g.h.out) != "one two" || g.u32(atResult) != 7 {
		t.Errorf("stdout %q, %d bytes", g.h.out, g.u32(atResult))
	}
	g.want(errnoSuccess, "fd_write", 2|5<<32, list, n, atResult)
	if string(g.h.err) != "one two" {
		t.Errorf("stderr %q", g.h.err)
	}
	g.want(errnoSuccess, "fd_read", 0, list, n, atResult)
	if g.u32(atResult) != 0 {
		t.Error("standard input is not at its end")
	}
	g.want(errnoBadf, "fd_write", 0, list, n, atResult)
	g.want(errnoBadf, "fd_read", 1, list, n, atResult)
	g.want(errnoInval, "fd_write", 1, list, maxVectors+1, atResult)
	g.want(errnoFault, "fd_write", 1, atEnd-4, 1, atResult)
	g.want(errnoFault, "fd_write", 1, list, n, atEnd-3)
	before := len(g.h.out)
	g.mod.Memory().WriteUint32Le(atList+8, atEnd) // the second buffer, now out of memory
	g.mod.Memory().WriteUint32Le(atList+12, 1)
	g.want(errnoFault, "fd_write", 1, list, n, atResult)
	if len(g.h.out) != before {
		t.Error("something was written in spite of a wrong buffer")
	}
	for fd := range uint64(3) {
		g.want(errnoSuccess, "fd_close", fd)
		g.want(errnoSuccess, "fd_fdstat_get", fd, atResult)
		if kind := g.text(atResult, 1)[0]; kind != typeChar {
			t.Errorf("descriptor %d has type %d", fd, kind)
		}
		g.want(errnoSuccess, "fd_filestat_get", fd, atResult)
		g.want(errnoSuccess, "fd_fdstat_set_flags", fd, flagNonblock)
		g.want(errnoSpipe, "fd_tell", fd, atResult)
	}
	g.want(errnoBadf, "fd_prestat_get", 3, atResult)
	g.want(errnoBadf, "fd_close", 3)
}

// TestNoTable: a host without files has a nil table.
func TestNoTable(t *testing.T) {
	g := newGuest(t)
	g.h.files = nil
	g.h.files.Reset()
	if g.h.files.Open() != 0 {
		t.Error("open files in no table")
	}
	for i := range functions {
		f := &functions[i]
		if f.name == "proc_exit" {
			continue
		}
		args := make([]uint64, len(f.params))
		if len(args) > 0 {
			args[0] = 3
		}
		if no := g.call(f.name, args...); strings.HasPrefix(f.name, "fd_") && f.name != "fd_advise" && no != errnoBadf {
			t.Errorf("%s: errno %d", f.name, no)
		}
	}
}

// TestNoAllocation pins what guests do most.
func TestNoAllocation(t *testing.T) {
	g := newGuest(t)
	g.h.out = make([]byte, 0, 1<<20)
	list, n := g.data("some ", "text\n")
	for _, test := range []struct {
		name string
		args []uint64
	}{
		{"clock_time_get", []uint64{0, 0, atResult}},
		{"random_get", []uint64{atResult, 16}},
		{"fd_write", []uint64{1, list, n, atResult}},
		{"sched_yield", []uint64{0}},
		{"poll_oneoff", []uint64{atResult, atPath, 1, atList + 100}},
		{"environ_get", []uint64{atResult, atPath}},
	} {
		call := byName(t, test.name).goFunc()
		stack := make([]uint64, len(test.args))
		allocs := testing.AllocsPerRun(200, func() {
			copy(stack, test.args)
			g.h.out = g.h.out[:0]
			call(g.h, g.mod, stack)
			if errno(stack[0]) != errnoSuccess {
				t.Fatalf("%s: errno %d", test.name, stack[0])
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", test.name, allocs)
		}
	}
}
