package main

import (
	"bytes"
	"sort"
)

// edits are insertions into a text, nested like the nodes that they are about.
type edits struct{ list []edit }

type edit struct {
	at, remove int
	text       string
	order      int // at one place: ends before beginnings, inner ends before outer ones
}

// wrap puts text around [from, to). What is wrapped later lies within.
func (e *edits) wrap(from, to int, before, after string) {
	n := len(e.list) + 1
	e.list = append(e.list, edit{from, 0, before, n}, edit{to, 0, after, -n})
}

// replace puts text in the place of n bytes.
func (e *edits) replace(at, n int, text string) {
	e.list = append(e.list, edit{at, n, text, len(e.list) + 1})
}

// apply returns the changed text.
func (e *edits) apply(text []byte) []byte {
	sort.SliceStable(e.list, func(i, j int) bool {
		a, b := e.list[i], e.list[j]
		if a.at != b.at {
			return a.at < b.at
		}
		return a.order < b.order
	})
	var out bytes.Buffer
	last := 0
	for _, x := range e.list {
		out.Write(text[last:x.at])
		out.WriteString(x.text)
		last = x.at + x.remove
	}
	out.Write(text[last:])
	return out.Bytes()
}
