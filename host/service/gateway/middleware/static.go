package middleware

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Static is files of a folder. Links are followed only within the folder, and files whose
// name begins with a dot are hidden.
type Static struct {
	Dir   string        // relative to Options.Base
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

// Check reports an error in the configuration.
func (s *Static) Check() error {
	if s.Dir == "" {
		return errors.New("dir is needed: the folder of the files")
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		canonical := http.CanonicalHeaderKey(name)
		twice := seen[canonical]
		seen[canonical] = true
		switch {
		case twice:
			return fmt.Errorf("headers: %s comes twice", canonical)
		case !ValidName(name):
			return fmt.Errorf("headers: not the name of a header: %q", printable.Line(name, 60))
		case HopByHop[canonical] || ofTheHost[canonical] || strings.HasPrefix(canonical, "Access-Control-"):
			return fmt.Errorf("headers: %s is not for files: it is the host's, or cache's or cors's of the route", canonical)
		case !ValidValue(s.Headers[name]):
			return fmt.Errorf("headers: %s has a control character", canonical)
		}
	}
	return nil
}

// Open makes the handler of the files, which are those below a prefix of paths.
func (s *Static) Open(o Options, prefix string) (http.Handler, error) {
	root, err := regular.OpenRoot(o.at(s.Dir))
	if err != nil {
		return nil, err
	}
	files := http.StripPrefix(strings.TrimSuffix(prefix, "/"), http.FileServerFS(visible{regular.FS(root), s.Index}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h["Allow"] = []string{"GET, HEAD"}
			o.refuse(w, r, Refusal{Status: http.StatusMethodNotAllowed, Text: "files are for GET and HEAD"})
			return
		}
		h["X-Content-Type-Options"] = []string{"nosniff"}
		h.Set("Cache-Control", "no-cache")
		if s.Cache > 0 {
			h.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(s.Cache.Seconds())))
		}
		for name, value := range s.Headers {
			h.Set(name, value)
		}
		_ = http.NewResponseController(w).SetWriteDeadline(o.Clock.Now().Add(fileTime))
		files.ServeHTTP(w, r)
	}), nil
}

// fileTime bounds how long a file may be sent to a slow reader.
const fileTime = 10 * time.Minute

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
		return nil, notThere(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case info.Mode().IsRegular():
		return f, nil
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

// notThere is fs.ErrNotExist for what can never be read as a file: links out of the folder,
// endless ones, pipes and devices, names that no file has.
func notThere(err error) error {
	for _, never := range []error{regular.ErrOutside, regular.ErrKind, fs.ErrInvalid, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOTDIR} {
		if errors.Is(err, never) {
			return fs.ErrNotExist
		}
	}
	return err
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
