package mailbox

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"pgregory.net/rapid"
)

// The one suite of all kinds: whatever the kind, the bounds, and what is pushed, put back, put
// aside, failed and closed in whatever order, it does as a model does that is a sorted
// list, and each envelope ends once: handled, refused, dropped with a reason, or drained.

// account is the actor's of a test.
type account struct {
	held, most int64 // most 0: no bound
	gone       map[*host.Envelope]host.DeadReason
}

func (a *account) Dropped(e *host.Envelope, why host.DeadReason) { a.gone[e] = why }

func (a *account) Reserve(bytes int64, must bool) error {
	if !must && bytes > 0 && a.most > 0 && a.held+bytes > a.most {
		return errors.New("there is no room")
	}
	a.held += bytes
	return nil
}

// entry is an envelope of the model.
type entry struct {
	e     *host.Envelope
	at    int
	level int
	mail  bool
	key   string
	size  int64
}

// model is what a mailbox should do.
type model struct {
	c       Config
	limits  host.MailboxLimits
	waiting []entry // sorted by at
	shown   *entry
	passed  int
	next    int
	keys    []string
}

func (m *model) n() int { return len(m.all()) }

func (m *model) all() []entry {
	if m.shown != nil {
		return append([]entry{*m.shown}, m.waiting...)
	}
	return m.waiting
}

func (m *model) bytes() (n int64) {
	for _, x := range m.all() {
		n += x.size
	}
	return n
}

// rank is the level by which an entry is taken.
func (m *model) rank(x entry) int {
	if !x.mail {
		return m.c.levels - 1
	}
	return x.level
}

// peek shows the next one.
func (m *model) peek() *entry {
	if m.shown != nil || len(m.waiting) == 0 {
		return m.shown
	}
	best := 0
	for i, x := range m.waiting {
		if m.rank(x) < m.rank(m.waiting[best]) {
			best = i
		}
	}
	if best == 0 {
		m.passed = 0
	} else if m.passed++; m.c.overtake > 0 && m.passed > m.c.overtake {
		best, m.passed = 0, 0
	}
	x := m.waiting[best]
	m.waiting = slices.Delete(m.waiting, best, best+1)
	m.shown = &x
	return m.shown
}

// victims are those that go so that one fits; ok is false if it cannot.
func (m *model) victims(x entry) (out []entry, ok bool) {
	if x.size > m.limits.Bytes {
		return nil, false
	}
	n, bytes := m.n(), m.bytes()
	mostN, mostBytes := max(m.limits.Messages, n), max(m.limits.Bytes, bytes)
	var may []entry
	for level := m.c.levels - 1; level >= x.level; level-- {
		for _, w := range m.waiting {
			if w.mail && w.level == level {
				may = append(may, w)
			}
		}
	}
	for _, v := range may {
		if n+1 <= mostN && bytes+x.size <= mostBytes {
			return out, true
		}
		out = append(out, v)
		n--
		bytes -= v.size
	}
	return out, n+1 <= mostN && bytes+x.size <= mostBytes
}

func (m *model) take(x entry) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w entry) bool { return w.e == x.e })
}

func (m *model) knows(key string) bool { return key != "" && slices.Contains(m.keys, key) }

func (m *model) learn(key string) {
	if key == "" || m.knows(key) {
		return
	}
	if m.keys = append(m.keys, key); len(m.keys) > m.c.keys {
		m.keys = m.keys[1:]
	}
}

func (m *model) forget(key string) {
	m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
}

// drawConfig is any kind of mailbox.
func drawConfig(t *rapid.T) Config {
	c := New(Kind(rapid.IntRange(0, int(Deduplicating)).Draw(t, "kind")))
	if c.kind > Block {
		c = c.WithFull(Kind(rapid.IntRange(0, int(Block)).Draw(t, "full")))
	}
	if c.kind == Priority {
		c = c.WithLevels(rapid.IntRange(2, 5).Draw(t, "levels"))
	}
	// More keys than a run has: forgetting has a test of its own.
	c = c.WithOvertake(rapid.SampledFrom([]int{0, 1, 3, 100}).Draw(t, "overtake")).WithKeys(500)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// drawEnvelope is a message, or what the host sends.
func drawEnvelope(t *rapid.T, c Config, n *int) (*host.Envelope, entry) {
	*n++
	e := &host.Envelope{Sender: abi.Ref(*n), Origin: uint64(*n)}
	x := entry{e: e, mail: true, level: c.levels - 1}
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		e.Kind, x.mail = abi.KindTerminated, false
	case 1:
		e.Kind, x.mail = abi.KindTimer, false
	case 2:
		e.Kind = abi.KindReply
	default:
		e.Kind = abi.KindMessage
	}
	e.Payload = make([]byte, rapid.IntRange(0, 40).Draw(t, "size"))
	switch level := rapid.IntRange(-1, c.levels+1).Draw(t, "level"); {
	case level < 0:
	case c.kind == Priority:
		e.Headers = abi.AppendHeader(nil, DefaultPriorityHeader, fmt.Sprint(level))
		x.level = min(level, c.levels-1)
	case c.kind == ControlAware && level == 0:
		e.Headers = abi.AppendHeader(nil, DefaultControlHeader, "")
		x.level = 0
	case c.kind == Deduplicating && e.Kind == abi.KindMessage:
		e.Sender = abi.Ref(rapid.IntRange(1, 2).Draw(t, "sender"))
		e.SenderPath = "wasm://s/user/a"
		value := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))
		e.Headers = abi.AppendHeader(nil, DefaultKeyHeader, value)
		x.key = fmt.Sprint(e.Sender, "/", value)
	}
	if !x.mail {
		x.level = c.levels - 1
	}
	x.size = int64(e.Size())
	return e, x
}

func TestEveryKindIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		limits := host.MailboxLimits{Messages: rapid.IntRange(1, 6).Draw(t, "messages"), Bytes: rapid.Int64Range(1, 200).Draw(t, "bytes")}
		box := c.Make(limits).(host.HostedMailbox)
		acc := &account{gone: map[*host.Envelope]host.DeadReason{}}
		box.Hosted(acc)
		m := &model{c: c, limits: limits}
		sent, ended := 0, map[*host.Envelope]string{}
		end := func(e *host.Envelope, how string) {
			if before := ended[e]; before != "" {
				t.Fatalf("an envelope was %s and is %s", before, how)
			}
			ended[e] = how
		}
		// What was popped and is neither handled nor put back, with what the model knows of it.
		var stash []entry
		put := func(x entry) { // in the model, at the back
			m.next++
			x.at = m.next
			m.waiting = append(m.waiting, x)
		}
		closed, first := false, 0
		dropped := func(x entry, why host.DeadReason) {
			if got, ok := acc.gone[x.e]; !ok || got != why {
				t.Fatalf("%d was not given up for %v but for %v", x.e.Origin, why, got)
			}
			delete(acc.gone, x.e)
			end(x.e, why.String())
		}
		pop := func() (entry, bool) {
			want := m.peek()
			got := box.Pop()
			if want == nil {
				if got != nil {
					t.Fatal("it is empty")
				}
				return entry{}, false
			}
			if got != want.e {
				t.Fatalf("got %+v, want %d", got, want.e.Origin)
			}
			x := *want
			m.shown = nil
			return x, true
		}
		back := func(xs ...entry) {
			var es []*host.Envelope
			if m.shown != nil { // back to its place
				m.waiting = append(m.waiting, *m.shown)
				m.shown = nil
			}
			// Those that are put back count as the oldest.
			for k := len(xs) - 1; k >= 0; k-- {
				first--
				x := xs[k]
				x.at = first
				m.waiting = append(m.waiting, x)
			}
			for _, x := range slices.Backward(xs) {
				m.learn(x.key)
			}
			for _, x := range xs {
				es = append(es, x.e)
			}
			slices.SortFunc(m.waiting, func(a, b entry) int { return a.at - b.at })
			box.PushFront(es...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				e, x := drawEnvelope(t, c, &sent)
				n, bytes := m.n(), m.bytes()
				full := n >= limits.Messages || bytes+x.size > limits.Bytes
				err := box.Push(e)
				switch {
				case closed:
					if !errors.Is(err, host.ErrStopped) {
						t.Fatal(err)
					}
					end(e, "refused")
				case m.knows(x.key):
					if err != nil {
						t.Fatal(err)
					}
					dropped(x, host.DeadDuplicate)
				case !full:
					if err != nil {
						t.Fatal(err)
					}
					m.learn(x.key)
					put(x)
				case x.mail && c.full == DropNewest:
					if err != nil {
						t.Fatal(err)
					}
					dropped(x, host.DeadDropped)
				case x.mail && c.full == DropOldest:
					if err != nil {
						t.Fatal(err)
					}
					gone, ok := m.victims(x)
					if !ok {
						dropped(x, host.DeadDropped)
						break
					}
					for _, v := range gone {
						dropped(v, host.DeadDropped)
						m.take(v)
						m.forget(v.key)
					}
					m.learn(x.key)
					put(x)
				default:
					if !errors.Is(err, host.ErrMailboxFull) {
						t.Fatalf("%v with %d messages", err, n)
					}
					end(e, "refused")
				}
				if box.Len() > max(limits.Messages, n) || box.Bytes() > max(limits.Bytes, bytes) {
					t.Fatalf("a push has exceeded the bounds: %d messages, %d bytes", box.Len(), box.Bytes())
				}
			},
			"force": func(t *rapid.T) {
				e, x := drawEnvelope(t, c, &sent)
				e.Kind, x.mail, x.key, x.level = abi.KindTimer, false, "", c.levels-1
				if box.Force(e) == closed {
					t.Fatal("Force")
				}
				if closed {
					end(e, "refused")
				} else {
					put(x)
				}
			},
			"peek": func(t *rapid.T) {
				want, got := m.peek(), box.Peek()
				if want == nil && got != nil || want != nil && got != want.e {
					t.Fatalf("%v instead of %v", got, want)
				}
			},
			"handle": func(t *rapid.T) {
				if x, ok := pop(); ok {
					end(x.e, "handled")
				}
			},
			"fail": func(t *rapid.T) {
				x, ok := pop()
				if !ok {
					return
				}
				box.Failed(x.e)
				m.forget(x.key)
				if rapid.Bool().Draw(t, "again") {
					back(x)
				} else {
					end(x.e, "failed")
				}
			},
			"stash": func(t *rapid.T) {
				if x, ok := pop(); ok {
					stash = append(stash, x)
				}
			},
			"unstash": func(t *rapid.T) {
				if !closed {
					back(stash...)
					stash = nil
				}
			},
			"a batch that ends early": func(t *rapid.T) {
				var batch []entry
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					if x, ok := pop(); ok {
						batch = append(batch, x)
					}
				}
				back(batch...)
			},
			"trim": func(t *rapid.T) {
				most := rapid.IntRange(0, 6).Draw(t, "most")
				mail := 0
				for _, x := range m.all() {
					if x.mail {
						mail++
					}
				}
				box.Trim(most)
				for level := c.levels - 1; level >= 0; level-- {
					for _, x := range slices.Clone(m.waiting) {
						if x.mail && x.level == level && mail > most {
							mail--
							dropped(x, host.DeadEvicted)
							m.take(x)
							m.forget(x.key)
						}
					}
				}
			},
			"settle": func(t *rapid.T) { box.EndRun() },
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					return
				}
				closed = true
				box.Close(func(e *host.Envelope) {
					want := m.peek()
					if want == nil || want.e != e {
						t.Fatal("another order at the end")
					}
					m.shown = nil
					end(e, "drained")
				})
				if m.n() > 0 {
					t.Fatalf("%d are lost", m.n())
				}
				for _, x := range stash {
					end(x.e, "stashed at the end")
				}
				stash = nil
			},
			"": func(t *rapid.T) {
				if box.Len() != m.n() || box.Bytes() != m.bytes() || box.Empty() != (m.n() == 0) {
					t.Fatalf("%d messages, %d bytes; %d and %d are right", box.Len(), box.Bytes(), m.n(), m.bytes())
				}
				before, came := box.Order()
				if oldest := slices.MinFunc(append(m.all(), entry{at: m.next + 1}), func(a, b entry) int { return a.at - b.at }).at; int(came) != m.next || int(before) != max(oldest-1, 0) {
					t.Fatalf("%d have come before the oldest, %d in all; %d and %d are right", before, came, oldest-1, m.next)
				}
				if len(acc.gone) > 0 {
					t.Fatalf("%d were given up that should not", len(acc.gone))
				}
				if need := box.Bytes() + int64(box.Len())*envelopeBytes - freeBytes; acc.held < need || closed && acc.held != 0 {
					t.Fatalf("%d bytes are on the account, for %d", acc.held, need)
				}
			},
		})
		if len(ended)+m.n()+len(stash) != sent {
			t.Fatalf("of %d envelopes %d have ended, %d wait, %d are put aside", sent, len(ended), m.n(), len(stash))
		}
	})
}
