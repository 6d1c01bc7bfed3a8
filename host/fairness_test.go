package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Guests of one tree that wake one another, each for a few slices, have together what one has that never rests:
// they gain nothing by it that each of them has had little.
func TestARingOfGuestsIsOneTree(t *testing.T) {
	const restless, members, turns = 40, 10, 2000
	s := newSystem(t, NewConfig("test"))
	answer := func(to string) Props {
		then := abi.AppendSend(nil, 0, to, 0, abi.FlagReply, nil, nullPayload)
		return puppet(t, rec(byte(abi.KindReply), flagSpin, then)).WithLimits(Limits{Fuel: 1 << 60, Deadline: time.Hour})
	}
	var ring []Child
	for i := range members {
		ring = append(ring, Child{fmt.Sprint(i), answer(fmt.Sprint("/user/ring/", (i+1)%members))})
	}
	must(s.Spawn("ring", Func(func(*Context, Message) error { return nil }).WithChildren(ring...)))(t)
	var all []Ref
	for i := range restless {
		name := fmt.Sprint("restless", i)
		all = append(all, must(s.Spawn(name, answer("/user/"+name)))(t))
	}
	for i := range members {
		all = append(all, lookup(t, s, fmt.Sprint("/user/ring/", i)))
	}
	must(0, s.Idle(t.Context()))(t)
	kick := must(s.Spawn("kick", puppet(t)))(t)
	for _, to := range all[:restless+1] {
		must(0, s.Tell(kick, script(now(abi.AppendSend(nil, to.UID(), "", 0, abi.FlagReply, nil, nullPayload)))))(t)
	}
	count := func() (ring, others uint64) {
		for i, a := range all {
			if n := must(s.View().Info(a))(t).Turns; i < restless {
				others += n
			} else {
				ring += n
			}
		}
		return ring, others
	}
	waitFor(t, "some turns", func() bool { ring, others := count(); return ring+others > turns/2 }) // until it shows who has had much
	before, beforeOthers := count()
	var had, others uint64
	waitFor(t, "many turns", func() bool {
		ring, all := count()
		had, others = ring-before, all-beforeOthers
		return had+others > turns
	})
	share := float64(had) / float64(had+others)
	t.Logf("%d of %d turns, %.3f", had, had+others, share)
	if share > 0.12 {
		t.Errorf("a ring beside %d others has %.3f of the turns", restless, share)
	}
}
