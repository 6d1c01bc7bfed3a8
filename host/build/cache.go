package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// store keeps one build: the module, and a record of the files that it was made
// from. Both are written beside their place and renamed.
type store struct{ dir, key string }

// record says what a build was made from.
type record struct {
	Sum   string  // of the module
	Files []input // sources, go.mod, go.sum
	Dirs  []listing
}

type input struct {
	Path string
	Size int64
	Time int64 // of the last change, ns
	Sum  string
}

// listing tells files that have come or gone.
type listing struct {
	Path  string
	Embed bool // a package that embeds files: whatever is below counts
	Names []string
}

func list(path string, embed bool) (listing, error) {
	names, err := sources(path)
	if embed && err == nil {
		names, err = below(path)
	}
	return listing{path, embed, names}, err
}

func (s store) recordPath() string { return filepath.Join(s.dir, s.key+".json") }
func (s store) wasmPath() string   { return filepath.Join(s.dir, s.key+".wasm") }

// load returns the module if nothing has changed.
func (s store) load() ([]byte, bool) {
	if s.dir == "" {
		return nil, false
	}
	text, err := os.ReadFile(s.recordPath())
	if err != nil {
		return nil, false
	}
	var r record
	if json.Unmarshal(text, &r) != nil || len(r.Files) == 0 {
		return nil, false
	}
	for _, f := range r.Files {
		if !f.unchanged() {
			return nil, false
		}
	}
	for _, d := range r.Dirs {
		if now, err := list(d.Path, d.Embed); err != nil || !slices.Equal(now.Names, d.Names) {
			return nil, false
		}
	}
	wasm, err := os.ReadFile(s.wasmPath())
	if err != nil || sum(wasm) != r.Sum {
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(s.wasmPath(), now, now) // for eviction by age
	return wasm, true
}

func (f input) unchanged() bool {
	info, err := os.Stat(f.Path)
	if err != nil || info.Size() != f.Size {
		return false
	}
	if info.ModTime().UnixNano() == f.Time {
		return true
	}
	data, err := os.ReadFile(f.Path)
	return err == nil && sum(data) == f.Sum
}

// sources are the names of the files of a folder that a build may look at.
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") || n == "go.mod" || n == "go.work" {
			names = append(names, n)
		}
	}
	return names, nil
}

// below are the names of all files in a folder, at any depth, but for tests.
func below(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !strings.HasSuffix(path, "_test.go"):
			names = append(names, path)
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		}
		return nil
	})
	return names, err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// save keeps a build. The files are asked from standard Go, whoever compiled: a
// machine with TinyGo alone has no cache.
func (s store) save(ctx context.Context, c compiler, dir string, wasm []byte) error {
	if s.dir == "" {
		return nil
	}
	files, dirs, err := closure(ctx, c, dir)
	if err != nil {
		return err
	}
	r := record{Sum: sum(wasm)}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, input{path, info.Size(), info.ModTime().UnixNano(), sum(data)})
	}
	for _, d := range dirs {
		if d, err = list(d.Path, d.Embed); err != nil {
			return err
		}
		r.Dirs = append(r.Dirs, d)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := replace(s.wasmPath(), wasm); err != nil {
		return err
	}
	return replace(s.recordPath(), text)
}

// closure lists the files and folders of all packages that are not Go's own.
func closure(ctx context.Context, c compiler, dir string) (files []string, dirs []listing, err error) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, gotool, "list", "-deps", "-json=Dir,GoFiles,IgnoredGoFiles,EmbedFiles,EmbedPatterns,Standard,Module", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	add := func(path string) {
		if path != "" && !seen[path] {
			seen[path] = true
			files = append(files, path)
		}
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                                                string
			GoFiles, IgnoredGoFiles, EmbedFiles, EmbedPatterns []string
			Standard                                           bool
			Module                                             *struct{ GoMod string }
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if p.Standard {
			continue
		}
		dirs = append(dirs, listing{Path: p.Dir, Embed: len(p.EmbedPatterns) > 0})
		for _, f := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.EmbedFiles) {
			add(filepath.Join(p.Dir, f))
		}
		if p.Module != nil && p.Module.GoMod != "" {
			add(p.Module.GoMod)
			if gosum := filepath.Join(filepath.Dir(p.Module.GoMod), "go.sum"); exists(gosum) {
				add(gosum)
			}
		}
	}
	return files, dirs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// replace writes a file whole or not at all.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
