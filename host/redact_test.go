package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/supervision"
)

const hidden = "correct horse battery"

// recorder is a tracer that keeps what spans end with.
type spanTexts struct {
	mu    sync.Mutex
	texts []string
}

func (r *spanTexts) Begin(*SpanStart) Span                                  { return r }
func (r *spanTexts) Knows([16]byte) bool                                    { return false }
func (r *spanTexts) Of(context.Context) TraceContext                        { return TraceContext{} }
func (r *spanTexts) In(ctx context.Context, _ TraceContext) context.Context { return ctx }
func (r *spanTexts) Context() TraceContext {
	return TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Flags: 1}
}
func (r *spanTexts) End(e *SpanEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, fmt.Sprint(e.Failure, e.Err))
}

// Wherever the host shows what has happened the secret is hidden, and messages stay as they are.
func TestSecretsAreHidden(t *testing.T) {
	spans := &spanTexts{}
	s, err := New(NewConfig("x").WithManual().WithTracer(spans))
	if err != nil {
		t.Fatal(err)
	}
	sub := s.Subscribe(1000, nil)
	if err := s.Redaction().Hide([]byte("short")); !errors.Is(err, redact.ErrShort) {
		t.Error(err)
	}
	if err := s.Redaction().Hide([]byte(hidden)); err != nil {
		t.Fatal(err)
	}
	var got []string
	ref, err := s.Spawn("a", Func(func(ctx *Context, m Message) error {
		var text string
		if m.Decode(&text) == nil {
			got = append(got, text)
		}
		switch text {
		case "panic":
			panic("the password is " + hidden)
		case "fail " + hidden:
			return errors.New("no: " + hidden)
		case "unhandled " + hidden:
			return ErrUnhandled
		case "cut":
			return errors.New(strings.Repeat("x", LastFailureText-8) + hidden)
		}
		return nil
	}).WithCrashedMessage(DeadLetterCrashed()))
	if err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(100)
	var tapped []byte
	stop, err := s.View().Tap(ref, 12, func(m *Tapped) {
		tapped = append(tapped, m.Payload...)
		if m.Failure != nil {
			tapped = append(tapped, m.Failure.Error()...)
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	say := func(v any) {
		if err := s.Tell(ref, v); err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(100)
	}
	shown := func() string {
		var b strings.Builder
		for len(sub.C()) > 0 {
			e := <-sub.C()
			j, _ := e.MarshalJSON()
			b.Write(j)
			b.WriteString(e.Report())
			if e.Dead != nil {
				b.Write(e.Dead.Payload)
			}
			if e.Mail != nil {
				b.Write(e.Mail.Payload)
			}
			if e.Failure != nil {
				fmt.Fprint(&b, *e.Failure)
			}
		}
		letters, _ := s.DeadLetters()
		for _, l := range letters {
			b.Write(l.Payload)
			whole, err := s.DeadLetter(l.ID)
			if err != nil {
				t.Error(err)
			}
			b.Write(whole.Payload)
		}
		i, err := s.View().Info(ref)
		if err != nil {
			t.Error(err)
		}
		if i.Failure != nil {
			fmt.Fprint(&b, i.Failure.Failure)
		}
		spans.mu.Lock()
		defer spans.mu.Unlock()
		return b.String() + string(tapped) + strings.Join(spans.texts, " ")
	}
	for _, text := range []any{
		"panic", "fail " + hidden, "unhandled " + hidden, "cut", hidden,
		map[string]any{"list": []string{strings.Repeat("y", MaxDeadPayload-20), hidden}}, []byte(hidden),
	} {
		say(text)
		all := shown()
		for n := len(hidden); n >= 8; n-- {
			if strings.Contains(all, hidden[:n]) {
				t.Fatalf("%.40v: %q is in %s", text, hidden[:n], all)
			}
		}
	}
	if all := shown(); !strings.Contains(all, "*****") || len(tapped) == 0 {
		t.Error("nothing was shown at all: " + all)
	}
	// What is delivered again is what it was.
	letters, _ := s.DeadLetters()
	for _, l := range letters {
		var text string
		if d, err := s.DeadLetter(l.ID); err == nil && message.Decoder.Unmarshal(d.Payload, &text) == nil && strings.HasPrefix(text, "fail") {
			got = nil
			if _, err := s.Operate().Redeliver(l.ID); err != nil {
				t.Error(err)
			}
			s.RunUntilIdle(100)
			if len(got) != 1 || got[0] != "fail "+hidden {
				t.Errorf("delivered again: %q", got)
			}
		}
	}
	defer stop()
	// An ask's error goes to who has asked as it is: it is the actor's answer.
	asked := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := s.Ask(ctx, ref, "fail "+hidden)
		asked <- err
	}()
	for len(asked) == 0 {
		s.RunUntilIdle(100)
	}
	if err := <-asked; err == nil || !strings.Contains(err.Error(), hidden) {
		t.Error(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(spans.texts, " "); strings.Contains(all, hidden) || !strings.Contains(all, "*****") {
		t.Error(all)
	}
}

func TestCauseIsHidden(t *testing.T) {
	s, err := New(NewConfig("x").WithManual().WithGuardian(supervision.Default().WithOtherwise(supervision.Escalate).WithDecider(func(string, *abi.Failure) supervision.Directive { return supervision.Escalate })))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Redaction().Hide([]byte(hidden))
	ref, _ := s.Spawn("a", Func(func(*Context, Message) error { return errors.New(hidden) }))
	_ = s.Tell(ref, "x")
	s.RunUntilIdle(1000)
	cause := s.Cause()
	var f *abi.Failure
	if cause == nil || strings.Contains(cause.Error(), hidden) || !errors.As(cause, &f) || strings.Contains(f.Reason, hidden) {
		t.Errorf("%v", cause)
	}
	_ = s.Close(context.Background())
}

// A system without secrets pays nothing for them.
func TestNoSecretsNoCost(t *testing.T) {
	s, err := New(NewConfig("x").WithManual())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	payload := bytes.Repeat([]byte("x"), 100)
	if n := testing.AllocsPerRun(100, func() { s.Redaction().Bytes(payload) }); n != 0 {
		t.Error(n)
	}
}

// A name with a secret in it is refused, and who may not spawn does not learn that it has one.
func TestNamesWithSecrets(t *testing.T) { everyManner(t, rowNamesWithSecrets) }

func rowNamesWithSecrets(t *testing.T) {
	l := newStage(t, nil)
	if err := l.Redaction().Hide([]byte("correct-horse")); err != nil {
		t.Fatal(err)
	}
	sub := l.Subscribe(100, func(e *Event) bool { return e.Kind == EventRefused })
	for _, c := range []struct{ may, want, name string }{
		{"puppet", "the name contains a secret, and names are shown", "x-correct-horse"},
		{"other", "denied", "x-correct-horse"},
		{"other", "denied", "x-something-else"},
	} {
		g := l.spawn("", puppet(t, on(abi.KindSpawnFailed, toProbe("failed"))).WithCapabilities(Capabilities{Send: []string{"/**"}, Spawn: []string{c.may}}))
		l.run()
		key := childKeyOf(guestOf(l.table.Get(g.UID())))
		l.say(g, script(now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), "puppet", c.name, nil, nil))))
		l.run()
		e := <-sub.C()
		if text := e.Refused.Reason; text != c.want {
			t.Errorf("%s, which may spawn %s: %s, want %s", c.name, c.may, text, c.want)
		}
		j, _ := e.MarshalJSON()
		if strings.Contains(string(j), "correct-horse") {
			t.Errorf("%s", j)
		}
	}
}
