// Package middleware is what stands in front of handlers of net/http: cross-origin rules, compression, files and
// authentication. The gateway has them in front of actors; they serve any http.Handler. What is made from a
// configuration may be used concurrently.
package middleware

import (
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Options are what middleware needs besides its own configuration.
type Options struct {
	Base  string        // folder that relative paths start at
	Clock host.Clock    // needed
	Wait  time.Duration // how long a request waits until its password is checked; needed for Basic
	// Client tells apart who sends requests, by a comparable value; nil: it is not known.
	Client func(*http.Request) any
	// Refuse answers a request that is refused; nil: with the text.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
}

// Refusal is why a request is not served.
type Refusal struct {
	Status int // StatusGone: nobody waits for the answer
	Text   string
	Retry  time.Duration // when to come again; 0: not said
	Cause  error         // for a log; nil: there is no more to say
}

// StatusGone is of clients that have disconnected before the answer; it is never sent.
const StatusGone = 499

func (o *Options) refuse(w http.ResponseWriter, r *http.Request, f Refusal) {
	switch {
	case o.Refuse != nil:
		o.Refuse(w, r, f)
		return
	case f.Status == StatusGone:
		panic(http.ErrAbortHandler)
	case f.Retry > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
	}
	http.Error(w, f.Text, f.Status)
}

func (o *Options) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Base, path)
}

// HopByHop are headers that are about a connection, and not about what goes over it.
var HopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// ValidName reports whether a text is a token, as names of headers are.
func ValidName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// ValidValue reports whether a text can be the value of a header.
func ValidValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// InList reports whether a header that is a list has an element.
func InList(values []string, element string) bool {
	for _, v := range values {
		for rest, more := v, true; more; {
			var one string
			one, rest, more = strings.Cut(rest, ",")
			if strings.EqualFold(strings.TrimSpace(one), element) {
				return true
			}
		}
	}
	return false
}
