//go:build !wasip1

package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

func TestRobots(t *testing.T) {
	const text = "\ufeffUser-Agent: other\nDisallow: /\n\nuser-agent: ME # it is me\nuser-agent: also\nDisallow: /private/\nAllow: /private/open.html$\nDisallow: /*.pdf$\nDisallow: /q?*secret\n" +
		"Crawl-delay: 1.5\nSitemap: http://a/x\n\nUser-agent: *\nDisallow: /all\nDisallow:\n"
	for _, c := range []struct {
		agent, path string
		want        bool
	}{
		{"me", "/", true}, {"me", "/private/x", false}, {"me", "/private/open.html", true}, {"me", "/private/open.html?x", false},
		{"me", "/a/b.pdf", false}, {"me", "/a/b.pdf?x", true}, {"me", "/q?a&secret=1", false}, {"me", "/q?a", true}, {"me", "/all", true},
		{"Also", "/private/x", false}, {"other", "/x", false}, {"other", "/robots.txt", true}, {"nobody", "/all/x", false}, {"nobody", "/x", true},
		{"*", "/all", false}, {"", "/all", false},
	} {
		if got := parseRobots(text, c.agent).allows(c.path); got != c.want {
			t.Errorf("%s, %s: %v", c.agent, c.path, got)
		}
	}
	if d := parseRobots(text, "me").delay; d != 1500*time.Millisecond {
		t.Error(d)
	}
	if d := parseRobots("User-agent: *\nCrawl-delay: 1e9", "me").delay; d != longestGap {
		t.Error(d)
	}
	for _, c := range []struct {
		rules string
		want  bool
	}{{"Disallow: /a\nAllow: /a", true}, {"Allow: /a\nDisallow: /a", true}, {"Disallow: /a\nAllow: /", false}, {"Disallow: *", false}, {"", true}} {
		if got := parseRobots("User-agent: *\n"+c.rules, "me").allows("/a"); got != c.want {
			t.Errorf("%q: %v", c.rules, got)
		}
	}
	if !allowAll.allows("/x") || forbidAll.allows("/x") {
		t.Error("all or nothing")
	}
}

func TestLinks(t *testing.T) {
	base, _ := url.Parse("http://Example.com/a/b?c")
	title, found := links(base, `<!-- <a href="no"> --><TITLE> Some
		page</title><script>"<a href='no'>"</script><A class=x HREF="../d#part">d</a><a href='/d'>again</a><a data-href="no" href=e.html?x=1&amp;y=2>e</a>
		<a href="mailto:x@y"><a href="//other.org"><a href="http://u:p@h/"><a name=x><a href=""><a href="ht tp:"><a href="javascript:x"><a href="`+strings.Repeat("x", 2000)+`"><a href="last"`)
	want := "http://example.com/d http://example.com/a/e.html?x=1&y=2 http://other.org/"
	if got := strings.Join(found, " "); title != "Some page" || got != want {
		t.Errorf("%q, %s, want %s", title, got, want)
	}
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, `<a href="%d%s">`, i, strings.Repeat("x", 500))
	}
	_, found = links(base, b.String())
	if n := len(strings.Join(found, "")); n > linkBytes || len(found) == 0 {
		t.Errorf("%d links, %d bytes", len(found), n)
	}
}

func FuzzPage(f *testing.F) {
	f.Add(`<a href="x"><title>t`, "User-agent: *\nDisallow: /*x$")
	f.Add("<a href hr\x80\x84*\x89fh*ef hr\x80\x84r\x89f hrefQ\xae|'\xcfehhhh[>", "")
	base, _ := url.Parse("http://a/")
	f.Fuzz(func(t *testing.T, html, text string) {
		_, found := links(base, html)
		for _, link := range found {
			if u, err := url.Parse(link); err != nil || u.Host == "" || u.Fragment != "" {
				t.Fatalf("%q: %v", link, err)
			}
		}
		parseRobots(text, "me").allows(html)
	})
}

// web is a fake of the service http: pages by URL, with the requests in their order.
type web struct {
	*testing.T
	w     *actortest.World
	pages map[string]string // "503", "429 2" (Retry-After), "> url", "busy", "crash", or the body
	log   []string
	busy  map[string]int // requests under way, by host
	took  time.Duration
}

func newWeb(t *testing.T, pages map[string]string) *web {
	x := &web{T: t, w: actortest.NewWorld(t), pages: pages, busy: map[string]int{}, took: 100 * time.Millisecond}
	x.w.Serve("http", x.serve)
	x.w.Serve("pubsub", func(c *actortest.Call) {
		if c.Op == "publish" {
			topic, _ := textOf(c.Field("topic"))
			x.log = append(x.log, "published "+topic)
		}
	})
	return x
}

func textOf(b []byte) (string, bool) {
	r := abi.NewReader(b)
	s := r.Text()
	return s, r.Done() == nil
}

func (x *web) serve(c *actortest.Call) {
	target, _ := textOf(c.Field("url"))
	u, err := url.Parse(target)
	if err != nil || c.Op != "do" {
		x.Fatalf("%s %s: %v", c.Op, target, err)
	}
	x.log = append(x.log, fmt.Sprintf("%v %s%s", x.w.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds(), u.Host, u.RequestURI()))
	if x.busy[u.Host]++; x.busy[u.Host] > 1 {
		x.Errorf("%d requests of %s at a time", x.busy[u.Host], u.Host)
	}
	x.w.After(x.took, func() {
		x.busy[u.Host]--
		body, ok := x.pages[target]
		status, header := 200, [2]string{"Content-Type", "text/html; charset=utf-8"}
		switch {
		case !ok:
			status = 404
		case body == "busy":
			c.Fail(service.Unavailable, "the server is down")
			return
		case body == "large":
			c.Fail(service.TooLarge, "too large")
			return
		case body == "crash":
			x.w.Find(c.Path).Restart()
			return
		case body == "503":
			status = 503
		case strings.HasPrefix(body, "429 "):
			status, header = 429, [2]string{"Retry-After", body[4:]}
		case strings.HasPrefix(body, "> "):
			status, header = 301, [2]string{"Location", body[2:]}
		}
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(4)
			w.Text("status")
			w.Int(int64(status))
			w.Text("headers")
			w.Array(1)
			w.Array(2)
			w.Text(strings.ToLower(header[0]))
			w.Text(header[1])
			w.Text("later")
			w.Null()
			w.Text("body")
			w.ByteString([]byte(body))
		}))
	})
}

// crawl runs a whole crawl and returns its summary.
func (x *web) crawl(order crawl) (sum summary, took time.Duration) {
	x.Helper()
	f := x.w.Spawn("frontier")
	asker := x.w.Serve("asker", nil)
	start := x.w.Now()
	asker.Ask(f.Ref(), &order, func(answer actortest.Sent) {
		if err := answer.Decode(&sum); err != nil {
			x.Errorf("%v: %s", err, answer.Text())
		}
		took = x.w.Now().Sub(start)
	})
	for range 600 {
		if took > 0 {
			return sum, took
		}
		x.w.Advance(100 * time.Millisecond)
	}
	x.Fatalf("the crawl does not end: %v", x.log)
	return
}

func (x *web) requests(host string) string {
	var all []string
	for _, line := range x.log {
		at, what, _ := strings.Cut(line, " ")
		if rest, ok := strings.CutPrefix(what, host); ok {
			all = append(all, at+rest)
		}
	}
	return strings.Join(all, " ")
}

func TestCrawl(t *testing.T) {
	x := newWeb(t, map[string]string{
		"http://a/robots.txt": "User-agent: *\nDisallow: /no\nCrawl-delay: 0.5",
		"http://a/":           `<title>A</title><a href=1><a href="/no/x"><a href="http://b/">`,
		"http://a/1":          `<a href="/"><a href="/2#x"><a href="http://c/x">`,
		"http://a/2":          "> /1",
		"http://b/":           `<a href="http://b/">`,
		"http://c/robots.txt": "User-agent: *\nDisallow: /",
	})
	sum, took := x.crawl(crawl{Seeds: []string{"http://a/", "http://a"}, PauseMS: 200})
	if want := (summary{Hosts: 3, Read: 3, Moved: 1, Forbidden: 2}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	for host, want := range map[string]string{
		"a": "0/robots.txt 600/ 1200/1 1800/2", // 100 ms each, and the pause that robots.txt wants
		"b": "700/robots.txt 1000/",
		"c": "1300/robots.txt",
	} {
		if got := x.requests(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	if took > 3*time.Second {
		t.Error(took)
	}
	if log := strings.Join(x.log, " "); strings.Count(log, "published pages.a") != 2 || strings.Count(log, "published pages.b") != 1 {
		t.Error(log)
	}
}

// A server with trouble is asked again, less and less often, and then given up.
func TestTrouble(t *testing.T) {
	x := newWeb(t, map[string]string{
		"http://a/": "503", "http://b/": "429 3", "http://c/": "busy", "http://d/": "large", "http://e/robots.txt": "503", "http://f/robots.txt": "large",
	})
	var seeds []string
	for _, h := range "abcdef" {
		seeds = append(seeds, "http://"+string(h)+"/")
	}
	sum, _ := x.crawl(crawl{Seeds: seeds, PauseMS: 100})
	if want := (summary{Hosts: 6, Failed: 4, Forbidden: 2}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	for host, want := range map[string]string{
		"a": "0/robots.txt 200/ 550/ 1150/ 2250/", // pauses of 250, 500, 1000 ms
		"b": "0/robots.txt 200/ 3300/ 6400/ 9500/",
		"c": "0/robots.txt 200/ 550/ 1150/ 2250/",
		"d": "0/robots.txt 200/",
		"e": "0/robots.txt 350/robots.txt 950/robots.txt 2050/robots.txt",
		"f": "0/robots.txt",
	} {
		if got := x.requests(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// An actor of a host that crashes loses no page but the one that it crashes with again and again.
func TestCrash(t *testing.T) {
	x := newWeb(t, map[string]string{"http://a/": `<a href=1><a href=bad><a href=2><a href="http://b/">`, "http://a/1": "1", "http://a/2": "2", "http://a/bad": "crash"})
	sum, _ := x.crawl(crawl{Seeds: []string{"http://a/"}, PauseMS: 100})
	if want := (summary{Hosts: 2, Read: 3, Failed: 2}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	log := x.requests("a")
	for _, target := range []string{"/1", "/2", "/bad"} {
		if n := strings.Count(log+" ", target+" "); n != 1 && target != "/bad" || target == "/bad" && n != mostCrashes {
			t.Errorf("%s was requested %d times: %s", target, n, log)
		}
	}
}

func TestMostPages(t *testing.T) {
	x := newWeb(t, map[string]string{"http://a/": `<a href=1><a href=2><a href=3>`})
	if sum, _ := x.crawl(crawl{Seeds: []string{"http://a/"}, Most: 2, PauseMS: 1}); sum != (summary{Hosts: 1, Read: 1, Failed: 1, Skipped: 2}) {
		t.Errorf("%+v", sum)
	}
}
