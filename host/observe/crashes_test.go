package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// crashStage is a store of crash reports of a system without actors: the tests tell it of failures.
type crashStage struct {
	*Observer
	t   *testing.T
	n   int
	ref host.Ref
}

func newCrashStage(t *testing.T, most int, on *CrashFolder) *crashStage {
	t.Helper()
	sys, err := host.New(host.NewConfig("test").WithManual().WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Spawn("subject", quietActor())
	if err != nil {
		t.Fatal(err)
	}
	o := New(sys, Options{}.WithCrashes(most, on))
	t.Cleanup(func() {
		o.Close()
		_ = sys.Close(t.Context())
	})
	return &crashStage{Observer: o, t: t, ref: ref}
}

// fail tells of a failure and returns the id of its report.
func (s *crashStage) fail(kind, reason string) string {
	s.n++
	e := &host.Event{
		Kind: host.EventFailed, Time: time.Unix(int64(1000+s.n), 0), Ref: s.ref, Type: kind, ID: fmt.Sprintf("%016x", s.n), Directive: supervision.Restart,
		Failure: &abi.Failure{Kind: abi.FailureGuestPanic, Message: reason},
	}
	s.crashes.add(e)
	return e.ID
}

func (s *crashStage) has(id string) bool {
	_, err := s.CrashReport(id)
	if err != nil && !errors.Is(err, ErrNoReport) {
		s.t.Fatal(err)
	}
	return err == nil
}

// An actor that fails in a loop pushes out its own reports only: those of other types, and of
// other causes of its type, stay, whatever numbers its text has.
func TestALoopOfFailuresPushesOutOnlyItsOwnReports(t *testing.T) {
	s := newCrashStage(t, 100<<10, nil)
	rare, other := s.fail("rare", "division by zero"), s.fail("loop", "something else")
	first := s.fail("loop", "order 0 is wrong")
	var last string
	for i := range 10_000 {
		last = s.fail("loop", fmt.Sprintf("order %d is wrong", i))
	}
	for i, id := range []string{rare, other, last} {
		if !s.has(id) {
			t.Errorf("report %d of %v is gone", i, []string{rare, other, last})
		}
	}
	if s.has(first) || s.crashes.bytes > 100<<10 {
		t.Errorf("the first report of the loop is there: %v, %d bytes", s.has(first), s.crashes.bytes)
	}
	p, err := s.Crashes(CrashQuery{})
	if err != nil || p.Ever != 10_003 || len(p.Causes) != 3 || p.Causes[0].Cause != "guest_panic: order # is wrong" || p.Causes[0].Ever < 10_000 || p.Crashes[0].ID != last {
		t.Errorf("%+v %v", p.Causes, err)
	}
}

// A type whose failures all have causes of their own takes no room from other types.
func TestCausesThatAreMadeUpTakeOnlyTheirTypesRoom(t *testing.T) {
	s := newCrashStage(t, 100<<10, nil)
	rare := s.fail("rare", "division by zero")
	for i := range 5000 {
		s.fail("liar", strings.Repeat(string(rune('a'+i%26)), 1+i/26%90)+string(rune('A'+i%50)))
	}
	if !s.has(rare) || s.crashes.bytes > 100<<10 || len(s.crashes.of["liar"].causes) > 300 {
		t.Errorf("rare is there: %v, %d bytes, %d causes", s.has(rare), s.crashes.bytes, len(s.crashes.of["liar"].causes))
	}
}

func TestCrashReportsAreFiltered(t *testing.T) {
	s := newCrashStage(t, 0, nil)
	a, b := s.fail("shop/a", "boom"), s.fail("shop/b", "bang 7")
	for _, c := range []struct {
		q    CrashQuery
		want []string
	}{
		{CrashQuery{}, []string{b, a}},
		{CrashQuery{Limit: 1}, []string{b}},
		{CrashQuery{Offset: 1}, []string{a}},
		{CrashQuery{Types: []string{"shop/a"}}, []string{a}},
		{CrashQuery{Paths: []string{"/user/**"}, Causes: []string{"*bang #"}}, []string{b}},
		{CrashQuery{Causes: []string{"bang 7"}}, []string{b}},
		{CrashQuery{Kinds: []string{"trap"}}, nil},
		{CrashQuery{Paths: []string{"/user/nobody"}}, nil},
		{CrashQuery{Since: time.Unix(1002, 0)}, []string{b}},
	} {
		p, err := s.Crashes(c.q)
		var got []string
		for _, x := range p.Crashes {
			got = append(got, x.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v %v", c.q, got, err)
		}
	}
	for _, q := range []CrashQuery{{Limit: -1}, {Offset: -1}, {Paths: []string{"x"}}, {Limit: MaxLimit + 1}} {
		if _, err := s.Crashes(q); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// The id that an asker gets with the failure, which the gateway sends as X-Crash-Report, finds the report.
func TestTheIDOfAFailureFindsItsReport(t *testing.T) {
	s := newStage(t, nil)
	ref := s.spawn("fails", host.Func(func(*host.Context, host.Message) error { return errBoom }))
	p, err := s.TryRequest(ref, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	m := <-p.Answer()
	var failed *host.TurnError
	if !errors.As(m.Err(), &failed) {
		t.Fatal(m.Err())
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r, err := s.CrashReport(strings.ToUpper(failed.ID) + " ")
		if err == nil {
			var e struct{ Event, ID, Actor string }
			if err := json.Unmarshal(r.Report, &e); err != nil || e.Event != "failed" || e.ID != failed.ID || e.Actor != "/user/fails" || r.Crash.Path != "/user/fails" || !strings.Contains(r.Crash.Reason, "boom") {
				t.Errorf("%s %+v", r.Report, r.Crash)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// What is in the folder is there after the process was killed in the middle of a line, and once more after
// a second run.
func TestCrashReportsAreKeptInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	open := func() *CrashFolder {
		f, err := OpenCrashFolder(dir, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s := newCrashStage(t, 0, open())
	id := s.fail("shop", "boom")
	if _, err := OpenCrashFolder(dir, nil); !errors.Is(err, ErrCrashFolder) {
		t.Errorf("a second run: %v", err)
	}
	s.crashes.save(false)
	text, err := os.ReadFile(filepath.Join(dir, crashFile))
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Fatalf("%s %v", text, err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, crashFile), append(text, text[:len(text)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = newCrashStage(t, 0, open())
	s.n = 100
	more := s.fail("shop", "boom")
	s.Close()
	s = newCrashStage(t, 0, open())
	r, err := s.CrashReport(id)
	if err != nil || !strings.Contains(string(r.Report), `"event":"failed"`) || !s.has(more) || r.Crash.Type != "shop" {
		t.Errorf("%+v %v %v", r, err, s.has(more))
	}
}

// A loop of failures writes at most so much a second, saves the reports of each cause, and the
// file stays within its bound.
func TestTheFileOfCrashReportsIsBounded(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenCrashFolder(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	const most = 256 << 10
	s := newCrashStage(t, most, f)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, crashFile))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	rare := s.fail("rare", "division by zero")
	for range 40 {
		for i := range 400 {
			s.fail("loop", fmt.Sprintf("order %d is wrong, %s", i, strings.Repeat("x", 100)))
		}
		f.saving.Lock()
		before := size()
		s.crashes.write(f, false)
		n := size() - before
		f.saving.Unlock()
		if n > 2*crashSaveAtOnce {
			t.Fatalf("%d bytes at once", n)
		}
	}
	if n := size(); n > 5*most {
		t.Errorf("the file has %d bytes", n)
	}
	s.Close()
	if f, err = OpenCrashFolder(dir, nil); err != nil {
		t.Fatal(err)
	}
	if s = newCrashStage(t, most, f); !s.has(rare) || s.crashes.bytes > most {
		t.Errorf("the rare one is there: %v, %d bytes", s.has(rare), s.crashes.bytes)
	}
}

// Events can be chosen by what they are not.
func TestEventsAllBut(t *testing.T) {
	s := newStage(t, nil)
	s.spawn("one", quietActor())
	s.spawn("two", host.Func(func(*host.Context, host.Message) error { return errBoom }))
	s.run()
	two, _ := s.Lookup("/user/two")
	_ = s.Tell(two, 1)
	s.run()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if x, _ := s.Events(EventQuery{Kinds: []string{"restarted"}}); len(all(x)) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no restart")
		}
	}
	for _, c := range []struct {
		q    EventQuery
		want string
	}{
		{EventQuery{But: Except{Kinds: []string{"started", "failed"}}}, "[restarted two]"},
		{EventQuery{But: Except{Paths: []string{"/user", "/user/two", "/system/**"}}}, "[started one]"},
		{EventQuery{Paths: []string{"/user/*"}, But: Except{Kinds: []string{"failed", "restarted"}, Paths: []string{"/user/one"}}}, "[started two]"},
		{EventQuery{But: Except{Types: []string{"*"}}}, "[]"},
	} {
		x, err := s.Events(c.q)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range all(x) {
			got = append(got, e.Kind.String()+" "+e.Ref.Name())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v", c.q, got)
		}
	}
	for _, bad := range []Except{{Kinds: []string{"birthday"}}, {Paths: []string{"x"}}} {
		if _, err := s.Events(EventQuery{But: bad}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
