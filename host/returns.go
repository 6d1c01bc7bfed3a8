package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/supervision"
)

// Durable actors below /user that have nothing under way may stay in the checkpoint until something comes for them. Whatever looks for
// one, by ref, by name or among all, has it return: then it is what it would be if it had returned at the start.

// Rest implements rebuild.Port.
func (p *repeats) Rest(x *dormant.Actors) error {
	defer p.lift(true)()
	s, codeOf := p.sys, dormant.Once(fingerprintOf)
	x.Above, x.Base, x.Letter, x.Room, x.Back = s.user.ref(), actorBytes, pathBytes, s.pool, p.back
	alone := s.user.super.Strategy().Kind() == supervision.OneForOne
	now, err := x.Check(func(r *dormant.Row) (stays bool, err error) {
		found, err := x.Props(r.Name)
		props, ok := found.(*Props)
		if err == nil && ok {
			err = fits(props, r.Sort.Type)
		}
		if err == nil && ok { // else it would fail at the next checkpoint, and now nobody sees it
			ok, err = x.Within(r, props.limits.Durable)
		}
		return err == nil && ok && alone && !props.significant && bytes.Equal(codeOf(props.module.Image()), r.Sort.Code), err
	})
	if err == nil {
		err = s.pool.Reserve(int64(x.Len()), x.Held())
	}
	if full := new(account.Error); errors.As(err, &full) {
		return fmt.Errorf("the checkpoint: %w: %w", ErrLimit, err)
	} else if err != nil {
		return err
	}
	s.table.Missing(x.Return)
	s.durable.away.Store(x)
	return x.Bring(now)
}

// back makes an actor that returns. Others find it when it is whole: by its name then, by its ref when this has returned.
func (p *repeats) back(r *dormant.Row, part []byte) error {
	x, err := saved.Returning(part, r.Ref)
	if err != nil {
		return err
	}
	s, w := p.sys, x.Whole
	props, err := p.propsOf(s.user, r.Name, x)
	if err != nil || props == nil {
		return cmp.Or(err, rebuild.ErrCode)
	}
	p.limits.Lock()
	defer p.limits.Unlock()
	m, refusal, err := s.user.super.Family.Adopt(r.Name, math.MaxInt32, func(name string) (*family.Member[*actor], error) {
		a, err := newActor(s, s.user, name, x.Ref, props)
		if err == nil {
			err = p.begins(a, w)
		}
		if err == nil {
			err = restoreActor(nil, a, x)
		}
		if err == nil {
			err = restoreFamily(a, nil, &w.Super, w.Jitter)
		}
		if err != nil {
			return nil, err
		}
		a.member.Record, _ = w.Noted.Record.Child()
		a.member.Child, a.member.Orders = a, w.Noted.Orders
		a.super.Family.SetCounters(w.AutoNames, w.HostRefs)
		if a.tally.Turns.Store(a.turns); p.released {
			p.limitNow(a)
			delete(p.known, a.uid)
			delete(p.then, a.uid)
		}
		return &a.member, nil
	})
	if err == nil && (refusal != family.Admitted || !s.table.Put(m.Child.uid, m.Child)) {
		err = ErrNameTaken
	} else if err == nil {
		live(m.Child, 1)
	}
	return err
}
