package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
)

// Permission allows reaches of one kind: all of them, or those of one value. A path stands for all
// that is below it, links followed, and one that may be written to may be read.
type Permission struct {
	Kind  service.Reach
	Value string // "": any
}

// ParsePermission reads KIND or KIND=VALUE, such as read=/etc/ssl, env=HOME, listen=localhost:8080 or
// connect=*.example.com. Paths are relative to the current folder, and their links are resolved.
func ParsePermission(text string) (Permission, error) {
	kind, value, given := strings.Cut(text, "=")
	p := Permission{service.Reach(kind), value}
	switch {
	case !slices.Contains(service.Reaches(), p.Kind):
		return p, fmt.Errorf("%.80q is not one of %v, or one of them with =VALUE", kind, service.Reaches())
	case given && value == "":
		return p, fmt.Errorf("%q lacks a value; %s alone allows all of the kind", text, kind)
	case !given:
		return p, nil
	}
	prefix, path := "", value
	switch p.Kind {
	case service.ReachRead, service.ReachWrite:
	case service.ReachListen:
		rest, ok := strings.CutPrefix(value, "unix:")
		if !ok {
			return p, nil
		}
		prefix, path = "unix:", rest
	default:
		return p, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return p, err
	}
	p.Value = prefix + realPath(path)
	return p, nil
}

// String is the permission as [ParsePermission] reads it.
func (p Permission) String() string {
	if p.Value == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + "=" + p.Value
}

// Covers reports whether it allows a reach.
func (p Permission) Covers(r Reach) bool {
	paths := r.Kind == service.ReachRead || r.Kind == service.ReachWrite
	if p.Kind != r.Kind && (r.Kind != service.ReachRead || p.Kind != service.ReachWrite) {
		return false
	}
	return p.Value == "" || p.Value == r.Real || paths && within(p.Value, r.Real)
}

// Permission is the one that allows a reach and no more than it needs.
func (r Reach) Permission() Permission { return Permission{r.Kind, r.Real} }

// Uncovered are the reaches that no permission covers.
func Uncovered(found []Reach, by []Permission) (rest []Reach) {
	for _, r := range found {
		if !slices.ContainsFunc(by, func(p Permission) bool { return p.Covers(r) }) {
			rest = append(rest, r)
		}
	}
	return rest
}

// Permit is what Options.Allow takes to allow what permissions cover, and nothing else: an
// OutsideError has the rest.
func Permit(by ...Permission) func([]Reach) error {
	return func(found []Reach) error {
		if rest := Uncovered(found, by); len(rest) > 0 {
			return &OutsideError{rest}
		}
		return nil
	}
}
