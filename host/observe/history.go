package observe

import (
	"sync"
	"time"
)

// Moment is the system as a whole at one time.
type Moment struct {
	At time.Time `json:"at"`
	// The largest values since the point before.
	Actors   int   `json:"actors"`
	Mailbox  int   `json:"mailbox"`
	OldestNS int64 `json:"oldest_ns"`
	Held     int64 `json:"held"`
	// Since the start of the system.
	Turns       uint64 `json:"turns"`
	Crashes     uint64 `json:"crashes"`
	Restarts    uint64 `json:"restarts"`
	DeadLetters uint64 `json:"dead_letters"`
	Fuel        uint64 `json:"fuel"`
}

// History is how a system has developed.
type History struct {
	Version int       `json:"version"`
	Now     time.Time `json:"now"`
	StepNS  int64     `json:"step_ns"` // about, between points
	Points  []Moment  `json:"points"`  // oldest first
}

// Bounds of the history: an hour in steps of ten seconds, a day in steps of a minute, some 170 KiB.
const (
	historyStep   = 10 * time.Second
	historyFine   = 360
	historyMerged = 6 // fine points of a coarse one
	historyCoarse = 1440
	historyCost   = 1000 // a walk over the actors is at most so rare a part of the time
)

// history keeps points. The server keeps them, not the page: a user who opens the page after something has happened wants to
// see what was before.
type history struct {
	mu           sync.Mutex
	fine, coarse []Moment
	merging      Moment // of the coarse point that comes next
	merged       int

	end, done chan struct{} // nil: nothing is recorded
}

// WithHistory records a point every ten seconds, for [Observer.History]. Each point reads all actors. If that would take
// more than a thousandth of the time, points are rarer.
func (o Options) WithHistory() Options { o.history = true; return o }

func (o *Observer) keepHistory() {
	h := &o.history
	h.end, h.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(h.done)
		for {
			begun := time.Now()
			m := o.moment()
			o.expire() // nobody else wants what was looked at for this: a command after the start shows all that has started
			h.record(m)
			due := make(chan struct{})
			t := o.sys.Clock().AfterFunc(max(historyStep, historyCost*time.Since(begun)), func() { close(due) })
			select {
			case <-h.end:
				t.Stop()
				return
			case <-due:
			}
		}
	}()
}

func (o *Observer) moment() Moment {
	s := o.System()
	return Moment{At: s.Now, Actors: s.Actors, Mailbox: s.Mailbox, OldestNS: s.OldestNS, Held: s.Held, Turns: s.Turns, Crashes: s.Crashes, Restarts: s.Restarts, DeadLetters: s.DeadLetters, Fuel: s.Fuel}
}

func (h *history) close() {
	if h.end != nil {
		close(h.end)
		<-h.done
	}
}

// record adds a point.
func (h *history) record(p Moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fine = push(h.fine, p, historyFine)
	h.merging = p.after(h.merging)
	if h.merged++; h.merged == historyMerged {
		h.coarse = push(h.coarse, h.merging, historyCoarse)
		h.merged, h.merging = 0, Moment{}
	}
}

func push(list []Moment, p Moment, most int) []Moment {
	if len(list) == most {
		copy(list, list[1:])
		list = list[:most-1]
	}
	return append(list, p)
}

// after is p with the largest values of an earlier point that it takes the place of.
func (p Moment) after(earlier Moment) Moment {
	p.Actors, p.Mailbox = max(p.Actors, earlier.Actors), max(p.Mailbox, earlier.Mailbox)
	p.OldestNS, p.Held = max(p.OldestNS, earlier.OldestNS), max(p.Held, earlier.Held)
	return p
}

// History is how the system has developed in the time before now, d at the most and a day, as far as it is recorded:
// no more than historyFine points.
func (o *Observer) History(d time.Duration) (History, error) {
	if d <= 0 || d > historyCoarse*historyMerged*historyStep {
		return History{}, invalid("the history goes back for %v at most, not %v", historyCoarse*historyMerged*historyStep, d)
	}
	out := History{Version: Version, Now: o.sys.Clock().Now().UTC(), StepNS: int64(historyStep), Points: []Moment{}}
	since := out.Now.Add(-d)
	h := &o.history
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.fine
	if d > historyFine*historyStep {
		list = h.coarse
		out.StepNS *= historyMerged
		if len(h.coarse) == 0 { // it has just begun
			list, out.StepNS = h.fine, int64(historyStep)
		}
	}
	for len(list) > 0 && list[0].At.Before(since) {
		list = list[1:]
	}
	each := (len(list) + historyFine - 1) / historyFine
	var merging Moment
	for i, p := range list {
		merging = p.after(merging)
		if (len(list)-1-i)%max(each, 1) == 0 {
			out.Points = append(out.Points, merging)
			merging = Moment{}
		}
	}
	out.StepNS *= int64(max(each, 1))
	return out, nil
}
