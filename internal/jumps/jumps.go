// Package jumps makes jumps direct that a function takes through a table.
//
// WebAssembly has no goto. Go's compiler writes one as a number in a local and a branch to the head of a loop, where a
// table of branches sends it on:
//
//	loop $again
//	  block $two
//	    block $one
//	      block $zero
//	        local.get $next
//	        br_table $zero $one $two
//	      end ;; code zero
//	      i32.const 2
//	      local.set $next
//	      br $again
//	    end ;; code one
//	  end ;; code two
//
// Each jump costs the moves of all locals to where the loop's head expects them, a check of the meter, and an indirect branch. Where
// the table leads out of a block that is still open, the jump is forward, and can branch there itself: br $two. Those
// backward stay what they are.
package jumps

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Direct returns m with its forward jumps made direct, or m itself if it has none. It does not change m. Everything does
// what it did, but for the work of the jumps.
func Direct(m *wasm.Module) *wasm.Module {
	out := m
	var s scanner
	for i := range m.Code {
		code := s.direct(m.Code[i].Code)
		if code == nil {
			continue
		}
		if out == m {
			changed := *m
			out = &changed
			out.Code = slices.Clone(m.Code)
		}
		out.Code[i].Code = code
	}
	return out
}

// void is the type of a block without parameters and results.
const void = -64

// frame is an open block, loop or if.
type frame struct {
	number int // among all frames of the function
	table  int // index in scanner.tables, of a loop that begins with one; else -1
}

// table is the head of a loop: where the numbers in a local lead.
type table struct {
	local  uint32
	frames []int // numbers of the blocks that it leaves, that of the default last
}

// scanner has the memory that functions share.
type scanner struct {
	frames []frame
	opened int
	tables []table
	out    []byte
}

// direct is the code with its jumps, nil if none has changed.
func (s *scanner) direct(code []byte) []byte {
	s.frames, s.opened, s.tables = s.frames[:0], 0, s.tables[:0]
	s.open() // the function itself
	it := wasm.NewInstrs(code, 0)
	var before, last, in wasm.Instr // the two instructions before, and this one
	done, changed := 0, false
	head := -1 // index of the frame of a loop whose head is being read
	for {
		more, err := it.Next(&in)
		if err != nil {
			return nil // decoding has found it
		}
		if !more {
			break
		}
		switch in.Op {
		case wasm.OpLoop:
			head = -1
			if in.Block == void {
				head = len(s.frames)
			}
			s.open()
		case wasm.OpBlock:
			if in.Block != void {
				head = -1
			}
			s.open()
		case wasm.OpLocalGet: // of a head, if a br_table follows
		case wasm.OpBrTable:
			if head >= 0 && last.Op == wasm.OpLocalGet {
				s.read(head, last.X, it.Labels())
			}
			head = -1
		case wasm.OpIf:
			head = -1
			s.open()
		case wasm.OpEnd:
			head = -1
			if len(s.frames) > 0 {
				s.frames = s.frames[:len(s.frames)-1]
			}
		case wasm.OpBr:
			head = -1
			if last.Op != wasm.OpLocalSet || before.Op != wasm.OpI32Const {
				break
			}
			if depth, ok := s.ahead(in.X, last.X, before.X); ok {
				if !changed {
					s.out, changed = s.out[:0], true
				}
				s.out = append(s.out, code[done:in.Start]...)
				s.out = wasm.AppendU32(append(s.out, wasm.OpBr), depth)
				done = in.End
			}
		default:
			head = -1
		}
		before, last = last, in
	}
	if !changed {
		return nil
	}
	return slices.Concat(s.out, code[done:])
}

func (s *scanner) open() {
	s.frames = append(s.frames, frame{s.opened, -1})
	s.opened++
}

// read notes the table at the head of a loop, if all that it leads to is a block that was opened at the head: nothing but
// blocks without results lies between the loop and the table.
func (s *scanner) read(loop int, local uint32, labels []uint32) {
	t := table{local: local, frames: make([]int, len(labels))}
	for i, l := range labels {
		at := len(s.frames) - 1 - int(l)
		if at <= loop {
			t.frames[i] = -1 // the loop again, or out of it
			continue
		}
		t.frames[i] = s.frames[at].number
	}
	s.frames[loop].table = len(s.tables)
	s.tables = append(s.tables, t)
}

// ahead is the label of where a branch to a loop leads if the loop's table finds a number in its local; false if
// it does not lead out of a block that is open here.
func (s *scanner) ahead(label, local, number uint32) (depth uint32, ok bool) {
	loop := len(s.frames) - 1 - int(label)
	if loop < 0 || s.frames[loop].table < 0 {
		return 0, false
	}
	t := &s.tables[s.frames[loop].table]
	if t.local != local {
		return 0, false
	}
	to := t.frames[min(int(number), len(t.frames)-1)]
	if to < 0 {
		return 0, false
	}
	at, open := slices.BinarySearchFunc(s.frames, to, func(f frame, n int) int { return f.number - n })
	if !open {
		return 0, false
	}
	return uint32(len(s.frames) - 1 - at), true
}
