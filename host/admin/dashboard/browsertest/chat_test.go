package browsertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/kv"
)

// chat is the sample of that name, as it is served.
type chat struct {
	t       *testing.T
	bundle  *bundle.Bundle
	address string
	sys     *host.System // nil: it has stopped
}

// newChat builds the chat, and serves it with a state of its own.
func newChat(t *testing.T) *chat {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &chat{t: t, address: l.Addr().String()}
	_ = l.Close()
	m, err := bundle.LoadWith(sample("chat"), func(name string) (string, bool) { return c.address, name == "LISTEN" }, kv.Service)
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	c.bundle, err = bundle.Open(context.Background(), m, bundle.Options{
		CacheDir: t.TempDir(), StateDir: func(*bundle.Manifest) (string, error) { return state, nil }, Allow: func([]bundle.Reach) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.bundle.Close(context.Background()) })
	t.Cleanup(c.stop)
	c.start()
	return c
}

func (c *chat) start() {
	c.t.Helper()
	sys, err := c.bundle.Start(nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.sys = sys
}

func (c *chat) stop() {
	if c.sys == nil {
		return
	}
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.sys.Close(within); err != nil {
		c.t.Error(err)
	}
	c.sys = nil
}

// visitor is a page with somebody in a room.
type visitor struct {
	*page
	name string
}

// visitor opens the page and enters the lobby.
func (c *chat) visitor(name string) *visitor {
	c.t.Helper()
	p := open(c.t, 640, 480)
	p.expect("favicon.ico") // which browsers ask for
	p.run(chromedp.Navigate("http://" + c.address + "/"))
	v := &visitor{p, name}
	v.enter()
	return v
}

// enter enters the lobby, again and again while the name is still taken by a visit before.
func (v *visitor) enter() {
	v.t.Helper()
	v.expect("409")
	v.fill("#name", v.name)
	v.until(v.name+" is in the lobby", `(() => {
		const status = document.getElementById("status").textContent;
		if (status.startsWith("not connected")) document.querySelector("#enter button").click();
		return status === "in lobby";
	})()`)
}

func (v *visitor) say(text string) {
	v.t.Helper()
	v.eval(`(() => { const e = document.getElementById("text"); e.value = `+quote(text)+`; e.focus(); })()`, nil)
	v.run(chromedp.KeyEvent(kb.Enter))
}

// sees waits for lines, in this order and with nothing else between them.
func (v *visitor) sees(lines ...string) {
	v.t.Helper()
	list := `[...document.querySelectorAll("#lines li")].map((e) => e.textContent).join("\n")`
	v.until(fmt.Sprintf("%s sees %q", v.name, lines), list+`.includes(`+quote(strings.Join(lines, "\n"))+`)`)
}

// stays: the connection of the page is the one that it began with.
func (v *visitor) stays() {
	v.t.Helper()
	var all []string
	v.eval(`[...document.querySelectorAll("#lines li")].map((e) => e.textContent)`, &all)
	welcome := 0
	for _, line := range all {
		if strings.HasPrefix(line, "* welcome") {
			welcome++
		}
	}
	if status := v.text(`document.getElementById("status").textContent`); welcome != 1 || status != "in lobby" || slices.Contains(all, "* "+v.name+" has gone") {
		v.t.Errorf("%s has not stayed: %s, %q", v.name, status, all)
	}
}

// People in a room of the chat stay connected while it crashes, find what was said when they
// come again, and cannot do each other harm by what they say.
func TestChat(t *testing.T) {
	if _, err := browser(); err != nil {
		open(t, 640, 480) // skips, or says what is wrong, before the guest is built
	}
	c := newChat(t)
	ann := c.visitor("ann")
	ann.sees("* welcome, ann; 1 are here")
	bob := c.visitor("bob")
	ann.sees("* bob has come")

	hello := "ann: hello, bob"
	ann.say("hello, bob")
	ann.sees(hello)
	bob.sees(hello)

	// Markup is text, on every page that shows it.
	for _, evil := range []string{
		`<img src=x onerror="document.title='hurt'">`,
		`<script>document.title='hurt'</script>`,
		`</li><a href="javascript:document.title='hurt'">here</a>`,
		`&lt;b&gt; <b>bold</b> "quoted" 'too'`,
	} {
		bob.say(evil)
		for _, v := range []*visitor{ann, bob} {
			v.sees("bob: " + evil)
			var elements int
			v.eval(`document.querySelectorAll("#lines li *").length`, &elements)
			if title := v.text(`document.title`); elements != 0 || title != "chat" {
				t.Errorf("%s is markup for %s: %d elements, the title is %s", evil, v.name, elements, title)
			}
		}
	}
	// And if it were not, the policy would keep it from running.
	ann.expect("Content Security Policy")
	var ran bool
	ann.eval(`(async () => {
		const s = document.createElement("script");
		s.textContent = "window.hurt = true";
		const d = document.createElement("div");
		d.innerHTML = '<img src="x" onerror="window.hurt = true"><a href="javascript:window.hurt = true">here</a>';
		document.body.append(s, d);
		d.querySelector("a").click();
		await fetch("http://example.invalid/").catch(() => {});
		await new Promise((done) => setTimeout(done, 50)); // for what would run by itself
		d.remove();
		return Boolean(window.hurt);
	})()`, &ran)
	if ran {
		t.Error("a script that the page has not brought along has run")
	}

	for range 3 {
		bob.say("/crash")
	}
	for _, v := range []*visitor{ann, bob} {
		v.sees("* the room is back", "* the room is back", "* the room is back")
	}
	ann.say("still here")
	for _, v := range []*visitor{ann, bob} {
		v.sees("* the room is back", "ann: still here")
		v.stays()
	}

	ann.run(chromedp.Reload())
	ann.until("nobody is in a room any more", `document.getElementById("status").textContent === "not connected"`)
	ann.enter()
	ann.sees(`bob: &lt;b&gt; <b>bold</b> "quoted" 'too'`, "ann: still here", "* welcome, ann; 2 are here")
	ann.sees(hello, "bob: <img")

	// A server that stops and starts again: pages come back by themselves.
	for _, v := range []*visitor{ann, bob} {
		v.expect("WebSocket connection")
		v.expect("ERR_CONNECTION_REFUSED")
	}
	c.stop()
	for _, v := range []*visitor{ann, bob} {
		v.until(v.name+" hears that it is gone", `document.getElementById("status").textContent !== "in lobby"`)
	}
	c.start()
	for _, v := range []*visitor{ann, bob} {
		v.until(v.name+" is back", `document.getElementById("status").textContent === "in lobby"`)
		v.sees(hello, "bob: <img")
		v.sees("ann: still here", "* welcome, "+v.name)
	}
	bob.say("good night")
	ann.sees("bob: good night")
	if r, err := http.Get("http://" + c.address + "/"); err != nil || r.StatusCode != 200 {
		t.Error(r, err)
	} else {
		_ = r.Body.Close()
	}
}
