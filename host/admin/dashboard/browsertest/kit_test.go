package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// patience is how long a condition may take to come true before a test gives up.
const patience = 30 * time.Second

// browser is the one that all tests share; each has a profile of its own in it.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 800), chromedp.Flag("hide-scrollbars", false))
	if os.Geteuid() == 0 { // Chromium refuses its sandbox to root
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(ctx)
	closeBrowser = func() { stop(); cancel() }
	return ctx, chromedp.Do(ctx)
})

var closeBrowser = func() {}

// find looks for a browser that speaks the protocol.
func find() (string, error) {
	if path := os.Getenv("WASMACTORS_BROWSER"); path != "" {
		return path, nil
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell", "chrome"}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: none of %s is on the PATH; .ci/browser installs Chromium, WASMACTORS_BROWSER names another one", errNoBrowser, strings.Join(names, ", "))
}

var errNoBrowser = errors.New("there is none")

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// page is a tab in a profile of its own, with what has gone wrong in it.
type page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
	expected []string // parts of problems that the test brings about
}

// open opens a tab of a size. The test fails if a script does, if the browser refuses
// something for the policy, or if the console has an error.
func open(t *testing.T, width, height int) *page {
	t.Helper()
	root, err := browser()
	if errors.Is(err, errNoBrowser) {
		t.Skip("this is not tested in a browser: ", err)
	}
	if err != nil {
		t.Fatal("the browser does not start: ", err)
	}
	p := &page{t: t}
	ctx, cancel := chromedp.NewContext(root, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), int64(height))); err != nil { // makes the tab, which lives as long as ctx
		t.Fatal(err)
	}
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException {
				p.note(string(m.Type) + ": " + m.Text + " " + m.URL)
			}
		}
	}()
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.problems {
			if !p.isExpected(text) {
				t.Error("in the browser: ", text)
			}
		}
		if t.Failed() {
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if text, err := chromedp.Run(within, chromedp.Evaluate[string](`location.hash + "\n" + document.body.innerText.slice(0, 3000)`)); err == nil {
				t.Log("the page says:\n", text)
			}
		}
	})
	return p
}

func (p *page) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// expect names a part of problems that are the point of a test.
func (p *page) expect(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, part)
}

func (p *page) isExpected(text string) bool {
	for _, part := range p.expected {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval evaluates an expression into result, which may be nil; promises are awaited.
func (p *page) eval(script string, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (`+script+`)) ?? "null")()`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), result); err != nil {
		p.t.Fatalf("%s gave %s: %v", script, text, err)
	}
}

// text is what an expression gives, as a text.
func (p *page) text(script string) string {
	p.t.Helper()
	var s string
	p.eval(`String(`+script+`)`, &s)
	return s
}

// until waits for an expression to become true.
func (p *page) until(what, script string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var ok bool
		p.eval(`Boolean(`+script+`)`, &ok)
		if ok {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("never came true: %s\n%s", what, script)
		}
		time.Sleep(20 * time.Millisecond) // between two looks, until the deadline
	}
}

// press presses keys one after another, each with what the browser makes of it: a key whose
// default was prevented types nothing.
func (p *page) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		r := []rune(k)
		if len(r) != 1 || !unicode.IsPrint(r[0]) || r[0] > unicode.MaxASCII {
			p.run(chromedp.KeyEvent(k))
			continue
		}
		call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: k, Text: k})
		call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyUp", Key: k})
	}
}

// click presses the first visible element that a selector finds.
func (p *page) click(selector string) {
	p.t.Helper()
	p.until("there is "+selector, `[...document.querySelectorAll(`+quote(selector)+`)].some((e) => e.checkVisibility() && !e.disabled)`)
	p.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fill replaces what is in a field.
func (p *page) fill(selector, text string) {
	p.t.Helper()
	p.until("there is "+selector, `document.querySelector(`+quote(selector)+`)`)
	p.eval(`(() => { const e = document.querySelector(`+quote(selector)+`); e.focus(); e.select(); })()`, nil)
	p.run(chromedp.KeyEvent(text))
}

// says waits for a text on the page.
func (p *page) says(text string) {
	p.t.Helper()
	p.until("the page says "+text, `document.body.innerText.includes(`+quote(text)+`)`)
}

// quote is a text as a script writes it.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func contains(s, part string) bool { return strings.Contains(s, part) }

// until waits for a condition outside of the browser.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never came true")
		}
	}
}
