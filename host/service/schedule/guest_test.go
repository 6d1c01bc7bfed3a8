package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// place is a system whose runner has entries, on virtual time.
type place struct {
	*servicetest.World
	t     *testing.T
	clock *host.VirtualClock
	dir   string
	a     host.Ref
}

func openPlace(t *testing.T, dir string, at time.Time, s *Settings, g Grant) *place {
	t.Helper()
	p := &place{t: t, clock: host.NewVirtualClock(at), dir: dir}
	env := &service.Env{Clock: p.clock, StateDir: func() (string, error) { return dir, nil }}
	p.World = servicetest.New(t, Service, env, s, func(c host.Config) host.Config { return c.WithClock(p.clock) })
	p.a = p.Spawn("a", "schedule-runner", Service.Grant(g, service.Bounds{Rate: 1e6, Burst: 1e6}), nil)
	return p
}

func (p *place) say(who host.Ref, order string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	text, err := host.AskAs[string](ctx, p.System, who, order)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return text
}

// pass lets time pass until the runner has run what is wanted.
func (p *place) pass(d time.Duration, want string) {
	p.t.Helper()
	p.clock.Advance(d)
	got := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got = p.say(p.a, "runs"); got == want {
			return
		}
		if len(got) < len(want) {
			p.clock.Advance(20 * time.Millisecond) // what is tried again
		}
	}
	p.t.Fatalf("runs:\n%s\nwant\n%s", got, want)
}

func TestGuest(t *testing.T) {
	p := openPlace(t, t.TempDir(), epoch, &Settings{Entries: map[string]Planned{"m": {Actor: "/user/a", Every: 50 * time.Minute, Message: `{"x":1}`}}}, Grant{})
	for _, c := range []struct{ order, want string }{
		{"cron nightly hello 0 3 * * *", "true 2027-01-01T02:00:00Z"}, // Berlin
		{"cron nightly hello 0 3 * * *", "false 2027-01-01T02:00:00Z"},
		{"every e 90", "2027-01-01T00:01:30Z"},
		{"every e 90", `exists: there is an entry "e" already`},
		{"every e2 59", "denied: two runs within 59s, at least 1m0s must be between them; capabilities.schedule.least in the manifest would allow it"},
		{"at soon 30", "2027-01-01T00:00:30Z"},
		{"list", "e m! nightly soon "},
		{"get m", "m 50m0s to /user/a runs 0 retries 0"},
		{"get nobody", `not_found: there is no entry "nobody"`},
		{"cancel e", "true"},
		{"cancel e", "false"},
		{"cancel m", `read_only: the entry "m" is declared in the manifest`},
		{"cron x y 0 0 30 2 *", `bad_request: "0 0 30 2 * " never runs: there is no such time`},
	} {
		if got := p.say(p.a, c.order); got != c.want {
			t.Errorf("%s: %q, want %q", c.order, got, c.want)
		}
	}
	p.pass(30*time.Second, "/user/a:soon@2027-01-01T00:00:30Z attempt 1\n")
	p.pass(time.Hour, "/user/a:soon@2027-01-01T00:00:30Z attempt 1\nmanifest:m@2027-01-01T00:50:00Z attempt 1\n")
	// A restart of the guest changes nothing; a run is repeated until it is answered.
	if err := p.Operate().Restart(p.a); err != nil {
		t.Fatal(err)
	}
	p.say(p.a, "fail 2")
	m := "manifest:m@2027-01-01T01:40:00Z attempt 1\n"
	p.pass(39*time.Minute+30*time.Second, m)
	night := "/user/a:nightly@2027-01-01T02:00:00Z attempt "
	p.clock.Advance(19*time.Minute + 59*time.Second)
	// One of the two attempts that fail is m's, or both are, or one is nightly's. An attempt that is
	// overtaken by the clock does not reach the guest at all.
	got, again := "", false
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && !(again && strings.Contains(got, night+"1 hello\n")); time.Sleep(time.Millisecond) {
		p.clock.Advance(time.Second)
		got = p.say(p.a, "runs")
		again = strings.Count(got, " attempt ") > strings.Count(got, " attempt 1")
	}
	if !strings.HasPrefix(got, m) || !again || !strings.Contains(got, night) {
		t.Error(got)
	}
}

// A crash is not an answer: the supervisor restarts the actor, and the run comes again.
func TestGuestCrashes(t *testing.T) {
	p := openPlace(t, t.TempDir(), epoch, nil, Grant{})
	p.say(p.a, "cron crash x 0 * * * *")
	p.pass(time.Hour+2*time.Second, "/user/a:crash@2027-01-01T01:00:00Z attempt 2 x\n")
	// The actor knows of the run before the service has its answer.
	got, want := "", "crash 0 * * * * 0s to /user/a runs 1 retries 1"
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && got != want; time.Sleep(time.Millisecond) {
		got = p.say(p.a, "get crash")
	}
	if got != want {
		t.Error(got)
	}
}

// The process ends and another begins: entries are there, and what was missed is dealt with. What was
// cancelled is not.
func TestNextProcess(t *testing.T) {
	dir := t.TempDir()
	p := openPlace(t, dir, epoch, nil, Grant{})
	p.say(p.a, "cron x hello 0 * * * *")
	p.say(p.a, "cron y hello 0 * * * *")
	if got := p.say(p.a, "cancel y"); got != "true" {
		t.Error(got)
	}
	p.End()
	q := openPlace(t, dir, epoch.Add(5*time.Hour+time.Minute), nil, Grant{})
	if got := q.say(q.a, "list"); got != "x " {
		t.Error(got)
	}
	got := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && got == ""; time.Sleep(time.Millisecond) {
		q.clock.Advance(time.Second)
		got = q.say(q.a, "runs")
	}
	if !strings.HasPrefix(got, "/user/a:x@2027-01-01T05:00:00Z attempt ") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	q.End()
	// A file that somebody has changed stops the service, and says what to do.
	path := filepath.Join(dir, journalName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[headSize+12] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	sys, err := host.New(host.NewConfig("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Service.Start(sys, &service.Env{StateDir: func() (string, error) { return dir, nil }}, nil)
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "backup") {
		t.Error(err)
	}
	_ = sys.Close(t.Context())
}

// The table of errors, and requests that nobody would send who means well.
func TestRequests(t *testing.T) {
	p := openPlace(t, t.TempDir(), epoch, &Settings{Entries: map[string]Planned{"m": {Actor: "/user/other", Cron: "@daily"}}}, Grant{Entries: 3, Payload: 100, To: []string{"/user/workers/*"}})
	asker := p.Spawn("asker", "service-asker", Service.Grant(Grant{Entries: 3, Payload: 100, To: []string{"/user/workers/*"}}, service.Bounds{}), nil)
	none := p.Asker("none", nil)
	hourly := func(more ...any) map[string]any {
		m := map[string]any{"name": "x", "cron": "0 * * * *"}
		for i := 0; i < len(more); i += 2 {
			if more[i+1] == nil {
				delete(m, more[i].(string))
				continue
			}
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	for _, c := range []struct {
		who  host.Ref
		op   string
		args any
		want string
	}{
		{none, "set", hourly(), "denied: "},
		{asker, "set", hourly(), ""},
		{asker, "set", hourly("only_new", true), "exists: "},
		{asker, "set", hourly("extra", 1), "bad_request: "},
		{asker, "set", hourly("name", ""), "bad_request: "},
		{asker, "set", hourly("name", "a/b"), "bad_request: "},
		{asker, "set", hourly("name", "*"), "bad_request: "},
		{asker, "set", hourly("name", strings.Repeat("n", 65)), "bad_request: "},
		{asker, "set", hourly("cron", nil), "bad_request: one of cron"},
		{asker, "set", hourly("every", int64(time.Hour)), "bad_request: one of cron"},
		{asker, "set", hourly("cron", "* * * * * *"), "denied: two runs within 1s"},
		{asker, "set", hourly("cron", strings.Repeat("1,", 1000)), "bad_request: "},
		{asker, "set", hourly("zone", "../../etc/passwd"), "bad_request: zone"},
		{asker, "set", hourly("zone", "/etc/localtime"), "bad_request: zone"},
		{asker, "set", hourly("zone", "Local"), "bad_request: zone"},
		{asker, "set", hourly("zone", "Mars/Olympus"), "bad_request: zone"},
		{asker, "set", hourly("to", "/user/other"), "denied: entries for /user/other; capabilities.schedule.to"},
		{asker, "set", hourly("to", "/user/asker/../other"), "bad_request: to"},
		{asker, "set", hourly("to", "/system/schedule"), "bad_request: to"},
		{asker, "set", hourly("to", "/user/askerlike"), "denied: "},
		{asker, "set", hourly("to", "/user/workers/a/b"), "denied: "},
		{asker, "set", hourly("to", "/user/workers/a", "name", "w"), ""},
		{asker, "set", hourly("to", "/user/asker/kid", "name", "k"), ""},
		{asker, "set", hourly("name", "too-many"), "quota: 3 entries"},
		{asker, "set", hourly("payload", strings.Repeat("x", 101)), "too_large: "},
		{asker, "set", hourly("deadline", -1), "bad_request: deadline"},
		{asker, "set", hourly("missed", "never"), "bad_request: missed"},
		{asker, "set", hourly("most", 5), "bad_request: most"},
		{asker, "set", hourly("missed", "all", "most", 101), "bad_request: most"},
		{asker, "set", hourly("delivery", "tell", "timeout", int64(time.Second)), "bad_request: timeout"},
		{asker, "set", hourly("cron", nil, "at", "yesterday"), "bad_request: "},
		{asker, "set", hourly("cron", nil, "at", "2262-01-01 00:00"), "bad_request: the year 2262"},
		{asker, "set", hourly("cron", nil, "at_ns", int64(-1)), "bad_request: the year 1969"},
		{asker, "set", hourly("cron", nil, "every", int64(time.Minute)+1), "bad_request: a period"},
		{asker, "set", []int{1}, "bad_request: "},
		{asker, "cancel", map[string]any{"name": "x", "of": "/user/a"}, "denied: of"},
		{asker, "cancel", map[string]any{"name": "x", "of": "/user/asker2"}, "denied: of"},
		{asker, "get", map[string]any{"name": "m"}, "not_found: "},
		{asker, "list", map[string]any{"limit": 101}, "bad_request: limit"},
		{asker, "list", map[string]any{"of": "/user"}, "denied: of"},
		{asker, "preview", map[string]any{"cron": "@daily", "n": 101}, "bad_request: n"},
		{asker, "preview", map[string]any{"cron": "@daily", "n": 3}, ""},
		{asker, "trigger", nil, "bad_request: there is no operation"},
	} {
		err := p.Request(c.who, c.op, c.args, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s %.200v: %v, want %q", c.op, c.args, err, c.want)
		}
	}
	var times []int64
	if err := p.Request(asker, "preview", map[string]any{"cron": "30 2 * * *", "zone": "Europe/Berlin", "n": 2, "from": time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC).UnixNano()}, &times); err != nil ||
		fmt.Sprint(times) != fmt.Sprint([]int64{time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC).UnixNano(), time.Date(2027, 3, 29, 0, 30, 0, 0, time.UTC).UnixNano()}) {
		t.Error(times, err)
	}
	// Somebody else's request that is forwarded has no grant, whosever it was.
	f := p.Spawn("forwarder", "service-forwarder", Service.Grant(Grant{}, service.Bounds{}), "schedule")
	_, err := p.Ask(t.Context(), asker, []any{uint64(f.UID()), "cancel", map[string]any{"name": "x"}})
	if err == nil || !strings.Contains(err.Error(), "denied: schedule is not granted") {
		t.Error(err)
	}
	// An actor whose name the host has made up.
	ref, err := p.System.Spawn("", host.GuestOf(servicetest.Module(t), "service-asker").WithGrant("schedule", Service.Grant(Grant{}, service.Bounds{})))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Request(ref, "set", hourly(), nil); err == nil || !strings.Contains(err.Error(), "has a name that the host chose") {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		says string
	}{
		{Settings{Zone: "Nowhere"}, "zone: "},
		{Settings{Entries: map[string]Planned{"x": {Actor: "/user/a"}}}, "entries.x: one of cron"},
		{Settings{Entries: map[string]Planned{"x": {Actor: "a", Cron: "@daily"}}}, "entries.x"},
		{Settings{Entries: map[string]Planned{"x": {Actor: "/user/a", Cron: "0 0 31 2 *"}}}, "never runs"},
		{Settings{Entries: map[string]Planned{"x": {Actor: "/user/a", Cron: "@daily", Message: "{"}}}, "entries.x.message: it is not JSON"},
		{Settings{Entries: map[string]Planned{"x": {Actor: "/user/a", At: "noon"}}}, "entries.x: "},
	} {
		if err := Service.CheckSettings(&c.s); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	for _, g := range []Grant{{Least: time.Millisecond}, {To: []string{"/system/**"}}} {
		if err := Service.CheckGrant(&g); err == nil {
			t.Errorf("%+v", g)
		}
	}
}

func FuzzParseCron(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 0-3,7 L,15W,LW * MON#2,5#L", "@daily", "0 0 29 2 *", "1/2 * * JAN-mar sun"} {
		f.Add(s, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, expression string, after int64) {
		s, err := ParseCron(expression, time.UTC)
		if err != nil {
			return
		}
		if s.Least() <= 0 {
			t.Fatalf("%q: the least is %v", expression, s.Least())
		}
		after = firstSecond + (after%(200*366*daySeconds)+200*366*daySeconds)%(200*366*daySeconds)
		next, ok := s.nextCron(after)
		if !ok {
			return
		}
		if next <= after {
			t.Fatalf("%q: %d comes after %d", expression, next, after)
		}
		if then, ok := s.nextCron(next); ok && time.Duration(then-next)*time.Second < s.Least() {
			t.Fatalf("%q: %d and %d are nearer than %v", expression, next, then, s.Least())
		}
		if again, ok := s.nextCron(next - 1); !ok || again != next {
			t.Fatalf("%q: after %d comes %d, not %d", expression, next-1, again, next)
		}
	})
}

func FuzzRecords(f *testing.F) {
	x := &item{Entry: Entry{Name: "x", Cron: "@daily"}, owner: "/user/a", created: 5, doneTo: 7}
	good := append((&journal{mark: mark([]byte("12345678"))}).head(), appendRecord(nil, mark([]byte("12345678")), x.record().encode())...)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(journalHead))
	f.Add([]byte(firstHead))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newEngine(host.NewVirtualClock(epoch), nil, 10, 1, 1)
		_, _, err := readRecords(data, func(b []byte) error {
			r, err := decodeRecord(b)
			if err != nil {
				return err
			}
			if err := g.load(r); err != nil {
				return err
			}
			again, err := decodeRecord(r.encode())
			if err != nil || again.Name != r.Name {
				t.Fatalf("%+v does not come back: %v", r, err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

func TestFlood(t *testing.T) {
	p := openPlace(t, t.TempDir(), epoch, nil, Grant{})
	servicetest.Flood(t, p.System, p.Running, Service.Grant(Grant{}, service.Bounds{Rate: 1e6, Burst: 1e6}), "set", func(i int) any {
		return map[string]any{"name": fmt.Sprint(i % 100), "every": time.Hour}
	})
}

// What an actor has scheduled counts as its own where senders are counted: runs for others, for actors of keys, are
// bounded as if it had sent them.
func TestRunsCountAsTheirOwners(t *testing.T) {
	p := openPlace(t, t.TempDir(), epoch, &Settings{}, Grant{To: []string{"/user/users/*"}, Least: time.Second})
	users, err := p.System.Spawn("users", keyed.New(host.Func(func(*host.Context, host.Message) error { return nil })).WithMaxPerSender(3).WithIdle(24*time.Hour).Props())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if got := p.say(p.a, fmt.Sprintf("to /user/users/k%d %d", i, i+1)); !strings.HasPrefix(got, "2027-") {
			t.Fatal(got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p.clock.Advance(10 * time.Second)
	for p.say(p.a, "list") != "" { // until they are over
		if ctx.Err() != nil {
			t.Fatal(p.say(p.a, "list"))
		}
		time.Sleep(time.Millisecond)
		p.clock.Advance(20 * time.Millisecond)
	}
	if err := p.System.Tell(users, keyed.For("other", 1)); err != nil { // of somebody else
		t.Fatal(err)
	}
	began, err := keyed.Keys(ctx, p.System, users, keyed.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if len(began) != 4 || began[3].Key != "other" {
		t.Errorf("%+v were begun, want three of the owner's and one more", began)
	}
}
