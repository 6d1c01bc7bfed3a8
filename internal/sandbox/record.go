package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/slots"
)

// record is an image as the disk cache keeps it.
type record struct {
	meta     recordMeta
	module   []byte // the frozen module, or the instrumented one; nil if it was not read yet
	outline  []byte // the same without its code, see compileCached
	memory   []byte // what a fresh memory holds, if frozen
	initTime time.Duration
}

type recordMeta struct {
	Control     control
	Description abi.Description
	Batching    bool
	NotFrozen   string // why not, "" if frozen
	UsesGuest   bool
	UsesWASI    bool
	WasmBytes   int // of the module as given
	FrozenBytes int // of module
	MemoryBytes uint64
	BesideBytes uint64 // see heapBytes
	InitFuel    uint64
	Mutable     int    // globals
	NotSaved    string // why there are no snapshots
	Imports     []string
	Exports     []string
}

// recordPage is the size of the pages that are left out if they are zero.
const recordPage = 4096

var errRecord = errors.New("runtime: malformed image record")

// encode writes: length of meta, meta as JSON, length of the outline, the outline,
// then for each page of memory that is not all zero its number and contents.
func (r *record) encode() []byte {
	meta, err := json.Marshal(&r.meta)
	if err != nil {
		panic(err) // plain data always marshals
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(meta)))
	b = append(b, meta...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.outline)))
	b = append(b, r.outline...)
	for at := 0; at < len(r.memory); at += recordPage {
		page := r.memory[at : at+recordPage]
		if !isZero(page) {
			b = binary.LittleEndian.AppendUint32(b, uint32(at/recordPage))
			b = append(b, page...)
		}
	}
	return b
}

func isZero(p []byte) bool {
	for _, v := range p {
		if v != 0 {
			return false
		}
	}
	return true
}

// decodeRecord is the inverse. The cache has authenticated the bytes, but another version may
// have written them.
func decodeRecord(b []byte) (*record, error) { return decodeRecordWithin(b, slots.MaxMemory) }

// decodeRecordWithin also refuses a memory that is larger than it may be, before
// anything is allocated for it.
func decodeRecordWithin(b []byte, most uint64) (*record, error) {
	r := &record{}
	meta, b, ok := cut(b)
	if !ok || json.Unmarshal(meta, &r.meta) != nil {
		return nil, errRecord
	}
	if r.outline, b, ok = cut(b); !ok {
		return nil, errRecord
	}
	c, size := r.meta.Control, r.meta.MemoryBytes
	if size > most || size%slots.WasmPage != 0 {
		return nil, errRecord
	}
	if r.meta.NotFrozen != "" {
		if len(b) != 0 || !ringSize(c.InboxCap) || !ringSize(c.OutboxCap) {
			return nil, errRecord
		}
		return r, nil
	}
	r.memory = make([]byte, size)
	for len(b) > 0 {
		if len(b) < 4+recordPage {
			return nil, errRecord
		}
		at := uint64(binary.LittleEndian.Uint32(b)) * recordPage
		if at >= size {
			return nil, errRecord
		}
		copy(r.memory[at:], b[4:4+recordPage])
		b = b[4+recordPage:]
	}
	if c.check(r.memory) != nil {
		return nil, errRecord
	}
	return r, nil
}

func cut(b []byte) (part, rest []byte, ok bool) {
	if len(b) < 8 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
