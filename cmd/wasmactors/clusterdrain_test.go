package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
)

// drained is a node that has no shards any more, and is to get none.
func drained(change func(*admin.ClusterStatus)) admin.ClusterStatus {
	s := admin.ClusterStatus{Acting: true, Draining: true, Members: make([]admin.ClusterNode, 2), Kinds: []admin.ClusterKind{{Kind: "a"}, {Kind: "b"}}}
	change(&s)
	return s
}

// notYet are answers after which a node may still have shards.
var notYet = []admin.ClusterStatus{
	drained(func(s *admin.ClusterStatus) { s.Unknown, s.Kinds, s.Draining = "it joins again", nil, false }),
	drained(func(s *admin.ClusterStatus) { s.Unknown, s.Kinds, s.Members = "it joins again", nil, s.Members[:1] }),
	drained(func(s *admin.ClusterStatus) { s.Acting = false }),
	drained(func(s *admin.ClusterStatus) { s.Kinds[1].Owned = 1 }),
	drained(func(s *admin.ClusterStatus) { s.Kinds[0].Wrong = "no answer" }),
	drained(func(s *admin.ClusterStatus) { s.Draining = false }),
}

// drain runs the command against a server that gives these answers, the last one again and again. It returns how many were given.
func drain(t *testing.T, wait time.Duration, answers ...admin.ClusterStatus) (given int, text string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s := answers[min(given, len(answers)-1)]
		given++
		_ = json.NewEncoder(w).Encode(s)
	}))
	defer server.Close()
	var out bytes.Buffer
	r := &reached{Client: client.DialTCP(strings.TrimPrefix(server.URL, "http://"), admin.Token{}), env: &environment{stdout: &out}}
	defer r.Close()
	c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("", flag.ContinueOnError), nil)
	c.Context = t.Context()
	err = r.drain(c, "", true, wait)
	return given, out.String(), err
}

// drain waits until it is certain that no shard is left.
func TestDrainWaitsUntilItIsCertain(t *testing.T) {
	done := drained(func(*admin.ClusterStatus) {})
	given, text, err := drain(t, time.Minute, append(notYet, done)...)
	if err != nil || given != len(notYet)+1 || !strings.Contains(text, "has no shards any more") {
		t.Errorf("after %d answers: %v %s", given, err, text)
	}
	for _, s := range notYet {
		if _, text, err := drain(t, 50*time.Millisecond, s); err == nil || !strings.Contains(err.Error(), "the node has not left") {
			t.Errorf("%+v: %v %s", s, err, text)
		}
	}
	alone := drained(func(s *admin.ClusterStatus) { s.Members, s.Kinds[0].Owned = s.Members[:1], 3 })
	if _, text, err := drain(t, time.Minute, alone); err != nil || !strings.Contains(text, "keeps its shards") {
		t.Errorf("%v %s", err, text)
	}
	none := drained(func(s *admin.ClusterStatus) { s.Kinds, s.Draining = nil, false })
	if _, text, err := drain(t, time.Minute, none); err != nil || !strings.Contains(text, "has no shards any more") {
		t.Errorf("%v %s", err, text)
	}
}

// What shards a node has is known while the bundle is read again; and where it is not, the status says so.
func TestStatusWhileTheBundleChanges(t *testing.T) {
	sys, err := host.New(host.NewConfig("status"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	leaving := true
	if _, err := sys.Spawn("regs", host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Reply(shard.State{Shards: 4, Owned: 2, Leaving: leaving})
	})); err != nil {
		t.Fatal(err)
	}
	machine := clustertest.New(1).Machine(func() uint16 { return 0 })
	n, err := cluster.New(cluster.Config{Name: "a", ID: 1, Directory: machine, Links: machine})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{membership: &membership{place: &natscluster.Cluster{}, identity: &natscluster.Identity{}}}
	a := &clusterAdmin{l}
	status := func() admin.ClusterStatus {
		t.Helper()
		s, err := a.Status(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := status(); s.Unknown == "" {
		t.Errorf("it is no member: %+v", s)
	}
	l.membership.node = n
	if s := status(); s.Unknown == "" {
		t.Errorf("it has no system: %+v", s)
	}
	l.seen.Store(&seen{sys: sys, spread: []string{"regs"}})
	l.mu.Lock() // as while the bundle is read again
	defer l.mu.Unlock()
	if s := status(); s.Unknown != "" || len(s.Kinds) != 1 || s.Kinds[0].Owned != 2 || !s.Draining {
		t.Errorf("%+v", s)
	}
	var p *admin.Problem
	if _, err := a.Drain(t.Context(), "nobody", true); !errors.As(err, &p) || p.Status != http.StatusNotFound || exitCode(t.Context(), refusal(err)) != exitAbsent {
		t.Errorf("an unknown node: %v", err)
	}
	leaving = false
	if s := status(); s.Draining {
		t.Errorf("it is not drained: %+v", s)
	}
}

// fakeJoiner joins at once.
type fakeJoiner struct{ joins int }

func (f *fakeJoiner) join(context.Context) error { f.joins++; return nil }

func (f *fakeJoiner) excuses(err error) bool { return errors.Is(err, errUnshared) }

// A node that was lost begins anew until the cluster answers for long enough.
func TestBeginAgain(t *testing.T) {
	other := errors.New("other")
	for _, x := range []struct {
		errs []error
		want error
	}{
		{[]error{nil}, nil},
		{[]error{errUnshared, errUnshared, nil}, nil},
		{[]error{errUnshared, other, nil}, other},
	} {
		f, n := &fakeJoiner{}, 0
		err := beginAgain(t.Context(), f, func() error { n++; return x.errs[n-1] })
		if err != x.want || f.joins != n || err == nil && n != len(x.errs) {
			t.Errorf("%v: %v after %d starts, %d joins", x.errs, err, n, f.joins)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeJoiner{}
	if err := beginAgain(ctx, f, func() error { cancel(); return errUnshared }); err == nil || f.joins != 1 {
		t.Errorf("%v: it goes on after the end of the run, %d joins", err, f.joins)
	}
}

// A node that is busy, or does not answer for a moment, is asked again; the last answer is the reason when the time is over.
func TestDrainAsksAgain(t *testing.T) {
	for _, x := range []struct {
		err  error
		code int
	}{{host.ErrTimeout, http.StatusGatewayTimeout}, {&host.ReplyError{Reason: busyReporter}, http.StatusServiceUnavailable}, {&host.ReplyError{Reason: "no"}, http.StatusConflict}} {
		p := unfulfilled("n2", x.err)
		for _, times := range []int{1, 1000} { // the order and questions fail so often
			given := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if given++; given <= times || given == times+2 {
					w.WriteHeader(p.Status)
					_ = json.NewEncoder(w).Encode(admin.ErrorBody{Error: *p})
					return
				}
				_ = json.NewEncoder(w).Encode(drained(func(s *admin.ClusterStatus) { s.Draining = given > times+2 }))
			}))
			r := &reached{Client: client.DialTCP(strings.TrimPrefix(server.URL, "http://"), admin.Token{}), env: &environment{stdout: &bytes.Buffer{}}}
			c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("", flag.ContinueOnError), nil)
			c.Context = t.Context()
			err := r.drain(c, "n2", true, time.Second)
			r.Close()
			server.Close()
			if p.Status != x.code || (err == nil) != (times == 1 && passing(p)) || err != nil && !strings.Contains(err.Error(), p.Message) {
				t.Errorf("%v, %d times: %d, %v", x.err, times, p.Status, err)
			}
		}
	}
}
