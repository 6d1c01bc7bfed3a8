package wasi

import "encoding/binary"

// clockResGet answers one nanosecond for the two clocks that exist.
func clockResGet(_ Host, m memory, s []uint64) errno {
	if !isClock(uint32(s[0])) {
		return errnoInval
	}
	return m.put64(s[1], 1)
}

// clockTimeGet answers the turn's time; the precision asked for does not matter.
func clockTimeGet(h Host, m memory, s []uint64) errno {
	if !isClock(uint32(s[0])) {
		return errnoInval
	}
	return m.put64(s[2], uint64(h.Now()))
}

// isClock: 0 is the wall clock, 1 the monotonic one. What a process or a thread
// has used of the processor is not for guests to know: it is not deterministic.
func isClock(id uint32) bool { return id <= 1 }

// randomChunk is how many random bytes are paid for at a time.
const randomChunk = 16 << 10

func randomGet(h Host, m memory, s []uint64) errno {
	p, ok := m.bytes(s[0], s[1])
	if !ok {
		return errnoFault
	}
	for len(p) > 0 {
		n := min(len(p), randomChunk)
		h.Charge(uint64(n) * unitsPerRandom)
		h.Random(p[:n])
		p = p[n:]
	}
	return errnoSuccess
}

func schedYield(Host, memory, []uint64) errno { return errnoSuccess }

func exit(h Host, code uint32) {
	if h != nil {
		h.Exit(code)
	}
	panic(&ExitError{Code: code})
}

// Subscriptions and events of poll_oneoff.
const (
	maxSubscriptions = 128
	subscriptionSize = 48
	eventSize        = 32

	eventClock   = 0
	eventFdRead  = 1
	eventFdWrite = 2
)

// clockAbsolute is the flag of a subscription to a point in time.
const clockAbsolute = 1

// waits reports whether nothing but times that have not come are asked for.
func waits(h Host, in []byte) bool {
	for ; len(in) > 0; in = in[subscriptionSize:] {
		if in[8] != eventClock || !isClock(binary.LittleEndian.Uint32(in[16:])) {
			return false
		}
		time := binary.LittleEndian.Uint64(in[24:])
		now := uint64(0)
		if in[40]&clockAbsolute != 0 {
			now = uint64(max(h.Now(), 0))
		}
		if time <= now {
			return false
		}
	}
	return true
}

// pollOneoff reports every subscription as ready. A turn cannot wait: a time that
// is asked for counts as come, unless the host refuses, and a descriptor never
// blocks.
func pollOneoff(h Host, m memory, s []uint64) errno {
	n := s[2] & 0xffffffff
	if n == 0 || n > maxSubscriptions {
		return errnoInval
	}
	in, ok := m.bytes(s[0], n*subscriptionSize)
	if !ok {
		return errnoFault
	}
	out, ok := m.bytes(s[1], n*eventSize)
	if !ok {
		return errnoFault
	}
	h.Charge(n * 16)
	if waits(h, in) && !h.Wait() {
		return errnoNotsup
	}
	if e := m.put32(s[3], uint32(n)); e != errnoSuccess {
		return e
	}
	for ; n > 0; n-- {
		var event [eventSize]byte
		kind := in[8]
		e := errnoSuccess
		switch subject := binary.LittleEndian.Uint32(in[16:]); kind {
		case eventClock:
			if !isClock(subject) {
				e = errnoInval
			}
		case eventFdRead, eventFdWrite:
			if subject > 2 && h.Files().get(subject) == nil {
				e = errnoBadf
			}
		default:
			e = errnoInval
		}
		copy(event[:8], in[:8]) // the guest's own mark
		binary.LittleEndian.PutUint16(event[8:], uint16(e))
		event[10] = kind
		copy(out, event[:])
		in, out = in[subscriptionSize:], out[eventSize:]
	}
	return errnoSuccess
}
