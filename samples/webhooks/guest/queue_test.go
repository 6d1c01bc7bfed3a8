//go:build !wasip1

package main

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

func TestPauses(t *testing.T) {
	p := policy{first: time.Second, longest: 10 * time.Second}
	for _, c := range []struct {
		failed int64
		chance float64
		want   time.Duration
	}{
		{1, 0, 500 * time.Millisecond}, {1, 0.5, 750 * time.Millisecond}, {2, 0, time.Second}, {3, 0, 2 * time.Second}, {4, 0.5, 6 * time.Second},
		{5, 0, 5 * time.Second}, {6, 0, 5 * time.Second}, {1 << 62, 0.5, 7500 * time.Millisecond},
	} {
		if got := p.pause(c.failed, c.chance); got != c.want {
			t.Errorf("after %d, %v: %v, want %v", c.failed, c.chance, got, c.want)
		}
	}
	r := rand.New(rand.NewSource(1))
	for range 1000 {
		p := policy{first: time.Duration(1 + r.Int63n(int64(time.Hour))), longest: time.Duration(1 + r.Int63n(int64(24*time.Hour)))}
		n := 1 + r.Int63n(100)
		full := time.Duration(min(float64(p.first)*math.Pow(2, float64(n-1)), float64(p.longest)))
		if got := p.pause(n, r.Float64()); got < full/2 || got > full {
			t.Fatalf("%+v after %d: %v", p, n, got)
		}
	}
}

func TestAgenda(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		var a agenda
		var want []*job
		for i := range r.Intn(60) {
			j := &job{id: fmt.Sprint(i), record: record{Due: int64(r.Intn(10))}}
			a.add(j)
			want = append(want, j)
			if r.Intn(4) == 0 {
				slices.SortStableFunc(want, func(x, y *job) int { return int(x.Due - y.Due) })
				if got := a.first(); got != want[0] {
					t.Fatalf("%+v, want %+v", got, want[0])
				}
				a.take()
				want = want[1:]
			}
		}
		slices.SortStableFunc(want, func(x, y *job) int { return int(x.Due - y.Due) })
		for _, j := range want {
			if got := a.first(); got != j {
				t.Fatalf("%+v, want %+v", got, j)
			}
			a.take()
		}
		if a.first() != nil {
			t.Fatal("more than there were")
		}
	}
}

func TestJudge(t *testing.T) {
	fail := func(code service.Code) error { return &service.Error{Code: code, Text: strings.Repeat("ä", 200)} }
	for _, c := range []struct {
		status  int
		after   string
		err     error
		outcome string
		ms      int64
	}{
		{200, "", nil, delivered, 0}, {204, "9", nil, delivered, 0}, {299, "", nil, delivered, 0},
		{301, "", nil, refused, 0}, {400, "5", nil, refused, 0}, {404, "", nil, refused, 0}, {410, "", nil, refused, 0},
		{408, "", nil, again, 0}, {425, "", nil, again, 0}, {429, "7", nil, again, 7000}, {500, "", nil, again, 0}, {503, "2", nil, again, 2000},
		{503, "-2", nil, again, 0}, {503, "Wed, 21 Oct 2026 07:28:00 GMT", nil, again, 0}, {503, "99999999999", nil, again, 0},
		{0, "", fail(service.Timeout), again, 0}, {0, "", fail(service.Failed), again, 0}, {0, "", fail(service.Unavailable), again, 0}, {0, "", fail(service.Busy), again, 0},
		{0, "", fail(service.Denied), refused, 0}, {0, "", fail(service.BadRequest), refused, 0}, {0, "", fail(service.NotFound), refused, 0}, {0, "", fail(service.TooLarge), refused, 0},
	} {
		r := judge(c.status, c.after, c.err)
		if r.Outcome != c.outcome || r.AfterMS != c.ms || (r.Problem == "") != (c.outcome == delivered) || len(r.Problem) > mostProblem || strings.ToValidUTF8(r.Problem, "") != r.Problem {
			t.Errorf("%d %q %v: %+v", c.status, c.after, c.err, r)
		}
	}
}

// The answers to senders, and that nothing of what is refused gets to the queue.
func TestIntake(t *testing.T) {
	x := newSite(t)
	body := "body of a"
	good := signedHeaders("a", begin, body)
	with := func(name, value string) []string {
		h := slices.Clone(good)
		for i := 0; i < len(h); i += 2 {
			if h[i] == name {
				h[i+1] = value
			}
		}
		return h
	}
	for _, c := range []struct {
		path, body string
		headers    []string
		want       int
	}{
		{"/hooks/shop", body, with("webhook-signature", "v1,A"+good[7][4:]), 401},
		{"/hooks/shop", body + " ", good, 401},
		{"/hooks/shop", body, with("webhook-id", "b"), 401},
		{"/hooks/shop", body, signedHeaders("a", begin.Add(-6*time.Minute), body), 401},
		{"/hooks/shop", body, signedHeaders("a", begin.Add(6*time.Minute), body), 401},
		{"/hooks/shop", body, with("webhook-id", ""), 400},
		{"/hooks/shop", body, with("webhook-timestamp", "x"), 400},
		{"/hooks/shop", body, with("webhook-signature", "x"), 400},
		{"/hooks/shop", body, with("content-type", strings.Repeat("x", mostKind+1)), 400},
		{"/hooks/shop", body, nil, 400},
		{"/hooks/bank", body, good, 404},
		{"/hooks/SHOP", body, good, 404},
		{"/hooks/-x", body, good, 404},
		{"/hooks/" + strings.Repeat("x", 33), body, good, 404},
		{"/hooks/shop.x", body, good, 404},
	} {
		r := x.ask(x.intake, "POST", c.path, c.body, c.headers...)
		if x.w.Advance(time.Second); r.status != c.want {
			t.Errorf("%s %q %q: %+v, want %d", c.path, c.body, c.headers, r, c.want)
		}
	}
	if n := len(x.store.names["jobs"]); n != 1 { // the counter of starts
		t.Errorf("%d entries: %v", n, x.store.names["jobs"])
	}
	x.secrets["signing.shop"] = "broken"
	x.w.Advance(keepKey)
	if r := x.hook("a", body); r.status != 503 || r.header["Retry-After"] == "" {
		t.Errorf("a secret that is none: %+v", r)
	}
	x.secrets["signing.shop"] = secretOfShop
	x.accepted("a")
	if x.w.Advance(time.Second); x.arrived("a") != 1 || x.state("a") != "delivered" {
		t.Errorf("%d, %s", x.arrived("a"), x.state("a"))
	}
}

// A secret that was replaced counts soon, and the old one no longer.
func TestSecretIsReplaced(t *testing.T) {
	x := newSite(t)
	x.accepted("a")
	x.secrets["signing.shop"] = "whsec_" + strings.Repeat("B", 32)
	x.w.Advance(keepKey)
	if r := x.hook("b", ""); r.status != 401 {
		t.Errorf("%+v", r)
	}
}

// A delivery is done once however often it comes: while it is written, while it is open, when it is dead, and when it was delivered.
func TestIdempotency(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Attempts = 2 })
	x.answer = func(r *sent) { r.status(500) }
	first, second := x.hook("a", "body of a"), x.hook("a", "body of a")
	if first.status != 0 || second.status != 0 {
		t.Errorf("acknowledged before it is written: %+v, %+v", first, second)
	}
	x.w.Advance(10 * time.Millisecond)
	if first.status != 202 || second.status != 200 || !strings.Contains(second.body, jobID("shop", "a")) {
		t.Fatalf("%+v, %+v", first, second)
	}
	again := func(when string) {
		t.Helper()
		if r := x.hook("a", "body of a"); r.status != 200 {
			x.w.Advance(10 * time.Millisecond)
			if r.status != 200 {
				t.Errorf("%s: %+v", when, r)
			}
		}
	}
	again("open")
	x.w.Advance(2 * time.Second)
	if s := x.state("a"); s != "dead" {
		t.Fatal(s)
	}
	again("dead")
	x.w.Advance(2 * time.Hour)
	again("dead for longer than deliveries are remembered")
	x.answer = func(r *sent) { r.status(200) }
	if r := x.operator("POST", "/dead/"+jobID("shop", "a")+"/retry"); r.status != 202 {
		t.Fatalf("%+v", r)
	}
	again("taken back")
	x.w.Advance(time.Second)
	again("delivered")
	x.crash()
	x.w.Advance(time.Second)
	again("after a crash")
	if n := x.arrived("a"); n != 3 || x.state("a") != "delivered" {
		t.Errorf("%d requests, %s", n, x.state("a"))
	}
	x.w.Advance(time.Hour) // what is remembered ends
	if r := x.hook("a", "body of a"); r.status != 0 {
		t.Errorf("%+v", r)
	}
	if x.w.Advance(time.Second); x.arrived("a") != 4 {
		t.Error(x.arrived("a"))
	}
}

// Attempts come after growing pauses, then the job is a dead letter.
func TestBackoff(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Attempts, a.First, a.Longest = 5, time.Second, 3*time.Second })
	x.answer = func(r *sent) { r.status(503) }
	x.accepted("a")
	x.w.Advance(time.Minute)
	if len(x.sent) != 5 || x.state("a") != "dead" {
		t.Fatalf("%d attempts, %s", len(x.sent), x.state("a"))
	}
	for i, full := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		if gap := x.sent[i+1].at - x.sent[i].at; gap < full/2 || gap > full+20*time.Millisecond {
			t.Errorf("pause %d is %v, of %v", i+1, gap, full)
		}
	}
	if a, b := x.sent[3].at-x.sent[2].at, x.sent[4].at-x.sent[3].at; a == b {
		t.Errorf("no jitter: %v, %v", a, b)
	}
	for _, r := range x.sent {
		if r.key != jobID("shop", "a") || r.Timeout != 5*time.Second {
			t.Errorf("%+v", r)
		}
	}
	if left := append(x.store.keysOf("jobs", "job/"), x.store.keysOf("jobs", "body/")...); len(left) > 0 || len(x.store.keysOf("dead", "")) != 2 {
		t.Errorf("left are %v; dead is %v", left, x.store.keysOf("dead", ""))
	}
	list := x.operator("GET", "/dead").body
	if !strings.Contains(list, `"total":1`) || !strings.Contains(list, `"problem":"status 503"`) || !strings.Contains(list, `"attempts":5`) {
		t.Error(list)
	}
}

// The destination may ask for a longer pause, within bounds; what it refuses is dead at once.
func TestDestinationDecides(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Attempts, a.First, a.Longest = 3, 10*time.Millisecond, 2*time.Second })
	after := "1"
	x.answer = func(r *sent) { r.status(429, "retry-after", after) }
	x.accepted("a")
	x.w.Advance(500 * time.Millisecond)
	after = "100"
	if x.w.Advance(700 * time.Millisecond); len(x.sent) != 2 {
		t.Fatal(len(x.sent))
	}
	if x.w.Advance(2 * time.Second); len(x.sent) != 3 {
		t.Fatal(len(x.sent))
	}
	x.answer = func(r *sent) { r.status(410) }
	x.accepted("b")
	if x.w.Advance(time.Second); x.arrived("b") != 1 || x.state("b") != "dead" {
		t.Error(x.arrived("b"), x.state("b"))
	}
}

// Senders beyond the bound are told to come again, and can when there is room.
func TestBound(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Open = 3 })
	x.answer = func(*sent) {}
	for i := range 3 {
		x.accepted(fmt.Sprint(i))
	}
	r := x.hook("3", "body of 3")
	if x.w.Advance(10 * time.Millisecond); r.status != 503 || r.header["Retry-After"] == "" {
		t.Errorf("%+v", r)
	}
	for _, s := range x.sent {
		s.status(200)
	}
	x.w.Advance(10 * time.Millisecond)
	x.accepted("3")
}

// A worker that crashes has its job given to another, and no more than attempts often.
func TestWorkerCrash(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Attempts = 3 })
	crashes := 2
	x.answer = func(r *sent) {
		if crashes--; crashes < 0 {
			r.status(200)
			return
		}
		x.w.After(time.Millisecond, func() { x.w.Find(r.Path).Restart() })
	}
	x.accepted("a")
	x.w.Advance(10 * time.Second)
	if x.arrived("a") != 3 || x.state("a") != "delivered" {
		t.Fatal(x.arrived("a"), x.state("a"))
	}
	crashes = 100
	x.accepted("b")
	x.w.Advance(10 * time.Second)
	if x.arrived("b") != 3 || x.state("b") != "dead" || !strings.Contains(x.operator("GET", "/dead").body, "the worker has crashed") {
		t.Error(x.arrived("b"), x.state("b"), x.operator("GET", "/dead").body)
	}
	crashes = 0
	for i := range 5 { // both are still at work
		x.accepted(fmt.Sprint(i))
	}
	if x.w.Advance(time.Second); len(x.sent) != 3+3+5 {
		t.Error(len(x.sent))
	}
}

// A worker that ends for good, and one that says nothing, lose their jobs, too.
func TestWorkerIsLost(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Lease = 3 * time.Second })
	x.answer = func(*sent) {}
	x.accepted("a")
	x.w.Stop(x.w.Find(x.sent[0].Path))
	x.answer = func(r *sent) { r.status(200) }
	if x.w.Advance(2 * time.Second); x.arrived("a") != 2 || x.state("a") != "delivered" {
		t.Fatal(x.arrived("a"), x.state("a"))
	}
	x.answer = func(*sent) {}
	x.accepted("b")
	last := x.sent[len(x.sent)-1]
	x.w.Advance(2 * time.Second)
	if s := x.state("b"); s != "delivering" {
		t.Error(s)
	}
	x.w.Advance(2500 * time.Millisecond) // its lease is over; that of the request is not
	if s := x.state("b"); s != "waiting" {
		t.Error(s)
	}
	x.answer = func(r *sent) { r.status(200) }
	last.status(500)
	if x.w.Advance(2 * time.Second); x.arrived("b") != 2 || x.state("b") != "delivered" {
		t.Error(x.arrived("b"), x.state("b"))
	}
}

// A message that does not say which of two it is does no harm: tasks and reports may cross.
func TestStrayMessages(t *testing.T) {
	x := newSite(t)
	x.answer = func(*sent) {}
	x.accepted("a")
	w := x.w.Find(x.sent[0].Path)
	for _, r := range []report{{Last: 0}, {Last: 7}, {Epoch: 0, Last: 0, Job: jobID("shop", "a"), Outcome: delivered}} {
		x.queue.Deliver(actortest.Message{Sender: w.Ref(), Body: &r})
	}
	for _, h := range []hook{{Source: "Shop", Delivery: "a"}, {Source: "shop", Delivery: "a.b"}, {Source: "shop", Delivery: "a", Kind: strings.Repeat("x", mostKind+1)}} {
		if r := x.queue.Send(&h).Reply(); r.Kind != actortest.ReplyError {
			t.Errorf("%+v: %+v", h, r)
		}
	}
	x.queue.Deliver(actortest.Message{Sender: actortest.Tester, Body: &report{Last: 3, Job: jobID("shop", "a"), Outcome: delivered}})
	x.w.Run()
	if s := x.state("a"); s != "delivering" {
		t.Error(s)
	}
	n := len(x.sent)
	m := task{Number: 9, Job: jobID("shop", "a"), Source: "shop", Delivery: "a"}
	w.Deliver(actortest.Message{Sender: x.queue.Ref(), Body: &m})
	if x.w.Advance(10 * time.Millisecond); len(x.sent) != n {
		t.Error("a busy worker has taken another task")
	}
	other := x.w.Find("/user/queue/delivery/worker-2")
	if w == other {
		other = x.w.Find("/user/queue/delivery/worker-1")
	}
	other.Deliver(actortest.Message{Sender: actortest.Tester, Body: &m})
	m.Epoch = 1
	other.Deliver(actortest.Message{Sender: x.queue.Ref(), Body: &m})
	if x.w.Advance(10 * time.Millisecond); len(x.sent) != n {
		t.Error("a worker has taken a stranger's task, or one of another incarnation")
	}
	for i := range 3 {
		x.accepted(fmt.Sprint(i))
	}
	for _, s := range x.w.Out() {
		if s.To == actortest.Tester && s.Decode(&m) == nil {
			t.Error("a stranger was given a task")
		}
	}
}

// A worker of the queue before, whose end is not known yet, is given nothing.
func TestWorkerOfAnotherQueue(t *testing.T) {
	x := newSite(t)
	x.answer = func(*sent) {}
	x.accepted("a")
	x.queue.Restart()
	x.sent[0].status(200)
	x.w.Advance(time.Second)
	x.accepted("b")
	if x.arrived("a") != 1 || x.arrived("b") != 0 || x.state("a") != "waiting" {
		t.Error(x.arrived("a"), x.arrived("b"), x.state("a"))
	}
}

// While nobody knows whether a hook is kept its sender is told to come again, and it is done once.
func TestDoubt(t *testing.T) {
	for _, happens := range []bool{true, false} {
		x := newSite(t)
		x.store.fault = func(_, op string) (service.Code, bool) { return service.Timeout, happens && op == "batch" }
		first := x.hook("a", "body of a")
		x.w.Advance(5 * time.Millisecond)
		second := x.hook("a", "body of a")
		x.w.Advance(5 * time.Millisecond)
		if first.status != 503 || second.status != 503 || len(x.sent) != 0 {
			t.Errorf("%v: %+v, %+v", happens, first, second)
		}
		x.w.Advance(3 * time.Second) // the store has still trouble
		x.store.fault = nil
		x.w.Advance(2 * time.Second)
		want := map[bool]int{true: 200, false: 202}[happens]
		third := x.hook("a", "body of a")
		if x.w.Advance(time.Second); third.status != want || x.arrived("a") != 1 || x.state("a") != "delivered" {
			t.Errorf("%v: %+v, %d, %s", happens, third, x.arrived("a"), x.state("a"))
		}
	}
}

// A store that refuses writes has senders come again, and no delivery forgotten.
func TestStoreRefuses(t *testing.T) {
	x := newSite(t)
	x.store.fault = func(string, string) (service.Code, bool) { return service.Quota, false }
	r := x.hook("a", "body of a")
	if x.w.Advance(10 * time.Millisecond); r.status != 503 {
		t.Errorf("%+v", r)
	}
	x.store.fault = nil
	x.answer = func(*sent) {}
	x.accepted("b")
	x.store.fault = func(string, string) (service.Code, bool) { return service.Unavailable, false }
	x.sent[0].status(200)
	r = x.hook("c", "body of c")
	x.w.Advance(3 * time.Second)
	x.store.fault = nil
	x.w.Advance(3 * time.Second)
	if x.arrived("b") != 1 || x.state("b") != "delivered" || r.status != 503 || x.arrived("c") != 0 || len(x.store.keysOf("jobs", "job/")) != 0 {
		t.Error(x.arrived("b"), x.state("b"), r, x.store.keysOf("jobs", "job/"))
	}
}

// Dead letters have a bound; beyond it a job is tried on, and dead letters can be thrown away.
func TestDeadLetters(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Dead, a.Attempts, a.Longest = 1, 1, 2*time.Second })
	x.answer = func(*sent) {}
	x.accepted("a")
	x.accepted("b")
	x.answer = func(r *sent) { r.status(500) }
	for _, r := range x.sent[:2] { // at one time
		r.status(500)
	}
	x.w.Advance(10 * time.Second)
	if x.state("a") != "dead" || x.state("b") != "waiting" || x.arrived("b") < 4 {
		t.Fatal(x.state("a"), x.state("b"), x.arrived("b"))
	}
	a := "/dead/" + jobID("shop", "a")
	for _, c := range []struct {
		method, path string
		want         int
	}{{"POST", "/dead/x/retry", 404}, {"DELETE", "/dead/x", 404}, {"PUT", a, 405}, {"GET", "/jobs/x", 404}, {"GET", "/jobs/" + strings.Repeat("0", 32), 404}, {"DELETE", a, 200}, {"DELETE", a, 404}} {
		if r := x.operator(c.method, c.path); r.status != c.want {
			t.Errorf("%s %s: %+v", c.method, c.path, r)
		}
	}
	if x.w.Advance(3 * time.Second); x.state("b") != "dead" {
		t.Error(x.state("b"))
	}
	first, second := x.ask(x.queue, "POST", "/dead/"+jobID("shop", "b")+"/retry", ""), x.ask(x.queue, "DELETE", "/dead/"+jobID("shop", "b"), "")
	if x.w.Advance(10 * time.Millisecond); first.status != 202 || second.status != 409 {
		t.Errorf("%+v, %+v", first, second)
	}
}

func TestPagesOfDead(t *testing.T) {
	x := newSiteWith(t, func(a *queueArgs) { a.Dead, a.Attempts, a.Open = 1000, 1, 500 })
	x.answer = func(r *sent) { r.status(400) }
	var want []string
	for i := range 230 {
		x.accepted(fmt.Sprint(i))
		want = append(want, jobID("shop", fmt.Sprint(i)))
	}
	x.w.Advance(time.Second)
	slices.Sort(want)
	var got []string
	after := ""
	for range 3 {
		body := x.operator("GET", "/dead?after="+after).body
		for _, part := range strings.Split(body, `{"job":"`)[1:] {
			got = append(got, part[:32])
		}
		_, next, _ := strings.Cut(body, `"next":"`)
		after, _, _ = strings.Cut(next, `"`)
	}
	if !slices.Equal(got, want) || after != "" {
		t.Errorf("%d, want %d; %q", len(got), len(want), after)
	}
}

// Wherever a queue crashes, with its last write done or not, nothing that was acknowledged is lost, nothing is open and
// dead at once, and nothing of a job is left when it is done.
func TestCrashAtEveryWrite(t *testing.T) {
	cases := 0
	for _, happens := range []bool{true, false} {
		for at := 1; ; at++ {
			if !crashAt(t, at, happens) {
				break
			}
			cases++
		}
	}
	if cases < 16 {
		t.Errorf("only %d crashes", cases)
	}
}

// crashAt crashes at a write, and reports whether there was one of that number.
func crashAt(t *testing.T, at int, happens bool) bool {
	x := newSiteWith(t, func(a *queueArgs) { a.Attempts, a.First, a.Longest = 2, 10*time.Millisecond, 20*time.Millisecond })
	crashed := false
	crash := func(n int) bool {
		if n != at+1 || crashed { // the first write is the one of the start
			return false
		}
		crashed = true
		x.crash()
		return true
	}
	x.store.after = crash
	if !happens {
		x.store.fault = func(string, string) (service.Code, bool) { return "", x.store.writes != at }
	}
	refuse := true
	x.answer = func(r *sent) {
		if r.key == jobID("shop", "b") && refuse {
			r.status(400)
		} else {
			r.status(200)
		}
	}
	// A sender sends until it is acknowledged.
	send := func(id string) {
		for range 20 {
			r := x.hook(id, "body of "+id)
			if x.w.Advance(20 * time.Millisecond); r.status == 202 || r.status == 200 {
				return
			}
			x.w.Advance(2 * time.Second)
		}
		t.Fatalf("at %d, %v: %s is never acknowledged", at, happens, id)
	}
	send("a")
	send("b")
	x.w.Advance(3 * time.Second)
	if s := x.state("b"); s != "dead" {
		t.Fatalf("at %d, %v: %s", at, happens, s)
	}
	refuse = false
	for range 20 { // so does an operator
		r := x.operator("POST", "/dead/"+jobID("shop", "b")+"/retry")
		if r.status == 202 || r.status == 404 {
			break
		}
		x.w.Advance(2 * time.Second)
	}
	x.w.Advance(5 * time.Second)
	x.crash() // what is left is read once more
	x.w.Advance(5 * time.Second)
	for _, id := range []string{"a", "b"} {
		if s := x.state(id); s != "delivered" || x.arrived(id) == 0 {
			t.Errorf("at %d, %v: %s is %s after %d requests", at, happens, id, s, x.arrived(id))
		}
	}
	left := append(append(x.store.keysOf("jobs", "job/"), x.store.keysOf("jobs", "body/")...), x.store.keysOf("dead", "")...)
	if len(left) > 0 || len(x.w.Failures()) > 0 {
		t.Errorf("at %d, %v: left are %v, %v", at, happens, left, x.w.Failures())
	}
	return crashed
}

// A move that an incarnation has begun is completed by the next one.
func TestRepair(t *testing.T) {
	for _, c := range []struct {
		job, dead int64 // rounds
		state     string
	}{{0, 0, "dead"}, {3, 3, "dead"}, {1, 0, "delivered"}, {7, 3, "delivered"}} {
		x := newSite(t)
		for name, round := range map[string]int64{"jobs": c.job, "dead": c.dead} {
			x.store.names[name][jobKey(jobID("shop", "a"))] = &entry{value: kv.Encode(&record{Source: "shop", Delivery: "a", Round: round})}
			x.store.names[name][bodyKey(jobID("shop", "a"))] = &entry{value: []byte("body of a")}
		}
		x.crash()
		x.w.Advance(time.Second)
		requests, dead := 0, 2
		if c.state == "delivered" {
			requests, dead = 1, 0
		}
		if x.state("a") != c.state || x.arrived("a") != requests || len(x.store.keysOf("jobs", "job/")) != 0 || len(x.store.keysOf("dead", "")) != dead {
			t.Errorf("%+v: %s, %d requests, %v", c, x.state("a"), x.arrived("a"), x.store.names)
		}
	}
}

// A move whose write nobody knows about has the queue start over: it is done or not done, and never both.
func TestMovesInDoubt(t *testing.T) {
	id := jobID("shop", "a")
	for _, happens := range []bool{true, false} {
		for _, c := range []struct {
			namespace string
			retry     bool
		}{{"dead", false}, {"jobs", false}, {"jobs", true}, {"dead", true}} {
			x := newSiteWith(t, func(a *queueArgs) { a.Attempts = 1 })
			x.answer = func(r *sent) { r.status(400) }
			doubt := func() {
				x.store.fault = func(namespace, op string) (service.Code, bool) {
					if namespace != c.namespace || op != "batch" {
						return "", true
					}
					x.store.fault = nil
					return service.Timeout, happens
				}
			}
			if r := x.hook("a", "body of a"); c.retry {
				x.w.Advance(time.Second)
				x.answer = func(r *sent) { r.status(200) }
				doubt()
				x.operator("POST", "/dead/"+id+"/retry")
			} else {
				x.w.Advance(time.Millisecond)
				doubt()
				if x.w.Advance(time.Second); r.status != 202 {
					t.Fatalf("%+v", r)
				}
			}
			if len(x.w.Failures()) != 1 {
				t.Errorf("%+v, %v: %v", c, happens, x.w.Failures())
			}
			x.crash()
			x.w.Advance(3 * time.Second)
			open, dead := len(x.store.keysOf("jobs", "job/")), len(x.store.keysOf("dead", "job/"))
			want := "dead"
			if c.retry && (happens || c.namespace == "dead") {
				want = "delivered"
			}
			if x.state("a") != want || open != 0 || dead != map[string]int{"dead": 1, "delivered": 0}[want] {
				t.Errorf("%+v, %v: %s, %d open, %d dead", c, happens, x.state("a"), open, dead)
			}
		}
	}
}

// What senders are told is on the disk, and so is what a new incarnation has found. What may be done twice is not waited for.
func TestDurability(t *testing.T) {
	x := newSite(t)
	x.accepted("a")
	x.w.Advance(time.Second)
	var got []string
	for _, c := range x.kv.Calls() {
		if c.Op == "add" || c.Op == "batch" {
			durability, _ := textOf(c.Field("durability"))
			got = append(got, c.Op+" "+durability)
		}
	}
	if want := []string{"add ", "batch ", "batch os"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What stands in the store and is no job is left alone.
func TestForeignEntries(t *testing.T) {
	x := newSite(t)
	good := &record{Source: "shop", Delivery: "a", Received: begin.UnixMilli(), Due: 1 << 62}
	w := abi.NewWriter(nil)
	good.MarshalCBOR(w)
	x.store.names["jobs"][jobKey(jobID("shop", "a"))] = &entry{value: w.Bytes()}
	x.store.names["jobs"][bodyKey(jobID("shop", "a"))] = &entry{value: []byte("body of a")}
	x.store.names["jobs"]["job/x"] = &entry{value: w.Bytes()}
	x.store.names["jobs"]["job/"+strings.Repeat("0", 32)] = &entry{value: []byte{0xff}}
	x.store.names["dead"]["job/y"] = &entry{}
	x.crash()
	x.w.Advance(10 * time.Second) // whoever has set the clock: a job waits for longest, at most
	if x.arrived("a") != 1 || len(x.store.keysOf("jobs", "job/")) != 2 || len(x.store.keysOf("dead", "")) != 1 {
		t.Error(x.arrived("a"), x.store.keysOf("jobs", ""), x.store.keysOf("dead", ""))
	}
}

func TestArgs(t *testing.T) {
	for key, change := range map[string]func(*queueArgs){
		"open": func(a *queueArgs) { a.Open = 0 }, "dead": func(a *queueArgs) { a.Dead = 100_001 }, "attempts": func(a *queueArgs) { a.Attempts = -1 },
		"first": func(a *queueArgs) { a.First = 0 }, "longest": func(a *queueArgs) { a.Longest = 25 * time.Hour }, "lease": func(a *queueArgs) { a.Lease = -time.Second },
		"remember": func(a *queueArgs) { a.Remember = 9000 * time.Hour },
	} {
		if f := actortest.Spawn(t, "queue", actortest.Args(queueOf(change))).Started().Failure; f == nil || !strings.Contains(f.Reason, "args."+key+" ") {
			t.Errorf("%s: %v", key, f)
		}
	}
	for typ, args := range map[string]actor.Encoder{"delivery": &deliveryArgs{Workers: 65, Timeout: time.Second}, "intake": &intakeArgs{}, "queue": actor.Null} {
		if f := actortest.Spawn(t, typ, actortest.Args(args)).Started().Failure; f == nil {
			t.Errorf("%s: %+v", typ, args)
		}
	}
}

// Whatever stands in the store, what is taken for a job can be worked with.
func FuzzRecord(f *testing.F) {
	for _, r := range []record{{Source: "shop", Delivery: "a"}, {Source: "shop", Delivery: "msg_1", Kind: "text/plain", Received: 1, Attempts: 2, Round: 3, Due: 1 << 62, Problem: strings.Repeat("ä", 150)}} {
		w := abi.NewWriter(nil)
		r.MarshalCBOR(w)
		f.Add(jobID(r.Source, r.Delivery), w.Bytes())
	}
	f.Add("x", []byte{0xa1})
	f.Fuzz(func(t *testing.T, id string, value []byte) {
		rec, ok := parseRecord(id, value)
		if !ok {
			return
		}
		if !validID(id) || !validSource(rec.Source) || !validDelivery(rec.Delivery) || len(rec.Problem) > mostProblem || rec.Due < 0 || rec.Attempts < 0 {
			t.Fatalf("%s: %+v", id, rec)
		}
		appendRecord(nil, id, waiting.String(), &rec)
		w := abi.NewWriter(nil)
		rec.MarshalCBOR(w)
		if same, ok := parseRecord(id, w.Bytes()); !ok || same != rec {
			t.Fatalf("%+v, %+v", same, rec)
		}
	})
}

// No message makes an intake, the queue or a worker fail, or the next hook be lost.
func FuzzMessages(f *testing.F) {
	for _, m := range []interface{ MarshalCBOR(*abi.Writer) }{
		&hook{Source: "shop", Delivery: "a", Body: []byte("x")}, &report{Job: "x", Outcome: again, AfterMS: -1 << 63}, &task{Number: 1, Job: "x", Source: "shop", Delivery: "a"}, &verdict{Outcome: full},
	} {
		w := abi.NewWriter(nil)
		m.MarshalCBOR(w)
		f.Add(w.Bytes(), uint64(0))
		f.Add(w.Bytes(), uint64(1))
	}
	f.Fuzz(func(t *testing.T, message []byte, correlation uint64) {
		if abi.Valid(message) != nil {
			return
		}
		x := newSite(t)
		x.gateway.Tell(x.intake.Ref(), rawOf(message))
		for _, a := range []*actortest.Actor{x.queue, x.w.Find("/user/queue/delivery/worker-1")} {
			a.Deliver(actortest.Message{Sender: actortest.Tester, Correlation: correlation, Body: rawOf(message)})
			x.w.Run()
		}
		x.w.Advance(time.Second)
		x.accepted("then")
		if x.w.Advance(time.Second); x.arrived("then") == 0 || len(x.w.Failures()) > 0 {
			t.Fatalf("the next hook has arrived %d times, %v", x.arrived("then"), x.w.Failures())
		}
	})
}

type rawOf []byte

func (r rawOf) MarshalCBOR(w *abi.Writer) { w.Raw(r) }
