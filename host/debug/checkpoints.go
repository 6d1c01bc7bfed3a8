package debug

import (
	"time"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Of checkpoints.
const (
	mostCheckpointBytes = 512 << 20             // of all of them
	spacing             = 6 * time.Millisecond  // of running, between two, at least
	mostSpacing         = 30 * time.Millisecond // where to keep one takes long
	cheapKeep           = 12 * time.Millisecond
	near                = 60 * time.Millisecond // of running: as far away they are as dense as here
	far                 = 5 * near              // and beyond that no sparser
)

// checkpoints are states of a run on its way, for it to go back to. They are as dense as time allows, and where they take too many
// bytes those are dropped that are missed least: they stay dense around where the debugger is.
type checkpoints struct {
	keeper sandbox.Keeper
	list   []check       // in order
	bytes  int           // of them, without their memories
	most   int           // bytes, of all of them
	due    time.Duration // when the run has run so long, the next one is kept
	again  bool          // one is kept at the next stop
	took   time.Duration // to keep the last one
}

// check is a checkpoint, and how long the run had run up to it.
type check struct {
	*sandbox.Checkpoint
	ran time.Duration
}

// cheap reports whether one more takes little time.
func (c *checkpoints) cheap() bool { return c.took <= cheapKeep }

// spacing is how far they lie apart.
func (c *checkpoints) spacing() time.Duration { return min(max(spacing, 2*c.took), mostSpacing) }

// pass keeps a checkpoint where a run has stopped, if it is time.
func (c *checkpoints) pass(s *sandbox.Steps, p *pace) {
	if c.again {
		c.again = false
		c.keep(s, p)
		return
	}
	if p.ran < c.due {
		return
	}
	before := time.Duration(0)
	if k := c.find(s.At()); k > 0 {
		before = c.list[k-1].ran
	}
	if c.due = before + c.spacing(); p.ran >= c.due {
		c.keep(s, p)
		c.due = p.ran + c.spacing()
	}
}

// find is how many lie before a place.
func (c *checkpoints) find(at sandbox.Position) int {
	low, high := 0, len(c.list)
	for low < high {
		if middle := (low + high) / 2; c.list[middle].At.Before(at) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// keep keeps a checkpoint.
func (c *checkpoints) keep(s *sandbox.Steps, p *pace) {
	at := s.At()
	k := c.find(at)
	if k < len(c.list) && c.list[k].At == at {
		return
	}
	var beside *sandbox.Checkpoint
	switch {
	case k > 0:
		beside = c.list[k-1].Checkpoint
	case k < len(c.list):
		beside = c.list[k].Checkpoint
	}
	begun := p.now()
	made, err := s.Checkpoint(&c.keeper, beside)
	if err != nil {
		return // it is reached from the begin of the entry
	}
	c.took = p.now().Sub(begun)
	c.bytes += made.Bytes()
	c.list = append(c.list, check{})
	copy(c.list[k+1:], c.list[k:])
	c.list[k] = check{made, p.ran}
	for c.bytes+c.keeper.Bytes() > c.most && len(c.list) > 1 {
		k := c.leastMissed(p)
		c.list[k].Drop()
		c.used(k)
	}
}

// leastMissed is the one without which the way that is to be run again is longer by least, in proportion to how far it lies away.
func (c *checkpoints) leastMissed(p *pace) (found int) {
	least := 0.0
	for k := range c.list {
		before, after := time.Duration(0), max(p.longest, c.list[k].ran)
		if k > 0 {
			before = c.list[k-1].ran
		}
		if k+1 < len(c.list) {
			after = c.list[k+1].ran
		}
		away := min(max(p.ran-c.list[k].ran, c.list[k].ran-p.ran), far)
		if missed := float64(after-before) / float64(near+away); k == 0 || missed < least {
			found, least = k, missed
		}
	}
	return found
}

// used takes one off the list.
func (c *checkpoints) used(k int) {
	c.bytes -= c.list[k].Bytes()
	c.list = append(c.list[:k], c.list[k+1:]...)
	c.due = 0
}

// drop drops all of them: their run has ended.
func (c *checkpoints) drop() {
	for _, k := range c.list {
		k.Drop()
	}
	clear(c.list)
	c.list, c.bytes, c.due, c.again = c.list[:0], 0, 0, false
}

// pace measures how long a run has run up to a place. Runs that stop at many places take longer by that: their time is what their fuel takes
// otherwise.
type pace struct {
	now     func() time.Time
	ran     time.Duration // from the begin of the entry to where it is
	longest time.Duration // of this entry
	spent   uint64        // fuel, of all runs
	at      sandbox.Position
	resumed time.Time
	unit    float64 // nanoseconds a unit of fuel
	back    bool    // it has gone back since, which takes time, too
}

const (
	timed     = 50_000 // fuel: a stretch of so much says how long a unit takes
	usualUnit = 0.5    // nanoseconds
)

func (p *pace) begin() {
	p.ran, p.longest, p.at, p.unit, p.back = 0, 0, sandbox.Position{}, usualUnit, false
	p.resumed = p.now()
}

// stopped is called where the run has stopped.
func (p *pace) stopped(at sandbox.Position) {
	fuel := at.Fuel
	if at.Phase == p.at.Phase && fuel >= p.at.Fuel {
		fuel -= p.at.Fuel
	}
	p.spent += fuel
	took := time.Duration(float64(fuel) * p.unit)
	if fuel >= timed && !p.back {
		took = p.now().Sub(p.resumed)
		p.unit = float64(took) / float64(fuel)
	}
	p.ran += took
	p.longest = max(p.longest, p.ran)
	p.at, p.back = at, false
}

// goesOn is called when it goes on.
func (p *pace) goesOn() { p.resumed = p.now() }

// goesBack is called when it is to go back to a place.
func (p *pace) goesBack(to sandbox.Position, ran time.Duration) { p.at, p.ran, p.back = to, ran, true }
