package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/muesli/termenv"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// drawable reports whether lines on a stream can be redrawn.
func drawable(w any) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// colours are those that the environment says the terminal has. The terminal is not queried,
// since many do not answer.
func colours(w any) termenv.Profile {
	term := os.Getenv("TERM")
	switch {
	case !drawable(w) || os.Getenv("NO_COLOR") != "":
		return termenv.Ascii
	case strings.Contains(os.Getenv("COLORTERM"), "truecolor") || os.Getenv("COLORTERM") == "24bit":
		return termenv.TrueColor
	case strings.Contains(term, "256color"):
		return termenv.ANSI256
	}
	return termenv.ANSI
}

// statusLine is a stream of log lines with a status line below them, which is redrawn. If the
// stream is not a terminal, there is no status line.
type statusLine struct {
	mu    sync.Mutex
	w     io.Writer
	draws bool
	text  string
}

func newStatusLine(w io.Writer) *statusLine { return &statusLine{w: w, draws: drawable(w)} }

// Write implements io.Writer.
func (s *statusLine) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		return s.w.Write(p)
	}
	_, err := s.w.Write([]byte("\r\x1b[K" + string(p) + s.text))
	return len(p), err
}

// set draws the line; "" removes it.
func (s *statusLine) set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draws && (text != "" || s.text != "") {
		s.text = text
		fmt.Fprint(s.w, "\r\x1b[K"+text)
	}
}

// mostLookedAt bounds the actors whose mailboxes are counted for the status line.
const mostLookedAt = 10_000

// feedingText describes the progress of a feed.
func feedingText(s bundle.FeedStats, took time.Duration, sys *host.System) string {
	text := fmt.Sprintf("%d sent, %d answered, %.0f a second", s.Sent, s.Answered, float64(s.Sent)/max(took.Seconds(), 1e-3))
	if sys.View().Stats().Actors <= mostLookedAt {
		if path, n := deepest(sys.View().Tree()); n > 0 {
			text += fmt.Sprintf(", deepest mailbox %s with %d", path, n)
		}
	}
	return text
}

func deepest(n host.Node) (path string, most int) {
	path, most = n.Ref.Path(), n.Mailbox
	for _, c := range n.Children {
		if p, m := deepest(c); m > most {
			path, most = p, m
		}
	}
	return path, most
}
