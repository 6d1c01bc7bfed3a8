package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Every mistake in a line is told in plain words.
func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                     `a line is {"to"`,
		`{"to": "a"}`:                            `"message" is missing`,
		`{"message": 1}`:                         `"to" is missing`,
		`{"to": "", "message": 1}`:               `"to" is empty`,
		`{"to": 5, "message": 1}`:                `not a message: "to" must be the name or the path of an actor, as a text`,
		`{"to": null, "message": 1}`:             `"to" must be`,
		`{"to": "a", "message": 1, "ask": "no"}`: `"ask" must be true or false`,
		`{"to": "a", "mesage": 1}`:               `unknown key "mesage"; did you mean "message"?`,
		`{"wait": "long"}`:                       waitLine,
		`{"wait": "idle", "to": "a"}`:            waitLine,
		`[1]`:                                    "an array and no object",
		`null`:                                   "not a message: null",
		`5`:                                      "a number and no object",
		`{"to": "a"`:                             "the JSON ends too early",
		`{"to": a}`:                              "invalid character 'a' looking for beginning of value, at character 8",
		`{"to": "a", "message": 1} {}`:           "more than one value",
		`{"to": "a", "message": null}`:           "",
		`{"to": "a", "message": 1}`:              "",
		`{"wait": "idle"}`:                       "",
	} {
		if _, got := parseLine([]byte(text)); !strings.Contains(got, want) || (want == "") != (got == "") || strings.Contains(got, "Go ") || strings.Contains(got, "json") {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestLargeIntegers(t *testing.T) {
	for _, text := range []string{"18446744073709551616", "-9223372036854775809", "[123456789012345678901234567890]"} {
		if _, err := FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), "does not fit 64 bits; write it as a text") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"18446744073709551615", "-9223372036854775808", "9007199254740993"} {
		raw, err := FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := host.ToJSON(raw); err != nil || string(back) != text {
			t.Errorf("%s: %s %v", text, back, err)
		}
	}
}

// family is a parent that starts its child late, and again after each of its failures.
func family(t *testing.T, slow time.Duration) *host.System {
	t.Helper()
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close(context.Background()) })
	var lives atomic.Int32
	kid := host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Reply(lives.Load())
	})
	parent := host.Native(func() host.Actor { return &parentActor{slow: slow, lives: &lives} }).WithChildren(host.Child{Name: "kid", Props: kid})
	if _, err := sys.Spawn("parent", parent); err != nil {
		t.Fatal(err)
	}
	return sys
}

type parentActor struct {
	slow  time.Duration
	lives *atomic.Int32
}

func (p *parentActor) Started(*host.Context) error {
	time.Sleep(p.slow) // a start that takes its time
	p.lives.Add(1)
	return nil
}

func (p *parentActor) Receive(_ *host.Context, m host.Message) error { return errors.New("down") }

// The feed waits for nested actors that are about to start, so that no line is lost,
// and finds them again after their parent has been restarted.
func TestFeedFindsNestedActors(t *testing.T) {
	sys := family(t, 50*time.Millisecond)
	got := map[int]string{}
	input := `{"to": "parent/kid", "message": 1}
{"wait": "idle"}
{"to": "parent", "message": "fail"}
{"wait": "idle"}
{"to": "parent/kid", "message": 2}
{"to": "parent/kit", "message": 3}
`
	stats, err := Feed{Paths: []string{"/user/parent", "/user/parent/kid"}, Answer: func(a Answer) {
		text, _ := host.ToJSON(a.Payload)
		got[a.Line] = fmt.Sprint(a.Kind(), " ", string(text), a.Reason())
	}}.Run(context.Background(), sys, strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{1: "reply 1", 5: "reply 2", 6: `invalid nullthere is no actor "parent/kit"; did you mean "parent/kid"?`} {
		if got[n] != want {
			t.Errorf("line %d: %s, want %s", n, got[n], want)
		}
	}
	if stats.Answered != 2 || stats.Invalid != 1 {
		t.Errorf("%+v", stats)
	}
}

// An actor of the bundle's that has ended is waited for once, and only while others work.
func TestFeedAndTheDead(t *testing.T) {
	sys := family(t, 0)
	start := time.Now()
	input := strings.Repeat(`{"to": "gone", "message": 1}`+"\n", 100)
	stats, err := Feed{Paths: []string{"/user/gone"}}.Run(context.Background(), sys, strings.NewReader(input))
	if err != nil || stats.Failed != 100 || time.Since(start) > patience/2 {
		t.Errorf("%+v %v in %v", stats, err, time.Since(start))
	}
}

// A line that is wrong ends the feed, and what was right before it is finished.
func TestFeedStopsOrderly(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	if _, err := sys.Spawn("slow", host.Func(func(ctx *host.Context, m host.Message) error {
		time.Sleep(5 * time.Millisecond)
		return ctx.Reply(m.Payload)
	})); err != nil {
		t.Fatal(err)
	}
	input := strings.Repeat(`{"to": "slow", "message": 1}`+"\n", 10) + "oops\n" + `{"to": "slow", "message": 1}` + "\n"
	stats, err := Feed{Stop: true}.Run(context.Background(), sys, strings.NewReader(input))
	var bad *InputError
	if !errors.As(err, &bad) || bad.Line != 11 || stats.Answered != 10 || stats.Sent != 10 {
		t.Errorf("%+v %v", stats, err)
	}
}

// An answer may take so long and no longer; how far the feed is can be watched.
func TestFeedTimeout(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	release := make(chan struct{})
	if _, err := sys.Spawn("slow", host.Func(func(ctx *host.Context, m host.Message) error {
		<-release
		return ctx.Reply(m.Payload)
	})); err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, `{"to": "slow", "message": 1}`+"\n")
	}()
	var kinds []string
	told := make(chan FeedStats, 100)
	go func() {
		<-told // the feed goes on meanwhile
		close(release)
		out.Close()
	}()
	f := Feed{Timeout: 20 * time.Millisecond, Answer: func(a Answer) { kinds = append(kinds, a.Kind()+" "+a.Reason()) }, Progress: func(s FeedStats) {
		select {
		case told <- s:
		default:
		}
	}}
	stats, err := f.Run(context.Background(), sys, in)
	if err != nil || stats.Timeouts != 1 || len(kinds) != 1 || kinds[0] != "timeout no reply in time" {
		t.Errorf("%+v %v %v", stats, kinds, err)
	}
}

// endless is the same line again and again.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "x\n"), nil }

// TestScanSaysWhyItEnds: when the context ends between two lines, nobody waits for the outcome
// in vain.
func TestScanSaysWhyItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lines, failed := scan(ctx, endless{})
	for range lines {
	}
	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it says %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("there are no more lines, and nothing is said about it")
	}
}

// A line fails at once if the system has ended before its actor is found, and those that follow find the actor in the next system.
func TestFeedWithoutASystem(t *testing.T) {
	lost, next := family(t, 0), family(t, 0)
	if err := lost.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	systems, got := []*host.System{lost, next}, map[int]Answer{}
	f := Feed{Paths: []string{"/user/parent", "/user/parent/kid"}, Answer: func(a Answer) { got[a.Line] = a }}
	f.System = func(context.Context) (*host.System, error) {
		sys := systems[0]
		systems = systems[1:]
		return sys, nil
	}
	began := time.Now()
	input := `{"to": "parent/kid", "message": 1}
{"to": "parent/kid", "message": 2}
`
	if _, err := f.Run(context.Background(), lost, strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got[1].Err, host.ErrStopped) || got[2].Kind() != KindReply {
		t.Errorf("%v, %v", got[1].Err, got[2].Err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("that took %v", took)
	}
}
