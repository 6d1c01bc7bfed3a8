package cluster

import "fmt"

// Bounds of what a bundle may say of the size of its log, in bytes. The keepers have the last word: a log has no more than they give it.
const (
	LeastLog = 64 << 20
	MostLog  = 2 << 30
)

// Bounded is a log that refuses further records with ErrFull from seven eighths of most on, in bytes, at least LeastLog. What gives room
// is taken until log itself is full. log has to have a method Size, as those of keepers do, whose figure may be a second old. Without it,
// and with most 0, Bounded is log itself.
func Bounded(log Log, most uint64) Log {
	sized, ok := log.(interface{ Size() (used, most uint64) })
	if most == 0 || !ok {
		return log
	}
	return &bounded{log, sized.Size, most}
}

type bounded struct {
	Log
	size func() (used, most uint64)
	most uint64
}

// Size is how full it is.
func (b *bounded) Size() (used, most uint64) {
	used, most = b.size()
	if most == 0 || most > b.most {
		most = b.most
	}
	return used, most
}

// Append implements Log.
func (b *bounded) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	if used, _ := b.size(); used > b.most-b.most/8 {
		go done(0, fmt.Errorf("%w: cluster.journal.size is %d bytes, of which an eighth is left for what gives room", ErrFull, b.most))
		return
	}
	b.Log.Append(kind, shard, fence, name, record, done)
}
