package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve opens a system where Find looks.
func serve(t *testing.T, name string, pid int) *host.System { return serveNode(t, name, pid, "") }

// serveNode opens one that has joined a cluster.
func serveNode(t *testing.T, name string, pid int, node string) *host.System {
	t.Helper()
	sys, err := host.New(host.NewConfig(name))
	if err != nil {
		t.Fatal(err)
	}
	path, err := endpoint.Path(pid, name)
	if err != nil {
		t.Fatal(err)
	}
	server, err := admin.Serve(context.Background(), sys, admin.NewConfig().WithSocket(path).WithNode(node))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		_ = sys.Close(context.Background())
	})
	return sys
}

// runtimeFolder is an empty folder where Find looks. Its path is short, as those of sockets must be.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "find")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestFind(t *testing.T) {
	dir := runtimeFolder(t)
	find := func(which, want, wrong string) {
		t.Helper()
		p, err := Find(which)
		if wrong == "" && (err != nil || p.Bundle != want) || wrong != "" && (!errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: %+v %v, want %q %q", which, p, err, want, wrong)
		}
	}
	find("", "", "no bundle runs here")
	find("shop", "", `no bundle "shop" runs here, nor any other`)
	long := strings.Repeat("long-", 10)
	serve(t, "shop", 11)
	find("", "shop", "")
	find("shop", "shop", "")
	find("11", "shop", "")
	find("12", "", `no bundle "12" runs here, but shop (11)`)
	serve(t, "shop", 12)
	serve(t, long, 13)
	find("", "", "several bundles run here: shop (11), shop (12), long-")
	find("shop", "", "shop (11), shop (12)")
	find("12", "shop", "")
	find(long, long[:24], "")
	find(dir+"/nothing.sock", "", "no such file")
	list, err := Running(context.Background())
	if err != nil || len(list) != 3 || list[2].Bundle != long || list[0].PID != 11 || list[0].Error != "" {
		t.Errorf("%+v %v", list, err)
	}
	p, err := Find("11")
	if err != nil {
		t.Fatal(err)
	}
	c := Dial(p.Path)
	defer c.Close()
	_, err = Get[observe.Detail](context.Background(), c, "/v1/actor", url.Values{"path": {"/user/x"}})
	var problem *admin.Problem
	if !errors.As(err, &problem) || problem.Code != "no_such_actor" || problem.Status != 404 {
		t.Error(err)
	}
}

// Bundles of one name that have joined a cluster are told apart by their nodes.
func TestFindNode(t *testing.T) {
	runtimeFolder(t)
	serveNode(t, "shop", 11, "a")
	serveNode(t, "shop", 12, "b")
	serveNode(t, "forum", 13, "b")
	serve(t, "shop", 14)
	for _, c := range []struct {
		which string
		pid   int
		wrong string
	}{
		{"shop@a", 11, ""},
		{"shop@b", 12, ""},
		{"forum@b", 13, ""},
		{"@a", 11, ""},
		{"12@b", 12, ""},
		{"11@b", 0, `no bundle "11@b" runs here, but shop@a (11), shop@b (12), forum@b (13), shop (14)`},
		{"@b", 0, "several bundles run here: shop@b (12), forum@b (13); say which one with --bundle NAME@NODE or PID"},
		{"shop@", 0, `no bundle "shop@" runs here`},
		{"@", 0, `no bundle "@" runs here`},
		{"shop", 0, "several bundles run here: shop@a (11), shop@b (12), shop (14); say which one with --bundle NAME@NODE or PID"},
	} {
		p, err := Find(c.which)
		if c.wrong == "" && (err != nil || p.PID != c.pid) || c.wrong != "" && (!errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%q: %+v %v, want %d %q", c.which, p, err, c.pid, c.wrong)
		}
	}
	if list, err := Running(context.Background()); err != nil || len(list) != 4 || list[1].Node != "b" || list[3].Node != "" {
		t.Errorf("%+v %v", list, err)
	}
}

// One that does not answer is named, and is waited for a short time only.
func TestFindOneThatHangs(t *testing.T) {
	runtimeFolder(t)
	serve(t, "shop", 11)
	path, err := endpoint.Path(12, "bank")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Find("none")
	if want := "but shop (11), bank (12, which does not answer)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if p, err := Find("bank"); err != nil || p.PID != 12 {
		t.Error(p, err)
	}
}

// A server that is none, or that breaks off, is an error that says so.
func TestStrangeServers(t *testing.T) {
	answer := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == "teapot" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer srv.Close()
	c := DialTCP(strings.TrimPrefix(srv.URL, "http://"), admin.NewToken())
	defer c.Close()
	ctx := context.Background()
	answer = "teapot"
	if _, err := c.Raw(ctx, http.MethodGet, "/v1/system", nil, nil); err == nil || !strings.Contains(err.Error(), "418") {
		t.Error(err)
	}
	lines, lost := 0, uint64(0)
	follow := url.Values{"follow": {"true"}}
	run := func(text string, q url.Values) (string, error) {
		answer, lines, lost = text, 0, 0
		return c.Stream(ctx, "/v1/events", q, func([]byte) error { lines++; return nil }, func(n uint64) { lost += n })
	}
	if _, err := run(`{"event":"log"}`+"\n", follow); !errors.Is(err, ErrCut) || lines != 1 {
		t.Error(lines, err)
	}
	if why, err := run(`{"event":"log"}`+"\n"+`{"event":"dropped","dropped":7}`+"\n"+`{"event":"end","reason":"it stopped"}`+"\n", follow); err != nil || why != "it stopped" || lines != 1 || lost != 7 {
		t.Error(why, lines, lost, err)
	}
	if _, err := run(`{"event":"log"}`+"\n", nil); err != nil || lines != 1 {
		t.Error(lines, err)
	}
	if _, err := run("nonsense\n", follow); err == nil {
		t.Error("nonsense is taken")
	}
	if _, err := run(strings.Repeat("x", maxLine+1), follow); err == nil {
		t.Error("an endless line is taken")
	}
}
