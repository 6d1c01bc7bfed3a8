package dashboard

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

// Every answer, also one that is none, keeps scripts, frames and guesses out.
func TestEveryAnswerIsStrict(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 303}, {"GET", "/dashboard", 303}, {"GET", "/dashboard/", 200}, {"GET", "/dashboard/index.html", 200}, {"HEAD", "/dashboard/app.js", 200},
		{"GET", "/dashboard/lib/format.js", 200}, {"GET", "/dashboard/nothing", 404}, {"GET", "/dashboard/static/app.js", 404}, {"GET", "/dashboard/..%2fdashboard.go", 404},
		{"GET", "/dashboard/lib/", 404}, {"POST", "/dashboard/", 405}, {"POST", "/", 405}, {"DELETE", "/dashboard/app.js", 405},
	} {
		w := get(t, c.method, c.path, nil)
		h := w.Header()
		if w.Code != c.status {
			t.Errorf("%s %s: %d, not %d", c.method, c.path, w.Code, c.status)
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s %s: the policy lacks %s", c.method, c.path, part)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "data:") {
			t.Errorf("%s %s: the policy is %s", c.method, c.path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, h.Get(name))
			}
		}
		if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s %s: %v", c.method, c.path, h)
		}
	}
}

func TestFilesAreCurrent(t *testing.T) {
	if c := get(t, "GET", "/dashboard/", nil).Header().Get("Cache-Control"); c != "no-store" {
		t.Errorf("the page: %s", c)
	}
	w := get(t, "GET", "/dashboard/app.js", nil)
	tag := w.Header().Get("ETag")
	if w.Header().Get("Cache-Control") != "no-cache" || len(tag) < 10 || w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("a module: %v", w.Header())
	}
	if w := get(t, "GET", "/dashboard/app.js", http.Header{"If-None-Match": {tag}}); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("asked for again: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := get(t, "GET", "/", nil); w.Header().Get("Location") != "dashboard/" {
		t.Errorf("/ leads to %s", w.Header().Get("Location"))
	}
}

// Texts become text nodes only, everything is the dashboard's own, and every file has a type.
func TestFilesKeepTheRules(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|new Function|setTimeout\(['"]|javascript:`)
	elsewhere := regexp.MustCompile(`https?://`)
	inline := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<style|\sstyle=|\son[a-z]+=`)
	imports := regexp.MustCompile(`(?m)^(?:import|export)[^'"\n]*\sfrom '([^']+)'`)
	files, total := 0, 0
	for name, f := range load() {
		files++
		total += len(f.body)
		text := string(f.body)
		if f.mediaType == "" {
			t.Errorf("%s has no media type", name)
		}
		if found := markup.FindString(text); found != "" {
			t.Errorf("%s makes markup, or code, of a text: %s", name, found)
		}
		for _, at := range elsewhere.FindAllStringIndex(text, -1) {
			if rest := text[at[0]:]; !strings.HasPrefix(rest, "http://www.w3.org/2000/svg") { // a name, not a place
				t.Errorf("%s names another place: %.60s", name, rest)
			}
		}
		if path.Ext(name) == ".html" && inline.MatchString(text) {
			t.Errorf("%s has something inline: %s", name, inline.FindString(text))
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			if _, ok := load()[path.Join(path.Dir(name), m[1])]; !ok || !strings.HasPrefix(m[1], ".") {
				t.Errorf("%s imports %s, which is not there", name, m[1])
			}
		}
	}
	if files < 20 {
		t.Errorf("only %d files", files)
	}
	if total > 256<<10 {
		t.Errorf("%d bytes are more than a page of figures is worth", total)
	}
}
