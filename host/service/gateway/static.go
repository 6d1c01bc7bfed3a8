package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// Static is files of a folder. Links are followed only within the folder, and files whose
// name begins with a dot are hidden.
type Static struct {
	Dir   string        // relative to Config.Base
	Index bool          // folders without an index.html are listed
	Cache time.Duration // how long browsers may keep a file; 0: they revalidate each time
	// Headers are added to all answers, such as a Content-Security-Policy, by name.
	Headers map[string]string
}

// ofTheHost are headers that a manifest cannot set for files: their values follow from the file,
// from Cache, or from the request.
var ofTheHost = map[string]bool{
	"Accept-Ranges": true, "Cache-Control": true, "Content-Encoding": true, "Content-Length": true, "Content-Range": true, "Content-Type": true,
	"Date": true, "Etag": true, "Last-Modified": true, "Location": true, "X-Request-Id": true, "X-Crash-Report": true,
}

// checkHeaders reports the first header, by name, that files cannot have.
func (s *Static) checkHeaders() error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		canonical := http.CanonicalHeaderKey(name)
		twice := seen[canonical]
		seen[canonical] = true
		switch {
		case twice:
			return fmt.Errorf("headers: %s comes twice", canonical)
		case !validName(name):
			return fmt.Errorf("headers: not the name of a header: %q", printable.Line(name, 60))
		case hopByHop[canonical] || ofTheHost[canonical] || strings.HasPrefix(canonical, "Access-Control-"):
			return fmt.Errorf("headers: %s is not for files: it is the host's, or cache's or cors's of the route", canonical)
		case !validValue(s.Headers[name]):
			return fmt.Errorf("headers: %s has a control character", canonical)
		}
	}
	return nil
}

// check checks the pattern: files are below its last wildcard, or its end.
func (s *Static) check(pattern string, wild []wildcard) error {
	method, _, ok := strings.Cut(pattern, " ")
	switch {
	case s.Dir == "":
		return errors.New("dir is needed: the folder of the files")
	case ok && method != http.MethodGet:
		return fmt.Errorf("files are for GET (and HEAD): not for %s", method)
	case !strings.HasSuffix(pattern, "/") && (len(wild) == 0 || !wild[len(wild)-1].rest):
		return errors.New("the pattern of files ends with a slash, such as /static/, or with {path...}: what comes behind is the file")
	}
	for _, w := range wild {
		if !w.rest {
			return fmt.Errorf("the wildcard {%s} does not go with files", w.name)
		}
	}
	return s.checkHeaders()
}

// open makes the handler of the files.
func (s *Static) open(base string, r *route) (http.Handler, error) {
	dir := s.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(r.Pattern, "/")
	if i := strings.IndexByte(path, '{'); i >= 0 {
		path = path[:i]
	}
	files := http.FileServerFS(visible{root.FS(), s.Index})
	return http.StripPrefix("/"+strings.TrimSuffix(path, "/"), files), nil
}

// visible hides what begins with a dot, and folders that must not be listed.
type visible struct {
	fs.FS
	list bool
}

func (v visible) Open(name string) (fs.File, error) {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != "." {
			return nil, fs.ErrNotExist
		}
	}
	f, err := v.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case info.Mode().IsRegular():
		return f, nil
	case !info.IsDir():
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	case !v.list:
		if index, err := v.FS.Open(strings.TrimPrefix(name+"/index.html", "./")); err != nil {
			return nil, errors.Join(fs.ErrNotExist, f.Close())
		} else if err := index.Close(); err != nil {
			return nil, err
		}
		return f, nil
	}
	return listing{f.(fs.ReadDirFile)}, nil
}

// listing is a folder without what is hidden.
type listing struct{ fs.ReadDirFile }

func (l listing) ReadDir(n int) ([]fs.DirEntry, error) {
	all, err := l.ReadDirFile.ReadDir(n)
	shown := all[:0]
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") {
			shown = append(shown, e)
		}
	}
	return shown, err
}

// static answers with a file.
func (x *exchange) static() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header()["Allow"] = []string{"GET, HEAD"}
		x.refuse(problem{status: http.StatusMethodNotAllowed, text: "files are for GET and HEAD"})
		return
	}
	h := x.w.Header()
	h["X-Content-Type-Options"] = noSniff
	if age := x.route.Static.Cache; age > 0 {
		h.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(age.Seconds())))
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	for name, value := range x.route.Static.Headers {
		h.Set(name, value)
	}
	c := http.NewResponseController(x.w.ResponseWriter)
	_ = c.SetWriteDeadline(x.g.clock.Now().Add(fileTime))
	x.route.files.ServeHTTP(&x.w, x.r)
}

// fileTime bounds how long a file may be sent to a slow reader.
const fileTime = 10 * time.Minute
