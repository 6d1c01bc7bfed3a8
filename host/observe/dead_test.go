package observe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
)

// Dead letters are listed by who they were for, from whom and why, and delivered again in
// bulk, in their order.
func TestDeadLettersGoOutAgain(t *testing.T) {
	s := newStage(t, nil)
	var got []int
	adder := host.Func(func(_ *host.Context, m host.Message) error {
		var n int
		_ = m.Decode(&n)
		got = append(got, n)
		return nil
	}).WithLimits(host.Limits{Mailbox: 2})
	a := s.spawn("a", adder)
	other := s.spawn("other", quietActor())
	s.run()
	_ = s.Operate().Pause(a, false)
	s.run()
	for i := range 5 {
		_ = s.TellFrom(other, a, i+1)
	}
	s.Stop(other)
	s.run()
	_ = s.Tell(other, "late")
	p, err := s.Observer.DeadLetters(DeadQuery{})
	if err != nil || p.Total != 4 || p.Ever != 4 || len(p.Letters) != 4 {
		t.Fatalf("%v, %+v", err, p)
	}
	fits(t, p)
	first, last := p.Letters[0], p.Letters[3]
	if first.Reason != "mailbox full" || first.To != "/user/a" || first.From != "/user/other" || first.Key != "limits.mailbox" || string(first.Payload) != "3" || !first.Whole || first.ID != 1 {
		t.Errorf("%+v", first)
	}
	if last.To != "/user/other" || last.Reason != "unknown actor" && last.Reason != "stopped" || last.From != "" {
		t.Errorf("%+v", last)
	}
	for _, c := range []struct {
		q    DeadQuery
		want []uint64
	}{
		{DeadQuery{To: []string{"/user/a"}}, []uint64{1, 2, 3}},
		{DeadQuery{To: []string{"/user/o*"}}, []uint64{4}},
		{DeadQuery{From: []string{"/user/other"}}, []uint64{1, 2, 3}},
		{DeadQuery{Reasons: []string{"mailbox*"}}, []uint64{1, 2, 3}},
		{DeadQuery{IDs: []uint64{2, 4, 99}}, []uint64{2, 4}},
		{DeadQuery{Offset: 1, Limit: 2}, []uint64{2, 3}},
	} {
		p, err := s.Observer.DeadLetters(c.q)
		var ids []uint64
		for _, l := range p.Letters {
			ids = append(ids, l.ID)
		}
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%+v: %v, %v", c.q, ids, err)
		}
	}
	for _, bad := range []DeadQuery{{To: []string{"x"}}, {From: []string{"x"}}, {Limit: -1}, {Limit: 5000}, {Offset: -1}} {
		if _, err := s.Observer.DeadLetters(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := s.Observer.Redeliver(DeadQuery{}, false); !errors.Is(err, ErrInvalid) {
		t.Errorf("all, without saying so: %v", err)
	}
	_ = s.Operate().Unpause(a, false)
	s.run()
	would, err := s.Observer.Redeliver(DeadQuery{To: []string{"/**"}}, true)
	if err != nil || would.Total != 4 || would.Done != 3 || !strings.Contains(would.Changed[3].Error, "no actor is at its path") {
		t.Errorf("%v, %+v", err, would)
	}
	if p, _ := s.Observer.DeadLetters(DeadQuery{}); p.Total != 4 {
		t.Error("the dry run has delivered something")
	}
	did, err := s.Observer.Redeliver(DeadQuery{To: []string{"/**"}}, false)
	s.run()
	if err != nil || did.Total != 4 || did.Done != 2 || did.Failed != 2 { // the mailbox holds two
		t.Errorf("%v, %+v", err, did)
	}
	did, err = s.Observer.Redeliver(DeadQuery{IDs: []uint64{3, 1}}, false)
	s.run()
	if err != nil || did.Done != 1 || did.Failed != 1 || did.Changed[1].ID != 1 || did.Changed[1].Error == "" {
		t.Errorf("%v, %+v", err, did)
	}
	fits(t, did)
	if want := []int{1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
