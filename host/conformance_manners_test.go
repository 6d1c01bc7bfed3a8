package host

import (
	"testing"
	"time"
)

// The rows about guests hold for every manner of guest.

// guestManner is how the guests of a test take their messages.
type guestManner uint8

const (
	oneByOne  guestManner = iota // a call for every message
	inBatches                    // one call for all that wait, as guests of the SDK
	sleepy                       // asleep whenever there is nothing to do
)

// manner is that of the test that runs; they run one after the other.
var manner = oneByOne

// idleSoon is after what time a sleepy guest sleeps.
const idleSoon = time.Nanosecond

func (m guestManner) run(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		manner = m
		defer func() { manner = oneByOne }()
		f(t)
	})
}

// everyManner runs a row for guests of every manner.
func everyManner(t *testing.T, f func(t *testing.T)) {
	oneByOne.run(t, "one by one", f)
	inBatches.run(t, "in batches", f)
	sleepy.run(t, "sleepy", f)
}

// awakeOrNot runs a row for guests that batch anyway.
func awakeOrNot(t *testing.T, f func(t *testing.T)) {
	oneByOne.run(t, "awake", f)
	sleepy.run(t, "sleepy", f)
}

// nod has sleepy guests sleep that have nothing to do: it takes two looks at each.
func nod(c *VirtualClock, run func()) {
	if manner != sleepy {
		return
	}
	for range 2 {
		c.Advance(idleSoon)
		run()
	}
}

// The sleepy manner makes guests sleep and wake, or its rows prove nothing.
func TestSleepyGuestsSleep(t *testing.T) {
	sleepy.run(t, "sleepy", func(t *testing.T) {
		l := newStage(t, nil)
		g := l.spawn("g", puppetHooks(t))
		for range 3 {
			if n := l.View().Stats().Asleep; n != 1 {
				t.Fatalf("%d sleep", n)
			}
			if node := l.View().Tree().Children[1]; node.Ref != g || !node.Asleep || l.View().Tree().Children[0].Asleep {
				t.Errorf("%+v", node)
			}
			l.say(g, script(rec(recAdd, 1, nil)))
		}
		l.got = nil
		l.say(g, script(rec(recReport, 0, nil)))
		l.wants("reply 3")
	})
}
