package journal

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// An actor that stores much again and again, without a pause, is ahead of the record that has all of its key: each time another record is the
// last one by then, and the log replaces nothing. So beyond a bound its turn waits until the key is written anew. Otherwise there would be more
// of the key at last than can be read.

// mostOfKey is how many bytes of a key's records there may be, with the next one. What is needed of them is MaxBytes at most.
const mostOfKey = cluster.MaxRead / 2

// makeRoom has a key written anew, and then its turn go on that waits for it.
func (j *Journal) makeRoom(k *key) {
	j.mu.Lock()
	s := k.behind
	switch {
	case s == nil: // the shard was released
		j.mu.Unlock()
	case k.broken:
		k.behind = nil
		end := j.ended(s, ErrAnew)
		j.mu.Unlock()
		end()
	case k.bytes+int64(len(s.record)) <= mostOfKey:
		j.letBehind(k)
	case k.last == 0:
		j.mu.Unlock()
		j.lookAtKey(k)
	default:
		j.mu.Unlock()
		if !j.renew(k, true) {
			j.mu.Lock()
			j.letBehind(k) // all of it is needed
		}
	}
}

// letBehind has the record that waits follow; the caller holds the lock, which is given back.
func (j *Journal) letBehind(k *key) {
	s := k.behind
	if s == nil {
		j.mu.Unlock()
		return
	}
	k.behind = nil
	j.bytes -= int64(len(s.record)) // line counts it again
	begin := j.line(k.part, s)
	j.mu.Unlock()
	if begin {
		j.write(k.part)
	}
}

// roomMade goes on when a key was written anew, or not.
func (j *Journal) roomMade(k *key, err error) {
	switch {
	case err == nil:
		j.makeRoom(k)
	case errors.Is(err, cluster.ErrFull):
		j.mu.Lock()
		s := k.behind
		k.behind = nil
		end := func() {}
		if s != nil {
			end = j.ended(s, err)
		}
		j.mu.Unlock()
		end()
	default:
		k.tries++
		j.again(k.tries, func() { j.makeRoom(k) })
	}
}

// lookAtKey reads how much there is of a key, since it is not known whether it was written anew. If there is what this node has not written its
// actor begins again.
func (j *Journal) lookAtKey(k *key) {
	p := k.part
	j.mu.Lock()
	least, fence := p.high, k.fence
	j.mu.Unlock()
	j.opt.Log.Read(p.kind, p.no, k.name, least, onceRead(func(list []cluster.LogEntry, err error) {
		if err == nil {
			var h history
			if h, err = j.sort(k, fence, list); err == nil && (h.epoch != k.epoch || h.number != k.number) {
				err = ErrAnew
			}
			j.mu.Lock()
			if err == nil {
				k.last, k.bytes, k.records = h.last, h.bytes, len(list)
			} else {
				k.broken = true
			}
			j.mu.Unlock()
			j.makeRoom(k)
			return
		}
		k.tries++
		j.again(k.tries, func() { j.makeRoom(k) })
	}))
}
