package main

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// What the nodes of a dev write, as dev shows it.

// longestNodeLine bounds what is read at a time of a line of a node, in bytes. A longer line is shown as several; as JSON a note stands
// for it.
const longestNodeLine = 64 << 10

// relay shows what a node writes to standard error: each line with the name of the node, in JSON as its first key. That key is none
// of those of events, one of which is node.
func (n *devNode) relay(from io.Reader) {
	lines := bufio.NewReaderSize(from, longestNodeLine)
	for long := false; ; {
		line, part, err := lines.ReadLine()
		if err != nil {
			return
		}
		switch {
		case !n.console.json:
			_, _ = n.console.status.Write([]byte(n.name + " | " + printable.Text(string(line)) + "\n"))
		case long: // it was noted
		case part:
			n.note("a line of more than " + strconv.Itoa(longestNodeLine) + " bytes is left out")
		case len(line) > 2 && line[0] == '{':
			_, _ = n.env.stderr.Write(slices.Concat([]byte(`{"dev_node":"`+n.name+`",`), printable.JSON(line[1:]), []byte("\n")))
		case len(line) > 0:
			n.note(string(line))
		}
		long = part
	}
}

// note is a line of a node that is no JSON.
func (n *devNode) note(text string) {
	n.env.writeJSON(map[string]any{"event": "note", "dev_node": n.name, "text": text})
}

// answers passes on the answers of a node, which is fed several times: the lines of each feed count from 1.
type answers struct {
	to io.Writer

	mu     sync.Mutex
	before []int // lines that were fed before each feed
	head   []byte
	middle bool // of a line
	failed bool // to could not be written
}

func (a *answers) broken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// mostFeeds bounds the feeds of which answers may still come.
const mostFeeds = 100

// feed begins another feed, after so many lines.
func (a *answers) feed(before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = append(a.before, before)
	if n := len(a.before); n > mostFeeds {
		a.before = slices.Delete(a.before, 0, n-mostFeeds)
	}
}

// numbered is how an answer begins.
var numbered = []byte(`{"line":`)

// longestHead is more than numbered, a number and what ends it.
const longestHead = 32

// Write implements io.Writer. Only the beginnings of lines are kept, until they are whole.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []byte
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		if a.middle {
			if end == 0 {
				end = len(rest)
			}
			out = append(out, rest[:end]...)
			a.middle = rest[end-1] != '\n'
			rest = rest[end:]
			continue
		}
		take := min(len(rest), longestHead-len(a.head))
		if end > 0 {
			take = min(take, end)
		}
		a.head = append(a.head, rest[:take]...)
		rest = rest[take:]
		if n := len(a.head); n == longestHead || a.head[n-1] == '\n' {
			out = append(out, a.renumbered(a.head)...)
			a.middle = a.head[n-1] != '\n'
			a.head = a.head[:0]
		}
	}
	if len(out) > 0 {
		if _, err := a.to.Write(out); err != nil {
			a.failed = true
			return 0, err
		}
	}
	return len(p), nil
}

// renumbered is the beginning of an answer, with the number of its line in its feed.
func (a *answers) renumbered(head []byte) []byte {
	rest, ok := bytes.CutPrefix(head, numbered)
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(string(rest[:digits]))
	if !ok || err != nil {
		return head
	}
	for _, before := range slices.Backward(a.before) {
		if before < n {
			n -= before
			break
		}
	}
	return slices.Concat(numbered, strconv.AppendInt(nil, int64(n), 10), rest[digits:])
}
