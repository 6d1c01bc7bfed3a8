package costs

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	usual "github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// queue is what a message costs at a mailbox.
type queue interface {
	Push(*host.Envelope) error
	Peek() *host.Envelope
	Pop() *host.Envelope
}

// costs are the mailboxes that are compared, with the headers of the messages.
func costs() (names []string, boxes []queue, headers [][]byte) {
	u := &usual.Mailbox{}
	u.Init(usual.Limits{})
	add := func(name string, q queue, header string) {
		var h []byte
		if header != "" {
			h = abi.AppendHeader(nil, header, "0")
		}
		names, boxes, headers = append(names, name), append(boxes, q), append(headers, h)
	}
	add("usual", u, "")
	for i, name := range mailbox.Kinds() {
		c := mailbox.New(mailbox.Kind(i)).WithKeys(4) // so the keys of eight messages are new each time
		add(name, c.Make(host.MailboxLimits{}), c.Header())
	}
	add("priority by type", mailbox.New(mailbox.Priority).WithTypes(map[string]int{"set": 0}).Make(host.MailboxLimits{}), "")
	return names, boxes, headers
}

// roundOf pushes, looks at and pops eight messages.
func roundOf(q queue, es []*host.Envelope) {
	for _, e := range es {
		_ = q.Push(e)
	}
	for range es {
		q.Peek()
		q.Pop()
	}
}

func messagesFor(header []byte) (es []*host.Envelope) {
	payload, _ := host.Encode([]any{"set", 1, "abcdefgh"})
	for i := range 8 {
		es = append(es, &host.Envelope{Kind: abi.KindMessage, Sender: abi.Ref(i + 1), SenderPath: "wasm://s/user/a", Payload: payload, Headers: header})
	}
	return es
}

// BenchmarkKinds is what eight messages cost at a mailbox, beside the usual one.
func BenchmarkKinds(b *testing.B) {
	names, boxes, headers := costs()
	for i, name := range names {
		b.Run(name, func(b *testing.B) {
			es := messagesFor(headers[i])
			b.ReportAllocs()
			for b.Loop() {
				roundOf(boxes[i], es)
			}
		})
	}
}

// What a message costs at the mailbox, in instructions, as a multiple of the usual one; the guide has
// the figures.
const mostTimes = 14

// And all in all, from Tell to the end of the turn of an actor in Go, in percent of the usual one.
const mostPercent = 150

func TestInstructions(t *testing.T) {
	if !instrcount.Counting() {
		thorough.SkipUnlessSlow(t)
	}
	names, boxes, headers := costs()
	const whole = 16
	if instrcount.Counting() {
		for i := range names {
			es := messagesFor(headers[i])
			for range 20 {
				roundOf(boxes[i], es)
			}
			instrcount.Begin()
			roundOf(boxes[i], es)
			instrcount.End()
		}
		for i, name := range names {
			p := host.Func(func(*host.Context, host.Message) error { return nil })
			if b, ok := boxes[i].(host.Mailbox); ok && name != "usual" {
				p = p.WithMailbox(func(host.MailboxLimits) host.Mailbox { return b })
			}
			s, err := host.New(host.NewConfig("test").WithManual())
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Spawn("a", p)
			if err != nil {
				t.Fatal(err)
			}
			round := func() {
				for range whole {
					_ = s.Tell(a, host.Raw{0xf6})
				}
				s.RunUntilIdle(1000)
			}
			for range 20 {
				round()
			}
			instrcount.Begin()
			round()
			instrcount.End()
			_ = s.Close(context.Background())
		}
		return
	}
	if testing.Short() {
		t.Skip("counting takes ten seconds")
	}
	windows, err := instrcount.Self(t.Context(), "-test.run=^TestInstructions$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || len(windows) != 2*len(names) {
		t.Fatalf("%d windows, %v", len(windows), err)
	}
	for i, name := range names {
		at, all := windows[i].Total/8, windows[len(names)+i].Total/whole
		times := float64(at) / float64(windows[0].Total/8)
		percent := 100 * all / (windows[len(names)].Total / whole)
		t.Logf("%-17s %4d instructions at the mailbox, %4.1f times; %5d in all, %d %%", name, at, times, all, percent)
		if times > mostTimes || percent > mostPercent {
			t.Errorf("%s is too dear", name)
		}
	}
}
