package simulate_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// Planted mistakes: actors, and parts of the host, that are wrong on purpose. `make planted` prints in which seed each is found.

// moved is a message of the bank of this file.
type moved struct {
	Op     string // move, take, put, ok, no, retry, close
	ID     uint64
	From   string
	To     string
	Amount int
}

// mistakes of actors, by number.
var mistakes = []string{
	1:  "no retry: half a transfer",
	2:  "retry without key: applied twice",
	3:  "the deposit does not wait for the withdrawal",
	4:  "the transfer under way is kept in a field",
	5:  "gives up after two tries",
	6:  "the second of two equal requests is refused",
	7:  "only the last key is remembered",
	8:  "all retries share a timer",
	9:  "the key is the amount",
	10: "a withdrawal that is late is refunded",
	11: "a refusal is taken for success",
	12: "the balance is looked up, and taken later",
	13: "a second confirmation counts again",
	14: "stop goes before what was sent earlier",
	15: "numbers begin anew after a crash",
}

// books is a bank with a mistake; 0: none. Accounts remember keys, the teller repeats what is not confirmed.
func books(mistake int) simulate.Body {
	return func(w *simulate.World) {
		const each = 100
		balance := map[string]int{}
		accounts := map[string]host.Ref{}
		for _, name := range []string{"a", "b", "c"} {
			balance[name] = each
			seen := map[string]string{} // what was decided, also that it cannot be
			accounts[name] = w.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
				var t moved
				if m.Kind != abi.KindMessage || m.Decode(&t) != nil {
					return nil
				}
				key := fmt.Sprint(t.Op, t.ID)
				if mistake == 9 {
					key = fmt.Sprint(t.Op, t.Amount)
				}
				switch {
				case t.Op == "look":
					t.Op = "seen"
					t.Amount = min(t.Amount, balance[name])
					return ctx.Tell(m.Sender, t)
				case seen[key] != "" && mistake == 6:
					t.Op = "no"
				case seen[key] != "" && mistake != 2:
					t.Op = seen[key]
				case t.Op == "take" && balance[name] < t.Amount && mistake != 12:
					t.Op, seen[key] = "no", "no"
				default:
					if mistake == 7 {
						clear(seen)
					}
					seen[key] = "ok"
					if t.Op == "take" {
						balance[name] -= t.Amount
					} else {
						balance[name] += t.Amount
					}
					t.Op = "ok"
				}
				return ctx.Tell(m.Sender, t)
			}))
		}
		type state struct {
			moved
			took  bool
			tries int
		}
		open := map[uint64]*state{}
		done, confirmed := map[uint64]int{}, 0
		var field moved
		closed, reused := false, 0
		step := func(ctx *host.Context, s *state) error {
			t := s.moved
			if mistake == 4 {
				t.Amount, t.To = field.Amount, field.To
			}
			if s.tries++; s.tries > 2 && mistake == 5 {
				delete(open, s.ID)
				return nil
			}
			to := accounts[t.From]
			if t.Op = "take"; s.took {
				t.Op, to = "put", accounts[t.To]
			} else if mistake == 12 && s.tries == 1 {
				t.Op = "look"
			}
			if mistake != 1 {
				key := s.ID
				if mistake == 8 {
					key = 1
				}
				if err := ctx.After(key, 8*time.Second, 0, moved{Op: "retry", ID: s.ID}); err != nil {
					return err
				}
			}
			return ctx.Tell(to, t)
		}
		teller := w.Spawn("teller", host.Func(func(ctx *host.Context, m host.Message) error {
			var t moved
			if m.Kind == abi.KindReplyError || m.Decode(&t) != nil {
				return nil
			}
			s := open[t.ID]
			switch t.Op {
			case "close":
				if closed = true; mistake == 14 {
					clear(open)
				}
			case "move":
				if s != nil || done[t.ID] > 0 {
					reused++
				}
				if s != nil || done[t.ID] > 0 || closed {
					return nil // it comes again, or too late
				}
				s = &state{moved: t}
				open[t.ID], field = s, t
				if mistake == 3 {
					s.took = true
					if err := ctx.Tell(accounts[t.From], moved{Op: "take", ID: t.ID, Amount: t.Amount}); err != nil {
						return err
					}
				}
				return step(ctx, s)
			case "retry":
				if s != nil {
					if mistake == 10 && !s.took {
						delete(open, t.ID)
						return ctx.Tell(accounts[s.From], moved{Op: "put", ID: t.ID + 1000, Amount: s.Amount})
					}
					return step(ctx, s)
				}
			case "seen":
				if s != nil && !s.took && t.Amount == s.Amount {
					t.Op = "take"
					return ctx.Tell(accounts[t.From], t)
				} else if s != nil && !s.took {
					delete(open, t.ID)
				}
			case "no":
				if s != nil && !s.took && mistake != 11 {
					delete(open, t.ID)
					ctx.Cancel(t.ID)
					break
				}
				fallthrough
			case "ok":
				switch {
				case s == nil && mistake == 13 && done[t.ID] > 0:
					confirmed++
				case s == nil:
				case !s.took:
					s.took, s.tries = true, 0
					return step(ctx, s)
				case t.From == s.From && t.To == s.To || mistake == 3:
					if mistake == 4 || m.Sender.UID() == accounts[s.To].UID() {
						delete(open, t.ID)
						ctx.Cancel(t.ID)
						done[t.ID]++
						confirmed++
					}
				}
			}
			return nil
		}))
		front := w.Spawn("front", host.Native(func() host.Actor { return &numbering{teller: teller, anew: mistake == 15} }))
		taken := 0
		for i := range 12 {
			names := []string{"a", "b", "c"}
			from := w.Int(3)
			if w.Tell(front, moved{Op: "move", ID: uint64(i + 1), From: names[from], To: names[(from+1+w.Int(2))%3], Amount: 1 + w.Int(60)}) {
				taken++
			}
		}
		w.Pass(time.Duration(w.Int(60)) * time.Second) // retries meet faults, too
		w.Tell(teller, moved{Op: "close", ID: 1 << 40})
		w.Settled("money is neither made nor lost", func() error {
			w.Pass(5 * time.Minute) // for all retries
			sum := 0
			for _, b := range balance {
				if sum += b; b < 0 {
					return fmt.Errorf("an account has %d", b)
				}
			}
			if sum != 3*each {
				return fmt.Errorf("%d instead of %d", sum, 3*each)
			}
			return nil
		})
		w.Settled("every transfer ends, and is confirmed once", func() error {
			if len(open) > 0 || confirmed != len(done) {
				return fmt.Errorf("%d are open, %d done, %d confirmed", len(open), len(done), confirmed)
			}
			return nil
		})
		w.Settled("every accepted transfer is decided", func() error {
			if reused > 0 {
				return fmt.Errorf("%d of %d transfers have a number that another one has", reused, taken)
			}
			return nil
		})
	}
}

// numbering gives transfers their numbers.
type numbering struct {
	teller host.Ref
	anew   bool
	n      uint64
}

// Receive implements host.Actor.
func (f *numbering) Receive(ctx *host.Context, m host.Message) error {
	var t moved
	if m.Decode(&t) != nil || t.Op != "move" {
		return nil
	}
	if f.n++; f.anew {
		t.ID = f.n
	}
	return ctx.Tell(f.teller, t)
}

// spareBank: the accounts and the teller keep their state in memory.
func spareBank(c simulate.Class, path string) bool {
	return c == simulate.Crash && path != "/user/front"
}

// found is the first seed that violates something; 0: none does.
func found(t testing.TB, body simulate.Body, faults string, seeds int, o simulate.WorldOptions) (uint64, string) {
	t.Helper()
	on := all(t, faults)
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		x := (simulate.Bodies{Body: body, Options: o}).Play(t.Context(), simulate.NewPlan(seed, on))
		if x.Err != nil {
			return seed, x.Err.Error()
		}
		if x.Violation != nil {
			return seed, x.Violation.Rule + ": " + x.Violation.What
		}
	}
	return 0, ""
}

// flawed is a part of the host with a mistake.
type flawed struct {
	name    string
	mailbox func(m *badBox, e *host.Envelope) bool // whether Push goes on as usual
	clock   func(c *badClock, d time.Duration, f func()) (time.Duration, func())
}

var flaws = []flawed{
	{name: "a mailbox with five messages loses one", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 5 {
			e.Free()
		}
		return m.Len() != 5
	}},
	{name: "a mailbox with four messages takes one twice", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 4 {
			c := &host.Envelope{Kind: e.Kind, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation}
			c.SetPayload(e.Payload)
			_ = m.HostedMailbox.Push(c)
		}
		return true
	}},
	{name: "in a mailbox with three messages the next goes first", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 3 {
			m.PushFront(e)
		}
		return m.Len() < 4
	}},
	{name: "an answer that finds three messages is lost", mailbox: func(m *badBox, e *host.Envelope) bool {
		lost := e.Correlation != 0 && m.Len() == 3
		if lost {
			e.Free()
		}
		return !lost
	}},
	{name: "the payload is the one of the message before", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 2 && m.last != nil {
			e.SetPayload(m.last)
		}
		m.last = append([]byte(nil), e.Payload...)
		return true
	}},
	{name: "a mailbox is told to be empty while it has six messages", mailbox: func(m *badBox, e *host.Envelope) bool {
		m.hides = m.hides || m.Len() == 5
		return true
	}},
	{name: "the sender is forgotten when two messages wait", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 2 {
			e.Sender, e.SenderPath = 0, ""
		}
		return true
	}},
	{name: "a message that finds one is emptied", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 1 {
			e.SetPayload(nil)
		}
		return true
	}},
	{name: "every ninth message waits for the next one", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.n++; m.n%9 == 0 && m.kept == nil {
			m.kept = e
			return false
		}
		if x := m.kept; x != nil {
			m.kept = nil
			_ = m.HostedMailbox.Push(x)
		}
		return true
	}},
	{name: "a message becomes an answer", mailbox: func(m *badBox, e *host.Envelope) bool {
		if m.Len() == 4 {
			e.Kind = abi.KindReply
		}
		return true
	}},
	{name: "a mailbox drops what it has when the eighth message comes", mailbox: func(m *badBox, e *host.Envelope) bool {
		for m.Len() == 7 {
			if x := m.HostedMailbox.Pop(); x != nil {
				x.Free()
			}
		}
		return true
	}},
	{name: "a timer is due at once", clock: func(c *badClock, d time.Duration, f func()) (time.Duration, func()) {
		if c.n%9 == 0 {
			d = 0
		}
		return d, f
	}},
	{name: "a timer fires early", clock: func(c *badClock, d time.Duration, f func()) (time.Duration, func()) {
		if c.n%7 == 0 {
			d /= 2
		}
		return d, f
	}},
	{name: "a timer never fires", clock: func(c *badClock, d time.Duration, f func()) (time.Duration, func()) {
		if c.n%11 == 0 {
			f = func() {}
		}
		return d, f
	}},
	{name: "a timer fires late", clock: func(c *badClock, d time.Duration, f func()) (time.Duration, func()) {
		if c.n%6 == 0 {
			d *= 3
		}
		return d, f
	}},
}

type badBox struct {
	host.HostedMailbox
	flaw  *flawed
	last  []byte
	kept  *host.Envelope
	n     int
	hides bool
}

func (m *badBox) Push(e *host.Envelope) error {
	if host.IsMail(e) && !m.flaw.mailbox(m, e) {
		return nil
	}
	return m.HostedMailbox.Push(e)
}

func (m *badBox) Peek() *host.Envelope {
	if m.hides {
		return nil
	}
	return m.HostedMailbox.Peek()
}

func (m *badBox) Pop() *host.Envelope {
	if m.hides {
		return nil
	}
	return m.HostedMailbox.Pop()
}

func (m *badBox) Empty() bool { return m.hides || m.HostedMailbox.Empty() }

type badClock struct {
	host.Clock
	flaw *flawed
	n    int
}

func (c *badClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.n++
	d, f = c.flaw.clock(c, d, f)
	return c.Clock.AfterFunc(d, f)
}

// contract is a body that checks what the host promises: order, once, answers, timers.
func contract(flaw *flawed) simulate.Body {
	return func(w *simulate.World) {
		props := func(f func(*host.Context, host.Message) error) host.Props {
			p := host.Func(f)
			if flaw != nil && flaw.mailbox != nil {
				p = p.WithMailbox(func(l host.MailboxLimits) host.Mailbox {
					return &badBox{HostedMailbox: mailbox.New(mailbox.Bounded).Make(l).(host.HostedMailbox), flaw: flaw}
				})
			}
			return p
		}
		got, asked := map[int]int{}, 0
		last := -1
		sink := w.Spawn("sink", props(func(ctx *host.Context, m host.Message) error {
			var n int
			if m.Kind != abi.KindMessage || m.Decode(&n) != nil {
				return nil
			}
			if n >= 1000 {
				return ctx.Reply(n + 1)
			}
			if got[n]++; got[n] > 1 {
				w.Run().Violate("once", "%d has come %d times", n, got[n])
			}
			if n <= last {
				w.Run().Violate("in order", "%d has come after %d", n, last)
			}
			last = n
			return nil
		}))
		type timer struct {
			after time.Duration
			due   time.Time // zero: it was not set
			fired int
		}
		timers := []*timer{}
		alarm := w.Spawn("alarm", host.Func(func(ctx *host.Context, m host.Message) error {
			var n int
			if m.Decode(&n) != nil {
				return nil
			}
			if m.Kind != abi.KindTimer {
				timers[n].due = w.Now().Add(timers[n].after)
				return ctx.After(uint64(n), timers[n].after, 0, n)
			}
			if x := timers[n]; true {
				if x.fired++; !w.Now().Equal(x.due) || x.fired > 1 {
					w.Run().Violate("timers", "one due at %v has fired %d times, now at %v", x.due, x.fired, w.Now())
				}
			}
			return nil
		}))
		sent := 0
		source := w.Spawn("source", props(func(ctx *host.Context, m host.Message) error {
			var n int
			if m.Kind != abi.KindMessage || m.Decode(&n) != nil {
				return nil
			}
			for range 3 {
				if err := ctx.Tell(sink, sent); err != nil {
					return err
				}
				sent++
			}
			return nil
		}))
		for i := range 15 {
			w.Tell(source, i)
			asked++
			w.Ask(sink, 1000+i, func(m host.Message, err error) {
				var n int
				if err == nil && (m.Decode(&n) != nil || n != 1001+i) {
					w.Run().Violate("the right answer", "to %d: %d", 1000+i, n)
				}
				if err != nil && losses(w) == 0 {
					w.Run().Violate("an answer", "none to %d: %v", 1000+i, err)
				}
				asked--
			})
			timers = append(timers, &timer{after: time.Duration(1+w.Int(50)) * time.Second})
			w.Tell(alarm, i)
		}
		w.Settled("all has come", func() error {
			w.Pass(2 * time.Minute)
			for _, x := range timers {
				if x.fired != 1 && !x.due.IsZero() {
					return fmt.Errorf("a timer has fired %d times", x.fired)
				}
			}
			if losses(w) == 0 && len(got) != sent {
				return fmt.Errorf("%d of %d", len(got), sent)
			}
			return nil
		})
	}
}

// losses is how many faults there were that messages may be lost by.
func losses(w *simulate.World) (n int) {
	for _, f := range w.Run().Faults() {
		switch f.Class {
		case simulate.Drop, simulate.Full, simulate.Crash:
			n++
		}
	}
	return n
}

// spareAlarm: the alarm keeps what it has set in memory, and the clock has the flaw.
func spareAlarm(flaw *flawed) simulate.WorldOptions {
	o := simulate.WorldOptions{Places: simulate.Places{Spared: func(c simulate.Class, path string) bool { return c == simulate.Crash && path == "/user/alarm" }}}
	if flaw != nil && flaw.clock != nil {
		o.Clock = func(c host.Clock) host.Clock { return &badClock{Clock: c, flaw: flaw} }
	}
	return o
}

// TestPlanted: without mistakes nothing is reported; with SIMULATE_PLANTED=N it prints in which of N seeds each is found.
func TestPlanted(t *testing.T) {
	bank := simulate.WorldOptions{Places: simulate.Places{Spared: spareBank}}
	seeds, _ := strconv.Atoi(os.Getenv("SIMULATE_PLANTED"))
	quiet := max(seeds, 40)
	for _, faults := range []string{"all,-clock", "none"} {
		if seed, what := found(t, books(0), faults, quiet, bank); seed != 0 {
			t.Errorf("%s: a bank without mistake, seed %d: %s", faults, seed, what)
		}
		if seed, what := found(t, contract(nil), faults, quiet, spareAlarm(nil)); seed != 0 {
			t.Errorf("%s: a host without mistake, seed %d: %s", faults, seed, what)
		}
	}
	if seeds == 0 {
		seeds = 300
		mistakes = mistakes[:3]
		flaws = flaws[:3]
	}
	var missed, table []string
	note := func(kind, name string, seed uint64, what string) {
		if seed == 0 {
			missed = append(missed, fmt.Sprintf("%-6s missed      %s", kind, name))
			return
		}
		what, _, _ = strings.Cut(what, ":")
		table = append(table, fmt.Sprintf("%-6s seed %-6d %-55s by: %s", kind, seed, name, what))
	}
	for i, name := range mistakes {
		if i > 0 {
			seed, what := found(t, books(i), "all,-clock", seeds, bank)
			note("actor", name, seed, what)
		}
	}
	for i := range flaws {
		seed, what := found(t, contract(&flaws[i]), "all,-clock", seeds, spareAlarm(&flaws[i]))
		note("host", flaws[i].name, seed, what)
	}
	t.Logf("%d of %d are found\n%s\n%s", len(table), len(table)+len(missed), strings.Join(missed, "\n"), strings.Join(table, "\n"))
	if len(missed)*10 > len(table) {
		t.Errorf("%d are missed", len(missed))
	}
}
