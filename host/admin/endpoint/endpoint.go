// Package endpoint says where the bundles that a user runs can be reached: at Unix sockets in a folder that only the user
// can enter. Listener and caller also check each other's user, where the operating system reports it.
package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// MaxPath is the length of the longest path of a socket, in bytes, that works everywhere:
// Linux has room for 107 bytes and a zero, the others for 103.
const MaxPath = 103

// ErrTooLong is the error for a socket's path that the system does not accept.
var ErrTooLong = errors.New("the path of the socket is too long")

// Place is where a bundle that runs, or ran, can be reached.
type Place struct {
	PID    int
	Bundle string // as far as the file's name has it
	Path   string // of the socket
}

const suffix = ".sock"

// mostName bounds the bundle's name within a file's name, which only people read.
const mostName = 24

// Path is where a process listens for a bundle, in the user's runtime folder, which is made
// if it is missing.
func Path(pid int, bundle string) (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	if len(bundle) > mostName {
		bundle = bundle[:mostName]
	}
	path := filepath.Join(dir, strconv.Itoa(pid)+"-"+bundle+suffix)
	return path, Fits(path)
}

// Fits says what to do about a path that is too long.
func Fits(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("%w: %s has %d bytes, and a socket's path at most %d; set XDG_RUNTIME_DIR or TMPDIR to a shorter folder", ErrTooLong, path, len(path), MaxPath)
	}
	return nil
}

// folders are those that a user's sockets may be in, the one to use first: the session's
// runtime folder is not everywhere.
func folders() []string {
	var list []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "wasmactors"))
	}
	return append(list, fallback())
}

// folder makes the first of the folders that can be made.
func folder() (string, error) {
	var errs []error
	for i, dir := range folders() {
		if parent, err := os.Stat(filepath.Dir(dir)); i == 0 && len(folders()) > 1 && (err != nil || !parent.IsDir() || !ours(parent)) {
			continue // a session's that has ended, or another user's
		}
		real, err := own(dir)
		if err == nil {
			return real, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no folder for the socket: %w", errors.Join(errs...))
}

// own makes a folder in one that must be there, and checks it.
func own(dir string) (string, error) {
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return "", err
	}
	real, err := trust.MakeFolder(dir)
	if err == nil {
		err = secluded(real)
	}
	return real, err
}

// List is every socket in the user's runtime folders, by process. Their processes may
// have ended. A folder that does not belong to the user alone is skipped.
func List() ([]Place, error) {
	var list []Place
	var errs []error
	for _, dir := range folders() {
		real, err := trust.Folder(dir)
		if err == nil {
			err = secluded(real)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries, err := os.ReadDir(real)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range entries {
			if p, ok := parse(e.Name()); ok && !slices.ContainsFunc(list, func(q Place) bool { return q.Path == filepath.Join(real, e.Name()) }) {
				p.Path = filepath.Join(real, e.Name())
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b Place) int { return a.PID - b.PID })
	return list, errors.Join(errs...)
}

// parse reads the name of a socket.
func parse(name string) (Place, bool) {
	name, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return Place{}, false
	}
	pid, bundle, ok := strings.Cut(name, "-")
	n, err := strconv.Atoi(pid)
	return Place{PID: n, Bundle: bundle}, ok && err == nil && n > 0
}

// Running is a bundle that runs and can be reached, as the command line lists it.
type Running struct {
	PID       int           `json:"pid"`
	Bundle    string        `json:"bundle"`
	Node      string        `json:"node,omitempty"` // its name in a cluster
	Dir       string        `json:"dir,omitempty"`  // of its manifest
	Socket    string        `json:"socket"`
	Address   string        `json:"address,omitempty"` // on TCP
	Ready     bool          `json:"ready"`
	Started   string        `json:"started"` // RFC 3339
	Actors    int           `json:"actors"`
	Crashes   uint64        `json:"crashes"`
	Suspended int           `json:"suspended"`
	Codes     []RunningCode `json:"codes,omitempty"`
	Error     string        `json:"error,omitempty"` // why it did not say more
}

// Name is how a bundle that runs is told from others: BUNDLE@NODE if it has joined a cluster.
func Name(bundle, node string) string {
	if node == "" {
		return bundle
	}
	return bundle + "@" + node
}

// RunningCode is a version of a module that actors of a bundle run, or start with.
type RunningCode struct {
	Module  string `json:"module"`
	Hash    string `json:"hash"` // SHA-256, in hexadecimal
	Actors  int    `json:"actors"`
	Present bool   `json:"present"` // actors that start now run it
}

// Matches reports whether which is the name of a bundle or the number of its process. Of a
// long name the file's name has only the beginning.
func (p Place) Matches(which string) bool {
	return which == strconv.Itoa(p.PID) || which == p.Bundle || len(p.Bundle) == mostName && strings.HasPrefix(which, p.Bundle)
}

// young is a socket whose process may be about to listen.
const young = 2 * time.Second

// Sweep reports whether a socket has no listener any more, and removes it, unless its process may
// be about to.
func Sweep(p Place) bool {
	if !Stale(p.Path) {
		return false
	}
	if info, err := os.Lstat(p.Path); err == nil && (!alive(p.PID) || time.Since(info.ModTime()) > young) {
		_ = os.Remove(p.Path)
		_ = os.Remove(TokenPath(p.Path))
	}
	return true
}

// TokenPath is where the token of the TCP listener that belongs to a socket is stored.
func TokenPath(socket string) string { return strings.TrimSuffix(socket, suffix) + ".token" }

// RunningList is what `wasmactors ps --json` prints.
type RunningList struct {
	Version int       `json:"version"` // 1
	Bundles []Running `json:"bundles"`
}
