package observe

import (
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// snapshot is one walk over all actors.
type snapshot struct {
	taken  time.Time // by the machine's clock: how old it is
	now    time.Time // by the system's
	infos  []host.Info
	oldest []int64                   // of each, ns
	ended  map[string]host.TypeStats // of actors that are not in infos

	once  sync.Once // trees, when somebody asks for one
	trees *forest
}

// snapshotLife is the time without a look after which the snapshot is forgotten.
const snapshotLife = 2 * time.Second

// view calls f with a snapshot that is fresh enough to be shared. f must not retain it.
func (o *Observer) view(f func(*snapshot)) {
	o.look(o.o.sharing, f)
}

// afresh is view with a walk that begins now.
func (o *Observer) afresh(f func(*snapshot)) { o.look(-1, f) }

func (o *Observer) look(age time.Duration, f func(*snapshot)) {
	asked := time.Now()
	for {
		o.mu.RLock()
		if s := o.snap; s != nil && (s.taken.After(asked) || asked.Sub(s.taken) < age) {
			f(s)
			o.mu.RUnlock()
			return
		}
		o.mu.RUnlock()
		o.mu.Lock()
		if s := o.snap; s == nil || !s.taken.After(asked) {
			o.take()
		}
		o.mu.Unlock()
	}
}

// take reads the actors. o.mu is held for writing, so the snapshot has no readers now.
func (o *Observer) take() {
	s := o.snap
	if s == nil {
		s = &snapshot{}
	}
	s.once, s.trees = sync.Once{}, nil
	s.taken, s.now = time.Now(), o.sys.Clock().Now()
	before := len(s.infos)
	s.infos, s.oldest = s.infos[:0], s.oldest[:0]
	s.infos, s.ended = o.sys.View().Census(s.infos)
	if len(s.infos) < before {
		clear(s.infos[len(s.infos):before])
	}
	s.oldest = o.waiting.update(s.oldest, s.infos, s.now)
	if o.closed { // the caller still gets the snapshot
		o.snap = s
		return
	}
	o.snap = s
	if o.idle == nil {
		o.idle = time.AfterFunc(snapshotLife, o.forget)
	} else {
		o.idle.Reset(snapshotLife)
	}
}

// expire makes the snapshot too old to be shared.
func (o *Observer) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.snap != nil {
		o.snap.taken = o.snap.taken.Add(-max(o.o.sharing, 0))
	}
}

// forget drops the snapshot when it was not used for a while.
func (o *Observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.snap != nil && time.Since(o.snap.taken) >= snapshotLife {
		o.snap = nil
	}
}

// row is the actor as others see it.
func (s *snapshot) row(at int) Actor {
	return rowOf(&s.infos[at], s.oldest[at])
}

func rowOf(i *host.Info, oldest int64) Actor {
	a := Actor{
		Path: i.Ref.Path(), Ref: refText(i.Ref), Type: i.Type, Parent: i.Parent.Path(), State: stateOf(i.State), Paused: i.Paused,
		Incarnation: i.Incarnation, Mailbox: i.Mailbox, MailboxBytes: i.MailboxBytes, OldestNS: oldest,
		Turns: i.Turns, Fuel: i.Fuel, Crashes: i.Crashes, Restarts: i.Restarts, Held: i.Held, Children: i.Children,
		DueNS: int64(i.Due),
	}
	if i.Since != 0 {
		a.Since = time.Unix(0, i.Since).UTC()
	}
	if i.Failure != nil {
		a.Failure = line(i.Failure.Failure.Error())
	}
	return a
}
