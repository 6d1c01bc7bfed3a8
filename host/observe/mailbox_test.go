package observe

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// The age of the oldest message is right where messages do not leave in the order in which they
// have come: one that is overtaken grows old, and one that was dropped does not.
func TestOldestMessagesOfEveryKind(t *testing.T) {
	s := newStage(t, nil)
	nothing := host.Func(func(*host.Context, host.Message) error { return nil })
	urgent := host.Headed{Value: 1, Headers: map[string]string{"priority": "0"}}
	spawn := func(name string, c mailbox.Config, most int) host.Ref {
		ref, err := s.Spawn(name, nothing.WithMailbox(c.Make).WithLimits(host.Limits{Mailbox: most}).WithDispatcher(host.Dispatcher{}.WithThroughput(1)))
		if err != nil {
			t.Fatal(err)
		}
		s.run()
		return ref
	}
	tell := func(to host.Ref, v any) {
		if err := s.Tell(to, v); err != nil {
			t.Error(err)
		}
	}
	age := func(path string) time.Duration { return time.Duration(s.row(path).OldestNS) }

	overtaken := spawn("overtaken", mailbox.New(mailbox.Priority).WithOvertake(0), 10)
	tell(overtaken, "low")
	age("/user/overtaken")
	for i := range 5 {
		tell(overtaken, urgent)
		s.Step() // the urgent one
		s.clock.Advance(time.Second)
		if got := age("/user/overtaken"); got != time.Duration(i+1)*time.Second {
			t.Errorf("after %d s: %v", i+1, got)
		}
	}
	s.run()

	dropping := spawn("dropping", mailbox.New(mailbox.DropOldest), 2)
	_ = s.Operate().Pause(dropping, false)
	s.run()
	for i := range 8 {
		tell(dropping, i)
		if got, most := age("/user/dropping"), time.Second; got > most {
			t.Errorf("after %d s: %v, of the last two", i, got)
		}
		s.clock.Advance(time.Second)
	}
	if a := s.row("/user/dropping"); a.Mailbox != 2 || a.MailboxBytes != 2 || time.Duration(a.OldestNS) != 2*time.Second {
		t.Errorf("%+v", a)
	}
	_ = s.Operate().Unpause(dropping, false)
	s.run()
	for _, path := range []string{"/user/dropping", "/user/overtaken"} {
		if a := s.row(path); a.Mailbox != 0 || a.OldestNS != 0 {
			t.Errorf("%+v", a)
		}
	}
}
