package gateway

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// RouteError is an error in a route.
type RouteError struct {
	Route int    // its index in Config.Routes
	Key   string // what is wrong: pattern, to, pool, make, ...
	Err   error
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("gateway: route %d: %s: %v", e.Route+1, e.Key, e.Err)
}

// Unwrap is the cause.
func (e *RouteError) Unwrap() error { return e.Err }

// wildcard is a wildcard of a pattern.
type wildcard struct {
	name string
	rest bool // {name...}
}

// wildcardsOf are the wildcards of a pattern that ServeMux has accepted, in order.
func wildcardsOf(pattern string) (out []wildcard) {
	_, path, ok := strings.Cut(pattern, "/")
	if !ok {
		return nil
	}
	for _, segment := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			if name == "$" {
				continue
			}
			name, rest := strings.CutSuffix(name, "...")
			out = append(out, wildcard{name, rest})
		}
	}
	return out
}

// register adds a pattern, and returns as an error what ServeMux panics with.
func register(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s", plainPanic(fmt.Sprint(r)))
		}
	}()
	if err := checkPattern(pattern); err != nil {
		return err
	}
	mux.Handle(pattern, h)
	return nil
}

// registered matches the parts of ServeMux's panics about Go code, which mean nothing to users of a manifest.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// plainPanic is the text of a panic of ServeMux, for people.
func plainPanic(text string) string {
	text = registered.ReplaceAllString(text, "")
	text = strings.TrimPrefix(text, "http: ")
	text = strings.ReplaceAll(text, ":\n", ": ")
	return strings.ReplaceAll(text, "\n", "; ")
}

// checkPattern refuses patterns that ServeMux accepts but that make no sense.
func checkPattern(pattern string) error {
	method, rest, ok := strings.Cut(pattern, " ")
	if !ok {
		method, rest = "", pattern
	}
	rest = strings.TrimLeft(rest, " \t")
	if method == http.MethodConnect {
		return fmt.Errorf("CONNECT is never served")
	}
	if method != strings.ToUpper(method) {
		return fmt.Errorf("methods are in capitals: %q never matches; write %q", method, strings.ToUpper(method))
	}
	host, path, ok := strings.Cut(rest, "/")
	switch {
	case !ok:
		return fmt.Errorf("%q has no path: it begins with /, behind a method or a host if there is one", pattern)
	case host != strings.ToLower(host):
		return fmt.Errorf("hosts are in small letters: %q never matches", host)
	case strings.Contains(host, ":"):
		return fmt.Errorf("the host %q has a port: requests are compared without", host)
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		switch {
		case segment == "" && i < len(segments)-1:
			return fmt.Errorf("an empty segment (//) never matches: paths with one are refused")
		case segment == "." || segment == "..":
			return fmt.Errorf("the segment %q never matches: paths with one are refused", segment)
		case strings.ContainsAny(segment, "{}") && !(strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}")):
			return fmt.Errorf("a wildcard must fill a whole segment: %q does not", segment)
		case strings.ContainsAny(segment, "?#"):
			return fmt.Errorf("%q: a pattern is a path, without a query or a fragment", segment)
		}
		for _, c := range segment {
			if c < ' ' || c == 0x7f {
				return fmt.Errorf("%q has a control character", segment)
			}
		}
	}
	return nil
}

// template is the path of an actor that is made on demand: a name with the value of a wildcard in it.
type template struct {
	before, after string
	value         int // index of the wildcard
}

// parseTemplate reads /user/room-{room} for the wildcards of a pattern.
func parseTemplate(path string, wild []wildcard) (template, error) {
	name, ok := strings.CutPrefix(path, "/user/")
	if !ok || strings.Contains(name, "/") {
		return template{}, fmt.Errorf("%q: actors are made on demand directly below /user: write /user/NAME, such as /user/room-{room}", path)
	}
	before, rest, open := strings.Cut(name, "{")
	wanted, after, closed := strings.Cut(rest, "}")
	if !open || !closed || strings.ContainsAny(after, "{}") {
		return template{}, fmt.Errorf("%q needs one {name} of the pattern in it", path)
	}
	for i, w := range wild {
		switch {
		case w.name != wanted:
		case w.rest:
			return template{}, fmt.Errorf("{%s...} of the pattern may hold slashes, which no name has: use {%s}", wanted, wanted)
		case !abi.ValidName([]byte(before + "x" + after)):
			return template{}, fmt.Errorf("%q is not a valid name: names are 1 to %d bytes of A-Z a-z 0-9 _ . ~ -", before+"x"+after, abi.MaxName)
		default:
			return template{before, after, i}, nil
		}
	}
	return template{}, fmt.Errorf("the pattern has no wildcard {%s}", wanted)
}

// fill is the name for a value; false if it is not a valid one.
func (t *template) fill(value string) (string, bool) {
	name := t.before + value + t.after
	return name, value != "" && name != "." && name != ".." && abi.ValidName([]byte(name))
}
