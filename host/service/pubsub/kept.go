package pubsub

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// kept are the retained values of a cluster. They are where the directory is; each node has a copy, the broker's, from which pages are
// read. The last value that was written counts, and a node writes those of a topic in the order in which they were published here.
type kept struct {
	env    *service.Env
	broker *broker
	at     service.Shared
	stop   func()
	prefix string

	mu     sync.Mutex
	writes map[string]*write
	of     map[*service.Request[Grant]]*writing
	over   chan struct{}
	once   sync.Once
}

// write is what is to be written of a topic.
type write struct {
	turn  chan struct{} // who has what is in it writes
	users int
	seq   uint64 // values that were begun...
	done  uint64 // ...and are written, or newer ones are
	value []byte // the last one
	grant uint64
}

// writing is a request that waits for that.
type writing struct {
	*write
	name          string
	at            uint64
	taken, missed int
}

// Bounds of retained values in a cluster.
const (
	keptOpen  = 30 * time.Second
	keptTries = 16
	keptPause = 2 * time.Millisecond // before the second attempt, a random part of it; it doubles
	mostGone  = 15 * time.Second     // for which it is known that a value was forgotten, at least
)

func openKept(env *service.Env, b *broker) (*kept, error) {
	if env.Bundle == "" {
		return nil, errors.New("pubsub: scope: cluster needs the name of a bundle, of which the topics are")
	}
	ctx, cancel := env.WithTimeout(context.Background(), keptOpen)
	defer cancel()
	at, err := env.Shared(ctx, "pubsub")
	if err != nil {
		return nil, err
	}
	k := &kept{env: env, broker: b, at: at, prefix: string(service.AppendSharedName(nil, env.Bundle)) + ".", writes: map[string]*write{}, of: map[*service.Request[Grant]]*writing{}, over: make(chan struct{})}
	k.stop = at.Watch(k.changed, func() {})
	return k, nil
}

func (k *kept) close() {
	k.once.Do(func() { close(k.over) })
	k.stop()
}

func (k *kept) key(name string) string { return k.prefix + string(service.AppendSharedName(nil, name)) }

// topicOf reverses key; false if no node writes such.
func (k *kept) topicOf(key string) (string, bool) {
	text, ok := strings.CutPrefix(key, k.prefix)
	if !ok {
		return "", false
	}
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '~' {
			b = append(b, text[i])
			continue
		}
		if i+3 > len(text) {
			return "", false
		}
		x, err := hex.DecodeString(text[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b = append(b, x[0])
		i += 2
	}
	name := string(b)
	return name, topic.Check(name) == nil && k.key(name) == key
}

// changed takes a change into the copy. What a member has written that no node writes is passed over.
func (k *kept) changed(key string, value []byte, revision uint64) {
	if name, ok := k.topicOf(key); ok && len(value) <= MaxValue {
		k.broker.copied(name, value, revision)
	}
}

// copied notes the value of a topic at a revision, nil for none. What would be beyond the bound is left out.
func (b *broker) copied(name string, value []byte, at uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.values.Get(name)
	grant := uint64(0)
	if old != nil {
		if old.at >= at {
			return
		}
		cost := costOf(name, old.value)
		grant = old.grant
		b.bytes -= cost
		b.pay(grant, -cost)
		b.values.Delete(name)
	}
	cost := costOf(name, value)
	if len(value) == 0 || b.bytes+cost > b.mostRetain {
		return
	}
	b.bytes += cost
	b.pay(grant, cost)
	b.values.Put(name, retained{grant, append([]byte(nil), value...), at})
}

// owes notes that a grant of this node pays for the value at a revision.
func (b *broker) owes(name string, grant uint64, value []byte, at uint64) {
	b.copied(name, value, at)
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.values.Get(name); v != nil && v.at == at && v.grant != grant {
		cost := costOf(name, v.value)
		b.pay(v.grant, -cost)
		b.pay(grant, cost)
		v.grant = grant
	}
}

// check checks the bounds of a value that is to be retained, as far as this node knows what there is.
func (k *kept) check(grant uint64, most int64, name string, value []byte) error {
	b := k.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := costOf(name, value)
	all, of := b.bytes+cost, b.bytesOf[grant]+cost
	if old := b.values.Get(name); old != nil {
		before := costOf(name, old.value)
		if all -= before; old.grant == grant {
			of -= before
		}
	}
	switch {
	case of > most:
		return service.Errorf(service.Quota, "retained values would have %d bytes, at most %d; retain of the grant raises it", of, most)
	case all > min(b.mostRetain, service.MaxSharedTotal):
		return service.Errorf(service.Quota, "retained values of the cluster would have %d bytes, at most %d", all, min(b.mostRetain, service.MaxSharedTotal))
	}
	return nil
}

// begin is called in the order in which requests have come.
func (k *kept) begin(r *service.Request[Grant], name string, value []byte) *writing {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.writes[name]
	if w == nil {
		w = &write{turn: make(chan struct{}, 1)}
		w.turn <- struct{}{}
		k.writes[name] = w
	}
	w.users++
	w.seq++
	w.value, w.grant = value, r.GrantID()
	x := &writing{write: w, name: name, at: w.seq}
	k.of[r] = x
	return x
}

// retain waits until the value of a request, or a newer one of the topic, is written.
func (k *kept) retain(ctx context.Context, r *service.Request[Grant]) (any, error) {
	k.mu.Lock()
	w := k.of[r]
	delete(k.of, r)
	k.mu.Unlock()
	if w == nil {
		return nil, service.Errorf(service.Internal, "not begun")
	}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(k.writes, w.name)
		}
	}()
	if _, which := executor.Take(k.env.Clock, w.turn, ctx.Done(), k.over); which != 0 {
		return nil, service.Errorf(service.Timeout, "whether the value is retained is not known")
	}
	defer func() { w.turn <- struct{}{} }()
	k.mu.Lock()
	seq, value, grant, done := w.seq, w.value, w.grant, w.done
	k.mu.Unlock()
	if done < w.at {
		at, err := k.put(ctx, w.name, value)
		if err != nil {
			return nil, err
		}
		k.broker.owes(w.name, grant, value, at)
		k.mu.Lock()
		w.done = seq
		k.mu.Unlock()
	}
	return published{w.taken, w.missed}, nil
}

// put replaces the value of a topic; nil removes it.
func (k *kept) put(ctx context.Context, name string, value []byte) (uint64, error) {
	key, stay := k.key(name), int64(0)
	if value == nil {
		stay = int64(max(mostGone, 3*k.at.Lease()) / time.Second)
	}
	k.broker.mu.Lock()
	revision := uint64(0)
	if old := k.broker.values.Get(name); old != nil {
		revision = old.at
	}
	k.broker.mu.Unlock()
	for try := range keptTries {
		type done struct {
			at  uint64
			ok  bool
			err error
		}
		c := make(chan done, 1)
		k.at.Put(key, value, revision, stay, func(at uint64, ok bool, err error) { c <- done{at, ok, err} })
		d, which := executor.Take(k.env.Clock, c, ctx.Done(), k.over)
		switch {
		case which != 0:
			return 0, service.Errorf(service.Timeout, "whether the value is retained is not known")
		case errors.Is(d.err, service.ErrFull):
			return 0, &service.Error{Code: service.Quota, Text: "what the cluster retains is full; nothing was written", Err: d.err}
		case errors.Is(d.err, service.ErrNotWritten), errors.Is(d.err, host.ErrNodeLost):
			return 0, &service.Error{Code: service.Unavailable, Text: "the node or those that keep the values cannot take it now; nothing was written", Err: d.err}
		case d.err != nil:
			return 0, &service.Error{Code: service.Unavailable, Text: "those that keep the values do not answer; whether it was written is not known", Err: d.err}
		case d.ok:
			return d.at, nil
		}
		if try > 0 && !k.pause(ctx, try) {
			return 0, service.Errorf(service.Timeout, "nothing was written")
		}
		type got struct {
			value    []byte
			revision uint64
			err      error
		}
		g := make(chan got, 1)
		k.at.Get(key, func(value []byte, revision uint64, err error) { g <- got{value, revision, err} })
		x, which := executor.Take(k.env.Clock, g, ctx.Done(), k.over)
		if which != 0 || x.err != nil {
			return 0, &service.Error{Code: service.Unavailable, Text: "those that keep the values do not answer; nothing was written", Err: x.err}
		}
		if revision = x.revision; value == nil && len(x.value) == 0 {
			return 0, service.Errorf(service.NotFound, "nothing is retained of %s", name)
		}
	}
	return 0, service.Errorf(service.Busy, "the topic %s is retained by others all the time; nothing was written", name)
}

// pause waits before an attempt; false if there is no time left.
func (k *kept) pause(ctx context.Context, try int) bool {
	var b [8]byte
	k.env.Rand(b[:])
	d := time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(keptPause<<min(try, 6)))
	over := make(chan struct{}, 1)
	timer := k.env.After(d, func() { over <- struct{}{} })
	_, which := executor.Take(k.env.Clock, over, ctx.Done(), k.over)
	if which != 0 {
		timer.Stop()
	}
	return which == 0
}

// forget ends that a value is retained.
func (k *kept) forget(ctx context.Context, name string) error {
	k.broker.mu.Lock()
	known := k.broker.values.Get(name) != nil
	k.broker.mu.Unlock()
	if !known {
		return service.Errorf(service.NotFound, "nothing is retained of %s", name)
	}
	at, err := k.put(ctx, name, nil)
	if err == nil {
		k.broker.copied(name, nil, at)
	}
	return err
}
