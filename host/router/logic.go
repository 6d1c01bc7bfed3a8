package router

import (
	"math/bits"

	"github.com/wasmactors/wasmactors/host"
)

// Logic picks the routees that get a message. It belongs to one router, which calls it from one goroutine
// at a time, and must return soon.
type Logic interface {
	// Pick appends to picked the indexes of the routees that get m, from 0 to
	// len(routees)-1; there is at least one routee. If it picks none or fails, an asker is answered
	// with an error and the message goes nowhere. It must retain neither m nor routees.
	Pick(picked []int, m *host.Message, routees []Routee) ([]int, error)
}

// Changing is a logic that wants to know when the routees have changed, before it picks.
type Changing interface{ Changed(routees []Routee) }

// changed tells a logic.
func changed(l Logic, routees []Routee) {
	if c, ok := l.(Changing); ok {
		c.Changed(routees)
	}
}

// Make makes the logic of one incarnation of a router. The seed is its only randomness:
// it comes from the system's source, see [host.Head.Draw].
type Make func(seed uint64) Logic

// RoundRobin picks one after the other. It is a [Make].
func RoundRobin(uint64) Logic { return &roundRobin{} }

type roundRobin struct{ next int }

func (r *roundRobin) Pick(picked []int, _ *host.Message, routees []Routee) ([]int, error) {
	if r.next >= len(routees) {
		r.next = 0
	}
	r.next++
	return append(picked, r.next-1), nil
}

// Random picks any routee with equal probability. It is a [Make].
func Random(seed uint64) Logic { return &random{seed} }

type random struct{ state uint64 }

func (r *random) Pick(picked []int, _ *host.Message, routees []Routee) ([]int, error) {
	return append(picked, below(&r.state, len(routees))), nil
}

// below draws a number from 0 to n-1. The generator is SplitMix64 (Steele, Lea and Flood:
// Fast splittable pseudorandom number generators, 2014); mapping 64 bits to n
// values has a bias of less than 2^-50 for any n here.
func below(state *uint64, n int) int {
	*state += 0x9e3779b97f4a7c15
	hi, _ := bits.Mul64(mix(*state), uint64(n))
	return int(hi)
}

// mix is the finalizer of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SmallestMailbox picks a routee that is idle with nothing waiting, else one with nothing
// waiting, else the one with the fewest messages; of equal ones the first. A routee that handles no
// messages (it has failed, is delayed, paused) is picked only if all are so. It is a [Make].
func SmallestMailbox(uint64) Logic { return smallest{} }

type smallest struct{}

func (smallest) Pick(picked []int, _ *host.Message, routees []Routee) ([]int, error) {
	best, least := 0, int(^uint(0)>>1)
	for i := range routees {
		l, alive := routees[i].Load()
		if s := score(l, alive); s < least {
			if best, least = i, s; s == 0 {
				break
			}
		}
	}
	return append(picked, best), nil
}

// score orders routees, the least first.
func score(l host.Load, alive bool) int {
	const shut, gone = 1 << 40, 1 << 41
	s := 0
	switch {
	case !alive:
		return gone
	case l.Waiting > 0:
		s = 1 + l.Waiting
	case l.Running:
		s = 1
	}
	if !l.Open {
		s += shut
	}
	return s
}

// Broadcast picks all. An ask takes the first answer; those that come later are dead letters.
// It is a [Make].
func Broadcast(uint64) Logic { return everyone{} }

type everyone struct{}

func (everyone) Pick(picked []int, _ *host.Message, routees []Routee) ([]int, error) {
	for i := range routees {
		picked = append(picked, i)
	}
	return picked, nil
}
