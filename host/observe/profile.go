package observe

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/wasmactors/wasmactors/host"
)

// Profile is where fuel was spent: samples at a fixed distance, by actor, type and guest function.
type Profile struct {
	began    time.Time
	duration time.Duration
	every    uint64
	rows     []profileRow
	lost     uint64 // samples of stacks that did not fit
}

// profileRow is a stack with its number of samples.
type profileRow struct {
	actor, typ string
	stack      []string // innermost first
	n          int64
}

const (
	// fuelDistance is the units of fuel between two samples: some 50 us.
	fuelDistance = 200_000
	maxStacks    = 20_000
	maxFrame     = 200 // bytes of a function's name
	othersFrame  = "(others)"
)

// Profile samples for a while, at most MaxSampleTime, where the selected guests spend
// their fuel. Only one caller may sample at a time: ErrBusy. If ctx ends first it returns what it has seen
// until then. Actors in Go spend no fuel; pprof of the process shows them.
func (o *Observer) Profile(ctx context.Context, d time.Duration, sel Select) (*Profile, error) {
	if d <= 0 || d > MaxSampleTime {
		return nil, invalid("a profile takes at most %v, not %v", MaxSampleTime, d)
	}
	if len(sel.States) > 0 {
		return nil, invalid("a profile selects actors by paths, types and refs: their states change")
	}
	m, err := sel.compile("")
	if err != nil {
		return nil, err
	}
	end, err := o.sampleFuel(m, fuelDistance)
	if err != nil {
		return nil, err
	}
	wait(ctx, d)
	return end(), nil
}

// sampleFuel samples until end is called.
func (o *Observer) sampleFuel(m *matcher, every uint64) (end func() *Profile, err error) {
	p := &Profile{began: o.sys.Clock().Now(), every: max(every, host.MinFuelSample)}
	rows := map[string]*profileRow{}
	over := false
	var mu sync.Mutex
	var key bytes.Buffer
	began := time.Now()
	stop, err := o.sys.View().SampleFuel(p.every, func(s *host.FuelSample) {
		i := host.Info{Ref: s.Actor, Type: s.Type}
		if !m.match(&i) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if over { // a worker may still call this
			return
		}
		key.Reset()
		key.WriteString(s.Actor.Path())
		for _, f := range s.Stack {
			key.WriteByte(0)
			key.WriteString(f[:min(len(f), maxFrame)])
		}
		r := rows[string(key.Bytes())]
		if r == nil {
			if len(rows) >= maxStacks {
				p.lost++
				return
			}
			r = &profileRow{actor: s.Actor.Path(), typ: s.Type}
			for _, f := range s.Stack {
				r.stack = append(r.stack, function(f))
			}
			rows[key.String()] = r
		}
		r.n++
	})
	if err != nil {
		return nil, ErrBusy
	}
	return func() *Profile {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		p.duration = time.Since(began)
		for _, r := range rows {
			p.rows = append(p.rows, *r)
		}
		slices.SortFunc(p.rows, func(a, b profileRow) int {
			if c := strings.Compare(a.actor, b.actor); c != 0 {
				return c
			}
			return slices.Compare(a.stack, b.stack)
		})
		return p
	}, nil
}

// function is the name of a guest's function, safe to show.
func function(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return text(strings.Clone(name[:min(len(name), maxFrame)]))
}

// Samples is the number of samples.
func (p *Profile) Samples() (n int64) {
	for _, r := range p.rows {
		n += r.n
	}
	return n + int64(p.lost)
}

// Write writes it as pprof reads it (profile.proto, compressed): the values are samples and
// units of fuel, the root of each stack is the actor's type, and the labels are "actor" and
// "type".
func (p *Profile) Write(w io.Writer) error { return p.proto().Write(w) }

func (p *Profile) proto() *profile.Profile {
	x := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "fuel", Unit: "units"}},
		DefaultSampleType: "fuel",
		PeriodType:        &profile.ValueType{Type: "fuel", Unit: "units"}, Period: int64(p.every),
		TimeNanos: p.began.UnixNano(), DurationNanos: int64(p.duration),
	}
	locations := map[string]*profile.Location{}
	at := func(name string) *profile.Location {
		l := locations[name]
		if l == nil {
			f := &profile.Function{ID: uint64(len(x.Function) + 1), Name: name, SystemName: name}
			x.Function = append(x.Function, f)
			l = &profile.Location{ID: uint64(len(x.Location) + 1), Line: []profile.Line{{Function: f}}}
			x.Location = append(x.Location, l)
			locations[name] = l
		}
		return l
	}
	for _, r := range p.rows {
		s := &profile.Sample{
			Value: []int64{r.n, r.n * int64(p.every)},
			Label: map[string][]string{"actor": {r.actor}, "type": {r.typ}},
		}
		for _, f := range r.stack {
			s.Location = append(s.Location, at(f))
		}
		s.Location = append(s.Location, at(r.typ))
		x.Sample = append(x.Sample, s)
	}
	if p.lost > 0 {
		x.Sample = append(x.Sample, &profile.Sample{Value: []int64{int64(p.lost), int64(p.lost * p.every)}, Location: []*profile.Location{at(othersFrame)}})
	}
	return x
}
