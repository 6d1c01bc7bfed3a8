package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

func text(s string) *host.Envelope {
	payload, err := host.Encode(s)
	if err != nil {
		panic(err)
	}
	return &host.Envelope{Kind: abi.KindMessage, Sender: 1, SenderPath: "wasm://s/user/a", Payload: payload}
}

func with(e *host.Envelope, key, value string) *host.Envelope {
	e.Headers = abi.AppendHeader(e.Headers, key, value)
	return e
}

func pushAll(t *testing.T, b host.Mailbox, es ...*host.Envelope) {
	t.Helper()
	for _, e := range es {
		if err := b.Push(e); err != nil {
			t.Fatal(err)
		}
	}
}

// texts takes everything out.
func texts(b host.Mailbox) (out []string) {
	for e := b.Pop(); e != nil; e = b.Pop() {
		if !host.IsMail(e) {
			out = append(out, e.Kind.String())
			continue
		}
		out = append(out, string(typeOf(e.Payload)))
	}
	return out
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// The sample that Akka's documentation has.
func TestStablePriority(t *testing.T) {
	b := New(Priority).WithLevels(3).WithTypes(map[string]int{"highpriority": 0, "lowpriority": 2}).WithOtherwise(1).Make(host.MailboxLimits{})
	pushAll(t, b, text("lowpriority"), text("lowpriority"), text("highpriority"), text("pigdog"), text("pigdog2"), text("pigdog3"), text("highpriority"))
	equal(t, "order", texts(b), strings.Fields("highpriority highpriority pigdog pigdog2 pigdog3 lowpriority lowpriority"))
}

func TestHeadersGoBeforeTypes(t *testing.T) {
	b := New(Priority).WithHeader("p").WithTypes(map[string]int{"t": 1}).Make(host.MailboxLimits{})
	pushAll(t, b, text("none"), text("t"), with(text("t"), "p", "0"), with(text("none"), "p", "99"), with(text("t"), "p", "x"))
	equal(t, "order", texts(b), []string{"t", "t", "t", "none", "none"})
}

func TestControlFirst(t *testing.T) {
	b := New(ControlAware).Make(host.MailboxLimits{})
	pushAll(t, b, text("a"), text("b"), with(text("c"), "control", ""), text("d"), with(text("e"), "control", "no"))
	equal(t, "order", texts(b), []string{"c", "e", "a", "b", "d"})
}

// What is the host's comes behind the least urgent of those that were there.
func TestTheHostsOwnOvertakesNothing(t *testing.T) {
	b := New(Priority).Make(host.MailboxLimits{})
	pushAll(t, b, text("low"))
	b.Force(&host.Envelope{Kind: abi.KindTerminated})
	pushAll(t, b, text("later"), with(text("high"), "priority", "0"))
	equal(t, "order", texts(b), []string{"high", "low", "terminated", "later"})
}

// No flood of urgent messages keeps others out for ever.
func TestOvertakeIsBounded(t *testing.T) {
	b := New(Priority).WithOvertake(3).Make(host.MailboxLimits{})
	pushAll(t, b, text("low"), text("low2"))
	var got []string
	for range 9 {
		pushAll(t, b, with(text("high"), "priority", "0"))
		got = append(got, string(typeOf(b.Pop().Payload)))
	}
	equal(t, "order", got, strings.Fields("high high high low high high high low2 high"))
	b = New(Priority).WithOvertake(0).Make(host.MailboxLimits{})
	pushAll(t, b, text("low"))
	for range 500 {
		pushAll(t, b, with(text("high"), "priority", "0"))
		if got := string(typeOf(b.Pop().Payload)); got != "high" {
			t.Fatal(got)
		}
	}
}

// A small message that is less urgent does not cost a more urgent one its place.
func TestTheLeastUrgentGoFirst(t *testing.T) {
	b := New(Priority).WithFull(DropOldest).WithLevels(2).Make(host.MailboxLimits{Messages: 3}).(host.HostedMailbox)
	acc := &account{gone: map[*host.Envelope]host.DeadReason{}}
	b.Hosted(acc)
	high := func(s string) *host.Envelope { return with(text(s), "priority", "0") }
	pushAll(t, b, text("a"), text("b"), high("c"), high("d"), high("e"))
	trifle := text("f")
	pushAll(t, b, trifle)
	if acc.gone[trifle] != host.DeadDropped {
		t.Error("an urgent one has given way to a trifle")
	}
	pushAll(t, b, high("g"))
	equal(t, "kept", texts(b), []string{"d", "e", "g"})
	if len(acc.gone) != 4 {
		t.Errorf("%d were dropped", len(acc.gone))
	}
}

// A key is a sender's: nobody can use up another's. What has failed or was dropped may come again.
func TestDuplicates(t *testing.T) {
	b := New(Deduplicating).WithFull(DropOldest).Make(host.MailboxLimits{Messages: 2}).(host.HostedMailbox)
	acc := &account{gone: map[*host.Envelope]host.DeadReason{}}
	b.Hosted(acc)
	keyed := func(s, key string, sender abi.Ref) *host.Envelope {
		e := with(text(s), DefaultKeyHeader, key)
		e.Sender = sender
		return e
	}
	pushAll(t, b, keyed("a", "1", 1), keyed("again", "1", 1), keyed("another's", "1", 2))
	equal(t, "kept", texts(b), []string{"a", "another's"})
	pushAll(t, b, keyed("handled already", "1", 1), text("no key"), text("no key"))
	e := keyed("b", "2", 1)
	pushAll(t, b, e)
	b.Failed(e)
	pushAll(t, b, keyed("retry", "2", 1))
	equal(t, "kept", texts(b), []string{"b", "retry"})
	again := keyed("delivered again", "4", 1)
	b.Failed(again)
	b.PushFront(again)
	pushAll(t, b, keyed("a retry meanwhile", "4", 1))
	equal(t, "kept", texts(b), []string{"delivered again"})
	out := func(s string, sender abi.Ref) *host.Envelope {
		e := keyed(s, "3", sender)
		e.SenderPath = "wasm://s/temp"
		return e
	}
	pushAll(t, b, out("from Go", 77), out("asked again from Go", 78))
	equal(t, "kept", texts(b), []string{"from Go"})
	reasons := map[host.DeadReason]int{}
	for _, why := range acc.gone {
		reasons[why]++
	}
	if reasons[host.DeadDuplicate] != 4 || reasons[host.DeadDropped] != 2 {
		t.Errorf("%v", reasons)
	}
}

// The table of keys is bounded, and what it takes is on the account.
func TestKeysAreBounded(t *testing.T) {
	const most = 10
	b := New(Deduplicating).WithKeys(most).Make(host.MailboxLimits{}).(*box)
	acc := &account{gone: map[*host.Envelope]host.DeadReason{}}
	b.Hosted(acc)
	for i := range 1000 {
		e := with(text("x"), DefaultKeyHeader, fmt.Sprint(i, strings.Repeat("k", 1000)))
		pushAll(t, b, e)
		b.Pop()
		if i%3 == 0 {
			b.Failed(e)
		}
		if len(b.keys.seen) > most || len(b.keys.order) > most {
			t.Fatalf("%d keys", len(b.keys.seen))
		}
	}
	if got := b.keys.bytes(); got != most*KeyBytes {
		t.Errorf("%d bytes", got)
	}
	// The last ones but those that have failed are known.
	for i := 990; i < 1000; i++ {
		pushAll(t, b, with(text("y"), DefaultKeyHeader, fmt.Sprint(i, strings.Repeat("k", 1000))))
	}
	if n := len(texts(b)); n != 4 {
		t.Errorf("%d were let in, those that had failed are 4", n)
	}
}

// Keys take no room for good that messages need: where the account has too little the oldest are forgotten,
// those that were forgotten anyway first.
func TestKeysGiveWay(t *testing.T) {
	for name, failing := range map[string]bool{"handled": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			b := New(Deduplicating).WithKeys(1000).Make(host.MailboxLimits{}).(*box)
			b.Hosted(&account{most: 16 << 10, gone: map[*host.Envelope]host.DeadReason{}})
			for i := range 2000 {
				e := with(text("x"), DefaultKeyHeader, fmt.Sprint(i))
				if err := b.Push(e); err != nil {
					t.Fatal(i, err)
				}
				b.Pop()
				if failing && i != 1 {
					b.Failed(e)
				}
			}
			known := 1999
			if failing {
				known = 1
			}
			if err := b.Push(with(text("y"), DefaultKeyHeader, fmt.Sprint(known))); err != nil || b.Len() != 0 {
				t.Error("it was forgotten without need", err)
			}
			for b.keys.shrink() {
			}
			if b.keys.bytes() != 0 || len(b.keys.seen) != 0 {
				t.Error(b.keys.bytes())
			}
		})
	}
}

// What waits keeps its keys: then it is the messages that take the room.
func TestKeysOfWhatWaitsStay(t *testing.T) {
	b := New(Deduplicating).Make(host.MailboxLimits{}).(*box)
	b.Hosted(&account{most: 16 << 10, gone: map[*host.Envelope]host.DeadReason{}})
	n := 0
	for ; n < 1000; n++ {
		if err := b.Push(with(text("x"), DefaultKeyHeader, fmt.Sprint(n))); err != nil {
			break
		}
	}
	if n == 1000 {
		t.Fatal("it is never full")
	}
	for i := range n {
		if err := b.Push(with(text("again"), DefaultKeyHeader, fmt.Sprint(i))); err != nil || b.Len() != n {
			t.Fatal(i, err, b.Len())
		}
	}
}

// After shrinking the order of the keys is what it was, also where the ring had gone round.
func TestShrinking(t *testing.T) {
	x := func(n int) key { return key{sender: abi.Ref(n)} }
	k := newKeys(10, "")
	for i := range 16 {
		k.add(x(i))
	}
	k.forget(x(9))
	k.shrink() // of 6 to 15 the older half goes, and what had been forgotten
	for i := range 16 {
		if k.has(x(i)) != (i >= 11) {
			t.Error(i, k.order)
		}
	}
	for i := 16; i < 22; i++ {
		k.add(x(i))
	}
	if k.has(x(11)) || !k.has(x(12)) || len(k.order) != 10 {
		t.Error("the oldest is pushed out first", k.order)
	}
	for i := 12; i < 21; i++ {
		k.forget(x(i))
	}
	k.shrink()
	if len(k.order) != 1 || !k.has(x(21)) {
		t.Error("only one was not forgotten", k.order)
	}
}

// A message for which there is no room even without keys costs none of them.
func TestTooLargeCostsNoKeys(t *testing.T) {
	b := New(Deduplicating).Make(host.MailboxLimits{}).(*box)
	b.Hosted(&account{most: 256 << 10, gone: map[*host.Envelope]host.DeadReason{}})
	for i := range 1000 {
		if err := b.Push(with(text("x"), DefaultKeyHeader, fmt.Sprint(i))); err != nil {
			t.Fatal(i, err)
		}
		b.Pop()
	}
	if err := b.Push(text(strings.Repeat("x", 300<<10))); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
	if n := len(b.keys.seen); n != 1000 {
		t.Error(n, "keys are left")
	}
	if err := b.Push(text(strings.Repeat("x", 200<<10))); err != nil {
		t.Error(err)
	}
	if n := len(b.keys.seen); n == 0 || n > 500 {
		t.Error(n, "keys are left")
	}
}

func TestForgettingIsExact(t *testing.T) {
	k := newKeys(3, "")
	x := func(n abi.Ref) key { return key{sender: n} }
	k.add(x(1))
	k.forget(x(1))
	k.add(x(1)) // at the second place
	k.add(x(2))
	k.add(x(3)) // pushes out the first place, which is not that of 1 any more
	if !k.has(x(1)) || !k.has(x(2)) || !k.has(x(3)) {
		t.Error("forgotten too early")
	}
	k.add(x(4))
	if k.has(x(1)) {
		t.Error("the oldest is known")
	}
}

// Who waits gets in in order, before those who do not wait; a message that never fits is refused
// at once.
func TestWaiting(t *testing.T) {
	b := New(Block).Make(host.MailboxLimits{Messages: 1, Bytes: 50}).(waitingBox)
	pushAll(t, b, text("0"))
	if err := b.Push(text("refused")); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
	if err := b.PushWait(context.Background(), text(strings.Repeat("x", 60))); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
	done := make(chan error)
	for i := range 3 {
		go func() { done <- b.PushWait(context.Background(), text(fmt.Sprint(i+1))) }()
		for b.Waiting() != i+1 {
			time.Sleep(time.Microsecond)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.PushWait(ctx, text("too late")); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
	for i := range 2 {
		if got := string(typeOf(b.Pop().Payload)); got != fmt.Sprint(i) {
			t.Errorf("%s after %d", got, i)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := b.Push(text("does not wait")); !errors.Is(err, host.ErrMailboxFull) {
			t.Error("who waits was overtaken")
		}
	}
	b.Close(func(*host.Envelope) {})
	if err := <-done; !errors.Is(err, host.ErrStopped) {
		t.Error(err)
	}
	if err := b.PushWait(context.Background(), text("x")); !errors.Is(err, host.ErrStopped) {
		t.Error(err)
	}
}

// A small message does not overtake a large one that waits for more room.
func TestNobodyOvertakesWhoWaits(t *testing.T) {
	b := New(Block).Make(host.MailboxLimits{Messages: 9, Bytes: 50}).(waitingBox)
	pushAll(t, b, text(strings.Repeat("0", 40)))
	done := make(chan error)
	for i, s := range []string{strings.Repeat("1", 30), "2"} {
		go func() { done <- b.PushWait(context.Background(), text(s)) }()
		for b.Waiting() != i+1 {
			time.Sleep(time.Microsecond)
		}
	}
	b.Pop()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	equal(t, "order", texts(b), []string{strings.Repeat("1", 30), "2"})
}

func TestSoManyWait(t *testing.T) {
	b := New(Block).Make(host.MailboxLimits{Messages: 1}).(waitingBox)
	pushAll(t, b, text("x"))
	b.waiters = make([]*waiter, MaxWaiters)
	for i := range b.waiters {
		b.waiters[i] = &waiter{text("w"), make(chan error, 1)}
	}
	if err := b.PushWait(context.Background(), text("one more")); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
}

// Where the account has no room a mailbox is full, whatever its kind; an empty one gives back.
func TestAccount(t *testing.T) {
	for k := range table {
		b := New(Kind(k)).Make(host.MailboxLimits{}).(host.HostedMailbox)
		acc := &account{most: 100 << 10, gone: map[*host.Envelope]host.DeadReason{}}
		b.Hosted(acc)
		n := 0
		for ; b.Push(&host.Envelope{Kind: abi.KindMessage, Payload: make([]byte, 1000)}) == nil; n++ {
		}
		if n < 80 || n > 90 || acc.held > acc.most {
			t.Errorf("%v: %d messages, %d bytes held", Kind(k), n, acc.held)
		}
		for range n {
			b.Pop()
		}
		b.EndRun()
		if acc.held > keptBytes {
			t.Errorf("%v: %d bytes held for nothing", Kind(k), acc.held)
		}
	}
}

func TestTypes(t *testing.T) {
	long := strings.Repeat("t", MaxTypeName)
	for _, c := range []struct {
		value any
		want  string
	}{
		{"flush", "flush"}, {[]any{"set", 1, map[string]int{"a": 1}}, "set"}, {[]any{}, ""}, {[]any{1, "set"}, ""}, {12, ""}, {map[string]int{"a": 1}, ""},
		{long, long}, {long + "t", ""}, {[]any{long}, long}, {"", ""}, {nil, ""}, {strings.Repeat("x", 300), ""}, {[]any{[]any{"set"}}, ""},
	} {
		payload, err := host.Encode(c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(typeOf(payload)); got != c.want {
			t.Errorf("%v: %q", c.value, got)
		}
		for i := range payload { // cut off: nothing, or the same
			if got := typeOf(payload[:i]); got != nil && string(got) != c.want {
				t.Errorf("%v cut at %d: %q", c.value, i, got)
			}
		}
	}
}

// Whatever a sender writes, there is a level for it.
func FuzzLevel(f *testing.F) {
	f.Add(abi.AppendHeader(nil, "priority", "1"), []byte{0x61, 'a'})
	f.Add([]byte{0xb0, 0xff}, []byte{0x81, 0x78, 0xff})
	c := New(Priority).WithHeader("priority").WithTypes(map[string]int{"a": 1})
	r := c.Make(host.MailboxLimits{}).(*box).ranker
	k := newKeys(4, "priority")
	f.Fuzz(func(t *testing.T, headers, payload []byte) {
		e := &host.Envelope{Kind: abi.KindMessage, Headers: headers, Payload: payload}
		if n := r.levelOf(e); n < 0 || n > r.last {
			t.Errorf("level %d", n)
		}
		k.keyOf(e)
	})
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]Config{
		"":                       New(Priority).WithTypes(map[string]int{"a": 3}),
		"levels must be 2 to 16": New(Priority).WithLevels(17),
		"otherwise":              New(ControlAware).WithOtherwise(2),
		`the level of "a"`:       New(ControlAware).WithTypes(map[string]int{"a": 2}),
		"full needs":             New(DropOldest).WithFull(DropNewest),
		"the kind control-aware": New(Priority).WithFull(ControlAware),
		"keys must be 1 to":      New(Deduplicating).WithKeys(0),
		"wait must be more":      New(Block).WithWait(0),
		"overtake must be 0":     New(Priority).WithOvertake(-1),
		"a header's name":        New(Priority).WithHeader(strings.Repeat("h", 65)),
		"no such kind":           New(99),
		"a name has at most 128": New(Priority).WithTypes(map[string]int{strings.Repeat("n", 129): 0}),
	} {
		err := c.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		c.Make(host.MailboxLimits{}) // whatever it is
	}
	for i, name := range Kinds() {
		if k, ok := ParseKind(name); !ok || k != Kind(i) || k.String() != name || New(k).Check() != nil || New(k).Kind() != k {
			t.Error(name)
		}
	}
	if _, ok := ParseKind("unbounded"); ok {
		t.Error("there is no such kind")
	}
}

// In the steady state nothing allocates, whatever the kind.
func TestNothingAllocates(t *testing.T) {
	for k := range table {
		b := New(Kind(k)).WithKeys(10).Make(host.MailboxLimits{}).(host.HostedMailbox)
		b.Hosted(&ledger{})
		e := text("message")
		if h := New(Kind(k)).Header(); h != "" {
			with(e, h, "0")
		}
		fill := func() {
			for range 4 {
				if b.Push(e) != nil {
					t.Fatal("full")
				}
				b.Peek()
				if got := b.Pop(); got != nil {
					b.Failed(got) // its key may come again
				}
			}
			b.EndRun()
		}
		fill()
		if n := testing.AllocsPerRun(200, fill); n != 0 {
			t.Errorf("%v: %v allocations", Kind(k), n)
		}
	}
}
