package durable

import (
	"cmp"
	"math"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// The log is one piece: a frame that one idle actor needs keeps all files behind it. So each checkpoint writes the oldest parts once more,
// as many as the log needs to stay within what it may have, and files are given back from its beginning.

// space says when parts are moved.
type space struct {
	little int64 // bytes of all parts and indexes that are moved each time: a checkpoint needs nothing before it then
	slack  int64 // bytes of files that are left beside three times those of parts and indexes
}

var usualSpace = space{little: 256 << 10, slack: 2 * leastDue}

// leastMoved is how many bytes a checkpoint may move, however little has happened since the last one.
const leastMoved = 1 << 20

// room is how many bytes the files may have behind the oldest part, and how many bytes of parts are moved at most for that.
func (c *making) room() (allowed, most int64) {
	s := c.store
	needed := s.chain.whole + s.chain.later
	s.book.Frames(func(_ uint32, x *dormant.Frame, share int) bool { needed += int64(share); return true })
	if c.compacts || needed <= s.space.little || s.used() > s.opt.Size/2 {
		return 0, math.MaxInt64
	}
	allowed = min(3*needed+s.space.slack, max(s.opt.Size/8, needed+needed/4+leastDue))
	return allowed, max(leastMoved, c.bytes+int64(len(c.packer.to)))
}

// forward moves the oldest parts. without are the actors of the checkpoint, and those that have gone.
func (c *making) forward(without map[abi.Ref]struct{}) error {
	s := c.store
	c.packer.cut() // what has not changed now may not change soon
	allowed, most := c.room()
	c.renews = s.log.SizeFrom(s.chain.begins) > allowed
	last, cost := uint32(0), int64(0)
	s.book.Frames(func(n uint32, x *dormant.Frame, share int) bool {
		if cost >= most || s.log.SizeFrom(wal.Position(x.Spots[0].Batch)) <= allowed {
			return false
		}
		cost, last = cost+int64(share), n
		return true
	})
	if last == 0 {
		return nil
	}
	all := s.book.In(last)
	slices.SortStableFunc(all, func(a, b dormant.Entry) int {
		return cmp.Or(cmp.Compare(a.Frame, b.Frame), cmp.Compare(a.Slot, b.Slot))
	})
	for _, e := range all {
		if _, ok := without[e.Ref]; ok {
			continue
		}
		part, err := s.shelf.of(e.At)
		if err != nil {
			return err
		}
		c.packer.move(e.Ref, part)
		c.moved++
	}
	c.packer.cut()
	return nil
}
