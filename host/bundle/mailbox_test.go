package bundle

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// withMailbox is a manifest whose actor has a mailbox.
func withMailbox(text string) string {
	return strings.Replace(minimal, "{type: m/t}", "\n    type: m/t\n    mailbox: "+text, 1)
}

// Every key of mailbox takes effect, alone.
func TestMailboxKeysTakeEffect(t *testing.T) {
	for text, want := range map[string]mailbox.Config{
		"{}":                                      mailbox.New(mailbox.Bounded),
		"{kind: bounded}":                         mailbox.New(mailbox.Bounded),
		"{kind: drop-newest}":                     mailbox.New(mailbox.DropNewest),
		"{kind: drop-oldest}":                     mailbox.New(mailbox.DropOldest),
		"{kind: block, wait: 3s}":                 mailbox.New(mailbox.Block).WithWait(3 * time.Second),
		"{kind: priority}":                        mailbox.New(mailbox.Priority),
		"{kind: priority, full: drop-oldest}":     mailbox.New(mailbox.Priority).WithFull(mailbox.DropOldest),
		"{kind: priority, full: block, wait: 3s}": mailbox.New(mailbox.Priority).WithFull(mailbox.Block).WithWait(3 * time.Second),
		"{kind: priority, levels: 9}":             mailbox.New(mailbox.Priority).WithLevels(9),
		"{kind: priority, otherwise: 1}":          mailbox.New(mailbox.Priority).WithOtherwise(1),
		"{kind: priority, overtake: 0}":           mailbox.New(mailbox.Priority).WithOvertake(0),
		"{kind: priority, header: urgency}":       mailbox.New(mailbox.Priority).WithHeader("urgency"),
		"{kind: control-aware, types: {a: 0}}":    mailbox.New(mailbox.ControlAware).WithTypes(map[string]int{"a": 0}),
		"{kind: deduplicating, header: id}":       mailbox.New(mailbox.Deduplicating).WithHeader("id"),
		"{kind: deduplicating, keys: 2k}":         mailbox.New(mailbox.Deduplicating).WithKeys(2000),
	} {
		a := parse(t, withMailbox(text)).Actors[0]
		got := a.Mailbox
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	a := parse(t, withMailbox("{messages: 7, bytes: 2KiB}")+"limits: {mailbox: 99}\n").Actors[0]
	if a.Limits.Mailbox != 7 || a.Limits.MailboxBytes != 2048 {
		t.Errorf("%+v", a.Limits)
	}
}

func TestMailboxMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"{kind: unbounded}":                          "f:8:21: ",
		"{kind: priority, levels: 1}":                "f:8:39: ",
		"{levels: 3}":                                "f:8:23: mailbox.levels has no meaning for the kind bounded",
		"{kind: drop-oldest, full: bounded}":         "f:8:40: mailbox.full has no meaning for the kind drop-oldest",
		"{kind: priority, wait: 1s}":                 "f:8:37: mailbox.wait has no meaning for the kind priority",
		"{kind: control-aware, types: {a: 2}}":       `f:8:47: mailbox.types: the level of "a" must be 0 to 1`,
		"{kind: priority, otherwise: 4}":             "f:8:42: mailbox.otherwise must be a level from 0 to 3",
		"{kind: block, wait: 0}":                     "f:8:34: mailbox.wait must be more than 0",
		"{kind: priority, header: a b}":              "f:8:39: ",
		"{messages: 1, box: 2}":                      "f:8:28: ",
		"{messages: 1}\n    limits: {mailbox: 2}":    "f:8:25: mailbox.messages and limits.mailbox are the same",
		"{bytes: 1}\n    limits: {mailbox-bytes: 2}": "f:8:22: mailbox.bytes and limits.mailbox-bytes are the same",
		"{kind: priority}\n    resend: {keep: 2}":    "f:8:21: mailbox.kind cannot be combined with resend",
	} {
		_, err := Parse("f", []byte(withMailbox(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
}

func TestDispatcherKeysTakeEffect(t *testing.T) {
	with := func(text string) string {
		return strings.Replace(minimal, "{type: m/t}", "\n    type: m/t\n    dispatcher: "+text, 1)
	}
	for text, want := range map[string]host.Dispatcher{
		"{}": {}, "{throughput: 1k}": host.Dispatcher{}.WithThroughput(1000), "{deadline: 2ms}": host.Dispatcher{}.WithDeadline(2 * time.Millisecond),
	} {
		if got := parse(t, with(text)).Actors[0].Dispatcher; got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for text, want := range map[string]string{"{throughput: 0}": "f:8:30: ", "{throughput: 10001}": "f:8:30: ", "{deadline: soon}": "f:8:28: ", "{pinned: true}": "f:8:18: unknown key"} {
		if _, err := Parse("f", []byte(with(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	a, b := parse(t, with("{throughput: 3}")), parse(t, with("{throughput: 4}"))
	if is, why := compare(&a.Actors[0], &b.Actors[0]); is != replaced || why != "dispatcher" {
		t.Errorf("%v %s", is, why)
	}
}

// Another mailbox is another actor.
func TestMailboxesCannotBeRenewed(t *testing.T) {
	a, b := parse(t, withMailbox("{kind: priority}")), parse(t, withMailbox("{kind: priority, levels: 2}"))
	if is, why := compare(&a.Actors[0], &b.Actors[0]); is != replaced || why != "mailbox" {
		t.Errorf("%v %s", is, why)
	}
}
