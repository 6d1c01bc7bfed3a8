package cluster

import "fmt"

// Bounds of what a bundle may say of the size of its log, in bytes. The keepers have the last word: a log has no more than they give it.
const (
	LeastLog = 64 << 20
	MostLog  = 2 << 30
)

// Bounded is a log that takes no more records when it has seven eighths of so many bytes, at least LeastLog, or when log is full; what gives room is
// taken until log is full. log must say how full it is, as the logs of keepers do, each second: what it does not say is not bounded. most 0
// is log itself.
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
