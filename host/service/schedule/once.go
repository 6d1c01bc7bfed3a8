package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// Changes that durable actors ask for are made once: the key of each, and its answer, are a part of the record of the change.

// keptRecord is what a record has of the request that has led to it.
type keptRecord struct {
	Path    string  `cbor:"1,keyasint"` // of the actor
	Life    abi.Ref `cbor:"2,keyasint"`
	Number  uint64  `cbor:"3,keyasint"`
	Settled uint64  `cbor:"4,keyasint,omitempty"`
	Kept    []byte  `cbor:"5,keyasint"`
}

// mostAnswer bounds an answer that is kept, in bytes.
const mostAnswer = 256

func (k *keptRecord) check() error {
	x, err := once.Decode(k.Kept)
	switch {
	case err != nil:
		return err
	case k.Life == 0 || k.Number == 0 || k.Settled > k.Number || len(x.Answer) > mostAnswer:
		return fmt.Errorf("request %d of life %016x", k.Number, uint64(k.Life))
	case !cleanPath(k.Path):
		return fmt.Errorf("an actor %.80q", k.Path)
	}
	return nil
}

// requests are what is kept of the requests of actors, by their paths. A path has one life at a time: what was kept of the one before is
// dropped. It is used with the engine's lock.
type requests struct {
	of    map[string]*lifeRequests
	n     int
	sweep int // how many there are when lives that are over are looked for
}

type lifeRequests struct {
	life abi.Ref
	list []once.Kept // by number
}

// find is the answer of a request that was carried out; nil: it was not.
func (q *requests) find(path string, r *once.Request) []byte {
	x := q.of[path]
	if r == nil || x == nil || x.life != r.Life {
		return nil
	}
	for i := range x.list {
		if k := &x.list[i]; k.Is(r) {
			return k.Answer
		}
	}
	return nil
}

// room refuses a request for which there is no room. alive reports whether an actor is in a life.
func (q *requests) room(path string, r *once.Request, now int64, most int, alive func(string, abi.Ref) bool) error {
	if r == nil {
		return nil
	}
	if x := q.of[path]; x != nil && x.life == r.Life && len(x.list) >= once.MostOpen {
		if left := slices.DeleteFunc(slices.Clone(x.list), func(k once.Kept) bool { return k.Dropped(r, now) }); len(left) >= once.MostOpen {
			return once.TooMany()
		}
	}
	if q.n >= max(q.sweep, leastSweep) {
		for path, x := range q.of { // in any order: each is judged alone
			if q.n -= len(x.list); !alive(path, x.life) {
				delete(q.of, path)
				continue
			}
			x.list = slices.DeleteFunc(x.list, func(k once.Kept) bool { return k.Expired(now) })
			if q.n += len(x.list); len(x.list) == 0 {
				delete(q.of, path)
			}
		}
		q.sweep = 2 * q.n
	}
	if q.n >= max(most, leastSweep) {
		return service.Errorf(service.Quota, "the requests of %d durable actors are kept, which is the limit; services.schedule.max-entries raises it", len(q.of))
	}
	return nil
}

const leastSweep = 2 * once.MostOpen

// put keeps a request, and drops what it settles.
func (q *requests) put(k *keptRecord) {
	is, err := once.Decode(k.Kept)
	if err != nil {
		return // it was checked
	}
	is.Number = k.Number
	x := q.of[k.Path]
	if x == nil || x.life != k.Life {
		if x != nil {
			q.n -= len(x.list)
		}
		x = &lifeRequests{life: k.Life}
		if q.of == nil {
			q.of = map[string]*lifeRequests{}
		}
		q.of[k.Path] = x
	}
	by := &once.Request{Life: k.Life, Effect: &host.Effect{Number: k.Number, Settled: k.Settled}}
	q.n -= len(x.list)
	x.list = slices.DeleteFunc(x.list, func(o once.Kept) bool { return o.Dropped(by, is.At) })
	i, _ := slices.BinarySearchFunc(x.list, k.Number, func(o once.Kept, n uint64) int { return cmp.Compare(o.Number, n) })
	x.list = slices.Insert(x.list, i, is)
	q.n += len(x.list)
}

// drop undoes put for one request.
func (q *requests) drop(k *keptRecord) {
	if k == nil {
		return
	}
	if x := q.of[k.Path]; x != nil && x.life == k.Life {
		q.n -= len(x.list)
		x.list = slices.DeleteFunc(x.list, func(o once.Kept) bool { return o.Number == k.Number })
		q.n += len(x.list)
	}
}

// records are all of them.
func (q *requests) records() (all []*record) {
	paths := make([]string, 0, len(q.of))
	for path := range q.of {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		x := q.of[path]
		for i := range x.list {
			k := &x.list[i]
			all = append(all, &record{Kind: wasKept, Request: &keptRecord{Path: path, Life: x.life, Number: k.Number, Kept: k.Append(nil)}})
		}
	}
	return all
}

// keptOf is what the record of a change has of the request for it; nil: nothing.
func keptOf(path string, r *once.Request, now int64, answer any) (*keptRecord, error) {
	if r == nil {
		return nil, nil
	}
	b, err := host.Encode(answer)
	if err != nil {
		return nil, err
	}
	k := once.Kept{Key: r.Effect.Key, At: now, Answer: b}
	return &keptRecord{Path: path, Life: r.Life, Number: r.Effect.Number, Settled: r.Effect.Settled, Kept: k.Append(nil)}, nil
}
