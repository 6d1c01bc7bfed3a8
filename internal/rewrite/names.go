package rewrite

import (
	"sort"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// names writes a name section for the rewritten module, so that stack traces have names: the
// guest's, and those of injected functions. Malformed parts of the guest's section are left
// out, since nothing but traces depends on it.
func (in *instrumenter) names() {
	type entry struct {
		index uint32
		name  []byte
	}
	entries := []entry{
		{in.refuel, []byte("wasmactors.refuel")},
		{in.exceeded, []byte("wasmactors.exceeded")},
		{in.nextFunc, []byte("wasmactors.next")},
		{in.enterFunc, []byte("wasmactors.enter")},
	}
	for k, needed := range in.needs {
		if needed {
			entries = append(entries, entry{in.chargers[k], []byte(chargerNames[k])})
		}
	}
	data, _ := in.src.FindCustom("name")
	seen := map[uint32]bool{in.refuel: true, in.exceeded: true, in.nextFunc: true, in.enterFunc: true}
	for f, name := range FunctionNames(data) {
		if int(f) < len(in.index) && !seen[in.index[f]] {
			seen[in.index[f]] = true
			entries = append(entries, entry{in.index[f], name})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].index < entries[j].index })
	body := wasm.AppendU32(nil, uint32(len(entries)))
	for _, e := range entries {
		body = wasm.AppendU32(body, e.index)
		body = append(wasm.AppendU32(body, uint32(len(e.name))), e.name...)
	}
	section := append(wasm.AppendU32([]byte{1}, uint32(len(body))), body...)
	in.out.Customs = []wasm.Custom{{Name: "name", Data: section}}
}

// FunctionNames reads the function subsection of a name section.
func FunctionNames(b []byte) map[uint32][]byte {
	names := map[uint32][]byte{}
	for len(b) > 0 {
		id := b[0]
		size, rest, ok := leb(b[1:])
		if !ok || uint64(size) > uint64(len(rest)) {
			return names
		}
		sub := rest[:size]
		b = rest[size:]
		if id != 1 {
			continue
		}
		n, sub, ok := leb(sub)
		for ; ok && n > 0; n-- {
			var f, l uint32
			if f, sub, ok = leb(sub); !ok {
				break
			}
			if l, sub, ok = leb(sub); !ok || uint64(l) > uint64(len(sub)) {
				break
			}
			if l <= maxName && utf8.Valid(sub[:l]) {
				names[f] = sub[:l]
			}
			sub = sub[l:]
		}
	}
	return names
}

// maxName is the longest function name that is kept, in bytes.
const maxName = 1024

func leb(b []byte) (uint32, []byte, bool) {
	var v uint64
	for i := 0; i < 5 && i < len(b); i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return uint32(v), b[i+1:], v < 1<<32
		}
	}
	return 0, nil, false
}
