package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// fake is an answer of a web server that a file states.
type fake struct {
	url, method string
	status      int
	headers     map[string]string
	body        []byte
	err         string
	delay       time.Duration
	times       int // 0: any number
}

// fakes reads checked answers.
func (c *checker) fakes(n *yaml.Node) (list []*fake) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, x := range n.Content {
		f := &fake{url: grammar.At(x, "url").Value, status: http.StatusOK, headers: with(nil, grammar.At(x, "headers"))}
		s := step{n: x}
		f.method, f.err, f.delay, f.body = s.text("method"), s.text("error"), s.span("delay", 0), []byte(s.text("body"))
		f.status, f.times = s.whole("status", f.status), s.whole("times", 0)
		if j := grammar.At(x, "json"); j != nil {
			if s.has("body") {
				c.At(j, "json and body cannot be combined")
			}
			v, err := valueOf(j, func(string) (uint64, error) { return 0, errors.New("!ref is not for web servers") })
			if err == nil {
				f.body, err = json.Marshal(v)
			}
			if err != nil {
				c.At(j, "json: %v", err)
			}
			if f.headers["content-type"] == "" {
				f.headers["content-type"] = "application/json"
			}
		}
		if f.err != "" && (s.has("body") || s.has("json") || s.has("status") || s.has("headers")) {
			c.At(grammar.At(x, "error"), "with error there is no answer: status, headers, body and json cannot be combined with it")
		}
		list = append(list, f)
	}
	return list
}

// web is all web servers of a scenario. It stands in for the network of the service http.
type web struct {
	world *world

	mu    sync.Mutex
	fakes []*fake
	used  map[*fake]int
	seen  []*request // in the order in which they were made
}

// request is a request to a web server.
type request struct {
	method, url string
	header      http.Header
	body        []byte
}

// Bounds of remembered requests.
const (
	mostRequests = 10_000
	mostBody     = 1 << 20
)

func newWeb(w *world) *web {
	return &web{world: w, fakes: slices.Clone(w.scenario.fakes), used: map[*fake]int{}}
}

// put puts answers before all others.
func (b *web) put(list []*fake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fakes = slices.Concat(list, b.fakes)
}

// webAt is the network of one place.
type webAt struct {
	*web
	at *place
}

// RoundTrip implements http.RoundTripper.
func (b webAt) RoundTrip(r *http.Request) (*http.Response, error) {
	made := &request{method: r.Method, url: r.URL.String(), header: r.Header.Clone()}
	if r.Body != nil {
		made.body, _ = io.ReadAll(io.LimitReader(r.Body, mostBody))
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	f := b.choose(made)
	if f == nil {
		return nil, service.Errorf(service.Failed, "the scenario has no answer to %s %s", made.method, made.url)
	}
	if f.delay > 0 {
		if !executor.Pause(b.at.exec, f.delay, r.Context().Done()) {
			return nil, r.Context().Err()
		}
	}
	if f.err != "" {
		return nil, service.Errorf(service.Failed, "%s", f.err)
	}
	header := http.Header{}
	for _, k := range sortedKeys(f.headers) {
		header.Set(k, f.headers[k])
	}
	body := f.body
	if r.Method == http.MethodHead {
		body = nil
	}
	return &http.Response{
		Status: strconv.Itoa(f.status) + " " + http.StatusText(f.status), StatusCode: f.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// choose finds the answer to a request and notes it; if there is none it returns nil, and the scenario
// has failed.
func (b *web) choose(r *request) *fake {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) < mostRequests {
		b.seen = append(b.seen, r)
		b.world.hold(len(r.body) + len(r.url))
	}
	for _, f := range b.fakes {
		if f.method != "" && f.method != r.method || !glob.Match(f.url, r.url) || f.times > 0 && b.used[f] >= f.times {
			continue
		}
		b.used[f]++
		return f
	}
	b.unanswered(r)
	return nil
}

// unanswered is called with mu.
func (b *web) unanswered(r *request) {
	if b.world.failed.Load() != nil {
		return
	}
	err := error(&stepError{
		what: fmt.Sprintf("the service http was asked for %s %s, and the scenario has no answer to that", r.method, printable.Line(r.url, mostText)),
		hint: "nothing reaches the network: state an answer under http, or an error",
	})
	b.world.failed.Store(&err)
}

// request is the first matching one after a number, and its number; nil if there is none.
func (b *web) request(behind uint64, fits func(*request) bool) (*request, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := int(behind); i < len(b.seen); i++ {
		if fits(b.seen[i]) {
			return b.seen[i], uint64(i) + 1
		}
	}
	return nil, 0
}

// all are the requests, one line each.
func (b *web) all() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.seen[max(0, len(b.seen)-5):] {
		lines = append(lines, r.method+" "+printable.Line(r.url, mostText))
	}
	return lines
}
