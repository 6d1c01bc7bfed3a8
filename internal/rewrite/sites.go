package rewrite

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// site says that code stands for an instruction of the module.
type site struct {
	at   uint32 // where it begins, in the body
	from uint32 // in the code section of the module
}

// sites are those of a body, in order.
type sites struct {
	kept bool
	now  uint32
	list []site
}

// standFor says that what is emitted from here on stands for an instruction.
func (w *writer) standFor(from uint32) {
	s := &w.sites
	s.now = from
	if !s.kept {
		return
	}
	at := uint32(len(w.buf))
	if n := len(s.list); n > 0 && s.list[n-1].at == at {
		s.list[n-1].from = from
		return
	}
	s.list = append(s.list, site{at, from})
}

// cut forgets what has begun behind a place: the code there is emitted again.
func (s *sites) cut(at int) {
	for n := len(s.list); n > 0 && s.list[n-1].at > uint32(at); n-- {
		s.list = s.list[:n-1]
	}
}

// noteBlock sets GlobalBlock.
func (w *writer) noteBlock() {
	if !w.noted {
		return
	}
	w.get(0)
	w.op(opI64ExtendI32)
	w.i64(1 << 32)
	w.op(opI64Or)
	w.global(wasm.OpGlobalSet, w.in.block)
}

// Sites knows which instructions the code of a rewritten module stands for. Offsets count from the begin of the contents of the code section,
// as those of DWARF do.
type Sites struct {
	at, from []uint32
}

// Sites are those of the module, frozen or not; nil without Options.Sites.
func (r *Result) Sites() *Sites {
	if !r.in.opt.Sites {
		return nil
	}
	s := &Sites{}
	at := len(wasm.AppendU32(nil, uint32(len(r.Module.Code))))
	var scratch []byte
	for i := range r.Module.Code {
		c := &r.Module.Code[i]
		scratch = wasm.AppendU32(scratch[:0], uint32(len(c.Locals)))
		for _, g := range c.Locals {
			scratch = append(wasm.AppendU32(scratch, g.N), byte(g.Type))
		}
		size := len(scratch) + len(c.Code)
		at += len(wasm.AppendU32(nil, uint32(size)))
		if i == len(r.in.sites) { // what follows was injected
			s.at, s.from = append(s.at, uint32(at)), append(s.from, 0)
			break
		}
		for _, x := range r.in.sites[i] {
			s.at, s.from = append(s.at, uint32(at+len(scratch))+x.at), append(s.from, x.from)
		}
		at += size
	}
	return s
}

// Of is the instruction that the code at an offset stands for; 0: it stands for none.
func (s *Sites) Of(offset uint64) uint64 {
	if offset > 1<<32-1 {
		return 0
	}
	k, exact := slices.BinarySearch(s.at, uint32(offset))
	if !exact {
		k--
	}
	if k < 0 {
		return 0
	}
	return uint64(s.from[k])
}
