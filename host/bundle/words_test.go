package bundle

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// always picks the last routee.
type always struct{}

func (always) Pick(picked []int, _ *host.Message, routees []router.Routee) ([]int, error) {
	return append(picked, len(routees)-1), nil
}

// ownWords are one of each sort. Mailboxes count those that are made.
func ownWords(made *int) Words {
	return Words{
		Mailboxes: map[string]func(host.MailboxLimits) host.Mailbox{"tight": func(l host.MailboxLimits) host.Mailbox {
			*made++
			l.Messages = min(l.Messages, 2)
			return mailbox.New(mailbox.Bounded).Make(l)
		}},
		Logics: map[string]router.Make{"last": func(uint64) router.Logic { return always{} }},
		Curves: map[string]func(least, most time.Duration) backoff.Curve{"cubic": func(least, most time.Duration) backoff.Curve {
			return backoff.CurveFunc(func(n int) time.Duration { return min(least*time.Duration(n*n*n), most) })
		}},
		Jitters: map[string]backoff.Jitter{"half": backoff.JitterFunc(func(d time.Duration, _ backoff.Rand) time.Duration { return d / 2 })},
	}
}

// TestWordsTakeEffect: what an embedder adds is what the actors run by.
func TestWordsTakeEffect(t *testing.T) {
	made := 0
	w := ownWords(&made)
	dir := t.TempDir()
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(minimal, "  a: {type: m/t}\n", `  a: {type: m/echo, mailbox: {kind: tight, bytes: 1KiB}}
  r: {type: m/echo, pool: 3, router: last}
  s: {type: m/echo, supervision: {backoff: {curve: cubic, min: 1s, max: 20s, jitter: half}}}
`, 1)
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(context.Background(), dir, nil, Options{CacheDir: servicetest.CacheDir()}); err == nil || !strings.Contains(err.Error(), `cannot be "tight"`) {
		t.Errorf("checked without the words: %v", err)
	}
	if _, err := Check(context.Background(), dir, nil, Options{CacheDir: servicetest.CacheDir(), Words: w}); err != nil {
		t.Errorf("checked with them: %v", err)
	}
	m, err := w.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := m.Actors[2].Supervision.Backoff()
	if !ok {
		t.Fatal("no backoff")
	}
	var delays []time.Duration
	for n := range 4 {
		delays = append(delays, b.Policy.Delay(n, nil))
	}
	if want := []time.Duration{0, time.Second / 2, 4 * time.Second, 10 * time.Second}; !reflect.DeepEqual(delays, want) {
		t.Errorf("delays %v, want %v", delays, want)
	}
	if got := m.Actors[0].Mailbox; got.String() != "tight" || got.Kind() != mailbox.Custom || got.Check() != nil || m.Actors[0].Limits.MailboxBytes != 1024 {
		t.Errorf("%v, limits %+v", got, m.Actors[0].Limits)
	}
	opened, err := Open(context.Background(), m, Options{CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close(context.Background())
	sys, err := opened.Start(func(c host.Config) host.Config { return c.WithManual() }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	sys.RunUntilIdle(1000)
	send(t, sys, "/user/r", 1, 2, 3)
	if got := turns(t, sys, "/user/r/0", "/user/r/1", "/user/r/2"); !reflect.DeepEqual(got, []uint64{0, 0, 3}) {
		t.Errorf("turns of the routees: %v", got)
	}
	a := lookup(t, sys, "/user/a")
	for range 2 {
		if err := sys.Tell(a, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := sys.Tell(a, 1); err == nil || made != 1 {
		t.Errorf("the third message: %v; %d mailboxes made", err, made)
	}
}

// TestWordsOfSpawns: a guest's options may use them, too.
func TestWordsOfSpawns(t *testing.T) {
	made := 0
	w := ownWords(&made)
	raw, err := host.Encode(map[string]any{"mailbox": map[string]any{"kind": "tight"}, "supervision": map[string]any{"backoff": map[string]any{"curve": "cubic", "jitter": "half"}}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := w.SpawnOptions(raw)
	if err != nil {
		t.Fatal(err)
	}
	o.Mailbox(host.MailboxLimits{Messages: 5, Bytes: 5})
	if b, _ := o.Supervision.Backoff(); made != 1 || b.Policy.Delay(2, nil) != 400*time.Millisecond {
		t.Errorf("%d mailboxes, %v", made, b.Policy.Delay(2, nil))
	}
	if _, err := SpawnOptions(raw); err == nil || !strings.Contains(err.Error(), `mailbox.kind cannot be "tight"`) {
		t.Errorf("without the words: %v", err)
	}
	if m, err := w.Parse("f", []byte(minimal), nil); err != nil {
		t.Error(err)
	} else if o, err := m.words.SpawnOptions(raw); err != nil || o.Mailbox == nil {
		t.Errorf("the manifest's guests: %v", err)
	}
}

// TestWordsAreChecked: by those who read the manifest, by the schema, and by themselves.
func TestWordsAreChecked(t *testing.T) {
	made := 0
	w := ownWords(&made)
	for actor, want := range map[string]string{
		"{type: m/t, mailbox: {kind: tihgt}}":                              `f:6:34: actors.a.mailbox.kind cannot be "tihgt"; did you mean "tight"?`,
		"{type: m/t, mailbox: {kind: tight, levels: 3}}":                   "f:6:49: mailbox.levels has no meaning for the kind tight",
		"{type: m/t, mailbox: {kind: tight}, durable: true}":               "actor a: durable cannot be combined with mailbox.kind: tight yet",
		"{type: m/t, mailbox: {kind: tight}, durable: events}":             "actor a: durable: events cannot be combined with a mailbox of an embedder, mailbox.kind: tight",
		"{type: m/t, mailbox: {kind: priority}, durable: true}":            "actor a: durable cannot be combined with mailbox.kind: priority yet",
		"{type: m/t, pool: 2, router: last, routing: {within: 1s}}":        "routing.within needs router:",
		"{type: m/t, supervision: {backoff: {curve: cubic, num: 3}}}":      "supervision.backoff.num needs curve:",
		"{type: m/t, supervision: {backoff: {jitter: half, spread: 0.1}}}": "supervision.backoff.spread needs jitter: two-sided or additive",
	} {
		_, err := w.Parse("f", []byte(strings.Replace(minimal, "{type: m/t}", actor, 1)+"store: {path: ./state}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", actor, err, want)
		}
	}
	for _, spread := range []string{"singleton: {}", "keyed: {scope: cluster}"} { // their events are kept by the cluster, and the rule is the same
		actor := "{type: m/t, mailbox: {kind: tight}, durable: events, " + spread + "}"
		_, err := w.Parse("f", []byte(strings.Replace(minimal, "{type: m/t}", actor, 1)+"cluster: {}\n"), nil)
		if want := "durable: events cannot be combined with a mailbox of an embedder"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", actor, err, want)
		}
	}
	if s := string(w.Schema()); !strings.Contains(s, `"tight"`) || !strings.Contains(s, `"last"`) || !strings.Contains(s, `"cubic"`) || !strings.Contains(s, `"half"`) || strings.Contains(string(Schema()), `"tight"`) {
		t.Error("the schema knows other words")
	}
	for want, w := range map[string]Words{
		`the mailbox "Big box" needs another name`: {Mailboxes: map[string]func(host.MailboxLimits) host.Mailbox{"Big box": nil}},
		`there is a router "random" already`:       {Logics: map[string]router.Make{"random": router.Random}},
		`the curve "x" is nil`:                     {Curves: map[string]func(least, most time.Duration) backoff.Curve{"x": nil}},
		`there is a jitter "full" already`:         {Jitters: map[string]backoff.Jitter{"full": {}}},
	} {
		if _, err := w.Parse("f", []byte(minimal), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
