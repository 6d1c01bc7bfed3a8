package journal

import (
	"sync"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
)

// List lists the keys of which the log has something, living or not, also of kinds that are not here: of the copy of the log that answers, so it
// may be a moment old. A key that was erased is there with one record, which says so. It does not block; done is called once, by any goroutine.
func (j *Journal) List(q cluster.KeyQuery, done func(cluster.KeyPage, error)) {
	var once sync.Once
	j.opt.Log.List(q, func(p cluster.KeyPage, err error) { once.Do(func() { done(p, err) }) })
}

// ShardOf is the shard of a key; false: it is of no kind that keeps events here.
func (j *Journal) ShardOf(k cluster.KeyID) (int, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.kinds[k.Kind]
	if of == nil || !of.events {
		return 0, false
	}
	return shard.Of(k.Name, of.n), true
}
