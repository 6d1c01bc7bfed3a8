package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// site is a web site on this machine, which notes who asks for what and when.
type site struct {
	name  string
	pause time.Duration // that the crawler owes it
	pages map[string]string
	// robots is the text of robots.txt, "" if there is none.
	robots string
	// read and never are the paths that the crawler has to read, and must not ask for.
	read, never []string
	// asked is how often it has to ask for a path, if that is not once.
	asked map[string]int

	server *httptest.Server
	mu     sync.Mutex
	visits []visit
	count  map[string]int
}

// visit is a request.
type visit struct {
	path       string
	agent      string
	begin, end time.Time
}

func (s *site) start() {
	s.count = map[string]int{}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
}

// host is what its URLs begin with.
func (s *site) host() string { return s.server.URL }

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	v := visit{path: r.URL.RequestURI(), agent: r.UserAgent(), begin: time.Now()}
	time.Sleep(5 * time.Millisecond) // requests at the same time would be seen
	s.mu.Lock()
	s.count[v.path]++
	n := s.count[v.path]
	s.mu.Unlock()
	v.end = s.answer(w, v.path, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits = append(s.visits, v)
}

// mostOfAPage is how many bytes the crawler reads of a page.
const mostOfAPage = 256 << 10

// answer answers the request number n of a path, and returns when the crawler may have had enough.
func (s *site) answer(w http.ResponseWriter, path string, n int) (end time.Time) {
	defer func() {
		if end.IsZero() {
			end = time.Now()
		}
	}()
	body, ok := s.pages[path]
	switch {
	case path == "/robots.txt" && s.robots == "down":
		w.WriteHeader(http.StatusServiceUnavailable)
		return end
	case path == "/robots.txt" && s.robots != "":
		fmt.Fprint(w, s.robots)
		return end
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return end
	case strings.HasPrefix(body, "> "):
		w.Header().Set("Location", body[2:])
		w.WriteHeader(http.StatusMovedPermanently)
		return end
	case strings.HasPrefix(body, "flaky ") && n <= 2:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return end
	case body == "endless":
		w.Header().Set("Content-Type", "text/html")
		for i := range 1000 {
			if i == mostOfAPage/10_000 {
				end = time.Now() // it may give up from here on, and that may be seen late
			}
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				return end
			}
		}
		return end
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, body)
	return end
}

// polite compares what was asked for with what may be.
func (s *site) polite(agent string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.visits, func(a, b visit) int { return a.begin.Compare(b.begin) })
	for i, v := range s.visits {
		switch {
		case i == 0 && v.path != "/robots.txt":
			return fmt.Errorf("%s: the first request was for %s", s.name, v.path)
		case v.agent != agent:
			return fmt.Errorf("%s: %s was asked for by %q", s.name, v.path, v.agent)
		case i > 0 && v.begin.Sub(s.visits[i-1].end) < s.pause-time.Millisecond:
			return fmt.Errorf("%s: %s came %v after the request before, and owed it %v", s.name, v.path, v.begin.Sub(s.visits[i-1].end), s.pause)
		}
	}
	for _, path := range s.never {
		if s.count[path] > 0 {
			return fmt.Errorf("%s: %s is forbidden, and was asked for", s.name, path)
		}
	}
	for path, n := range s.count {
		want := 1
		if s.asked[path] > 0 {
			want = s.asked[path]
		}
		if n != want {
			return fmt.Errorf("%s: %s was asked for %d times, not %d", s.name, path, n, want)
		}
	}
	for _, path := range s.read {
		if s.count[path] == 0 {
			return fmt.Errorf("%s: %s was never asked for", s.name, path)
		}
	}
	return nil
}

// closed is a server that nobody answers at.
func closed() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
