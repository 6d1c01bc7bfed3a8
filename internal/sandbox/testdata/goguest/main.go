// Command goguest is a guest in Go on the bare contract, without an SDK. It
// does what the first byte of a message says and answers with one send, whose
// correlation is the result.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"
)

//go:wasmimport wasmactors next
func next(outboxLen uint32) uint32

var (
	inbox   [16 << 10]byte
	outbox  [16 << 10]byte
	about   = []byte("\xa3\x63abi\x01\x63sdk\x64bare\x65types\x81\x62go")
	control [8]uint32

	lives  uint64
	words  = map[string]int{"zero": 0}
	hoard  [][]byte
	nobody *uint64
	touch  = func() {} // see late.go
)

func main() {}

func addr[T any](p *T) uint32 { return uint32(uintptr(unsafe.Pointer(p))) }

//go:wasmexport wasmactors_init
func start() uint32 {
	control = [8]uint32{1, addr(&inbox[0]), uint32(len(inbox)), addr(&outbox[0]), uint32(len(outbox)), addr(&about[0]), uint32(len(about)), 0}
	return addr(&control[0])
}

//go:wasmexport wasmactors_turn
func turn(inboxLen uint32) uint32 {
	in, out := inbox[:inboxLen], outbox[:0]
	for next(uint32(len(out))) != 0 {
		in = in[2:] // the array's head and the kind
		for range 3 {
			in = in[skip(in):] // time, sender, correlation
		}
		in = in[1:] // no headers
		size := int(in[0] & 31)
		what := in[1]
		in = in[1+size:]
		result := act(what)
		out = append(out, 0x86, 0, 7, 0x1b)
		out = binary.BigEndian.AppendUint64(out, result|1<<63)
		out = append(out, 0, 0xf6, 0x40, 0xf6)
	}
	return uint32(len(out))
}

func skip(b []byte) int {
	if n := b[0] & 31; n >= 24 {
		return 1 + 1<<(n-24)
	}
	return 1
}

func act(what byte) uint64 {
	switch what {
	case 1:
		panic("out of coffee")
	case 2:
		return *nobody
	case 3:
		for {
		}
	case 4:
		for {
			hoard = append(hoard, make([]byte, 1<<20))
			hoard[len(hoard)-1][5] = 1
		}
	case 5:
		fmt.Println("to stdout")
		fmt.Fprint(os.Stderr, "to stderr\nwithout an end")
	case 6:
		os.Exit(3)
	case 7:
		return uint64(time.Now().UnixNano())
	case 8:
		var b [8]byte
		rand.Read(b[:])
		return binary.LittleEndian.Uint64(b[:])
	case 9:
		return recurse(what)
	case 10:
		lives++
		words[strings.Repeat("x", int(lives))]++
		return lives + uint64(len(words))
	case 11:
		hoard = append(hoard, make([]byte, 8<<20))
		for i := 0; i < 8<<20; i += 4096 {
			hoard[len(hoard)-1][i] = 1
		}
	case 12:
		return uint64(len(os.Getenv("GREETING")))
	case 17:
		touch()
	default:
		return wait(what)
	}
	return 0
}

// wait is what a turn must not do, from 20 on; and what looks like it.
func wait(what byte) uint64 {
	switch what {
	case 13: // goroutines that end within the turn
		results := make(chan uint64)
		for i := range uint64(3) {
			go func() { results <- i }()
		}
		return <-results + <-results + <-results
	case 14: // goroutines that are left behind
		go func() { <-never }()
		go func() { time.Sleep(time.Hour) }()
		time.AfterFunc(time.Minute, func() {})
		runtime.Gosched()
	case 15:
		for range 3 {
			runtime.GC()
		}
	case 16: // a time that has come
		<-time.After(0)
		time.Sleep(0)
	case 20:
		time.Sleep(time.Millisecond)
	case 21:
		<-never
	case 22:
		select {}
	case 23:
		select {
		case <-never:
		case <-time.After(time.Second):
		}
	case 24:
		var mu sync.Mutex
		mu.Lock()
		mu.Lock()
	case 25:
		go func() {
			time.Sleep(time.Hour)
			never <- 1
		}()
		<-never
	}
	return 0
}

var never = make(chan int)

//go:noinline
func recurse(n byte) uint64 { return recurse(n+1) + 1 }
