package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// form says what a record is.
type form byte

const (
	turnForm  form = iota + 1 // what a turn has stored
	wholeForm                 // all that there was of the key
	fenceForm
	listForm    // keys that live from now on, and that do not, see living.go
	allForm     // all keys that live
	formVersion = 1
)

// frame is a record of the log. Records of a key count in the order of their epochs and numbers: one that comes later and has not a
// greater one is a copy that was under way.
type frame struct {
	form   form
	epoch  uint64 // of the shard, when it was written
	number uint64 // among the records of the epoch; of a fence: which try it was
	owner  owner  // of a fence
	data   []byte
}

// owner is a life of a node.
type owner struct {
	node uint16
	born uint64
}

func (f *frame) encode() []byte {
	b := binary.AppendUvarint([]byte{formVersion, byte(f.form)}, f.epoch)
	b = binary.AppendUvarint(b, f.number)
	if f.form == fenceForm {
		return binary.AppendUvarint(binary.AppendUvarint(b, uint64(f.owner.node)), f.owner.born)
	}
	return append(b, f.data...)
}

var errFrame = errors.New("journal: the log has a record that no node writes")

// decodeFrame reads a record. Its data is part of b.
func decodeFrame(b []byte) (f frame, err error) {
	if len(b) < 4 || len(b) > cluster.MaxRecord || b[0] != formVersion || form(b[1]) < turnForm || form(b[1]) > allForm {
		return f, fmt.Errorf("%w: its head is %.8x", errFrame, b)
	}
	f.form, b = form(b[1]), b[2:]
	ok := true
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	if f.epoch, f.number = next(), next(); f.form == fenceForm {
		node := next()
		f.owner = owner{uint16(node), next()}
		ok = ok && node < 1<<16 && len(b) == 0
	}
	if !ok {
		return frame{}, fmt.Errorf("%w: its numbers are none", errFrame)
	}
	f.data = b
	return f, nil
}
