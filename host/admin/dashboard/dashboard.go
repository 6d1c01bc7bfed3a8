// Package dashboard is the page on which people see and steer a running system in a
// browser. It consists only of files, without secrets: everything that it shows it requests from the server,
// under /v1, with the session of the user.
package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var embedded embed.FS

// policy lets the page load its own files and talk to its own server, and nothing else:
// no inline script or style, no eval, no frame around it. Where a browser knows trusted
// types, markup cannot be made of texts at all.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is a file of the dashboard, ready to be served.
type file struct {
	body      []byte
	mediaType string
	tag       string // an entity tag: the hash of the body
}

// types are the media types of the files, by extension. The machine's own table is not
// used: a wrong entry there would make browsers refuse modules.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Handler serves the dashboard under /dashboard/ and redirects / there. It
// answers GET and HEAD only, needs no token, and is safe for concurrent use. The page
// expects the API at ../v1/ from its own address.
func Handler() http.Handler {
	files := load()
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, "dashboard/") })
	mux.HandleFunc("/dashboard", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, "dashboard/") })
	mux.HandleFunc("/dashboard/", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/dashboard/")
		if name == "" {
			name = "index.html"
		}
		f, ok := files[name]
		if !ok {
			secure(w.Header())
			http.Error(w, "the dashboard has no such file", http.StatusNotFound)
			return
		}
		f.serve(w, r)
	})
	return mux
}

// redirect redirects to a place relative to the requested address, so that the
// dashboard works behind any proxy.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	secure(w.Header())
	if !readOnly(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	secure(h)
	if !readOnly(w, r) {
		return
	}
	h.Set("Content-Type", f.mediaType)
	if strings.HasPrefix(f.mediaType, "text/html") {
		h.Set("Cache-Control", "no-store") // it stands for a session
	} else {
		h.Set("Cache-Control", "no-cache") // asked for again, so that no page mixes two versions
		h.Set("ETag", f.tag)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}

// readOnly refuses methods that make no sense for a file.
func readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "the dashboard's files are only read", http.StatusMethodNotAllowed)
	return false
}

// secure sets the headers of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// load reads the embedded files. That they can be read, and that their types are known,
// was decided when the program was built; a test looks.
func load() map[string]*file {
	files := map[string]*file{}
	err := fs.WalkDir(embedded, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[strings.TrimPrefix(name, "static/")] = &file{body: body, mediaType: types[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return files
}
