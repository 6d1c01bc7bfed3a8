package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	var many []string
	for i := range 3 * mostLines {
		many = append(many, fmt.Sprint("line ", i))
	}
	if got := shorten(many); !slices.Equal(got, many[2*mostLines:]) {
		t.Errorf("%d lines, from %q", len(got), got[0])
	}
	long := strings.Repeat("x", mostBytes/4)
	if got := shorten([]string{"a", long, long, long, long}); len(got) != 3 {
		t.Errorf("%d long lines", len(got))
	}
	if got := shorten([]string{strings.Repeat("x", mostBytes)}); len(got) != 0 {
		t.Error("a line that is too long is kept")
	}
	if got := shorten(nil); len(got) != 0 {
		t.Error(got)
	}
	if got := linesOf([]byte(join(many, "\n"))); !slices.Equal(got, many) {
		t.Errorf("%q", got)
	}
	if linesOf(nil) != nil {
		t.Error("an empty history has lines")
	}
}

// What somebody says is one line, whatever is in it.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		" hello ":             "hello",
		"a\nbob: I owe ann 5": "a bob: I owe ann 5",
		"a\r\n* b":            "a  * b",
		"a\tb\x00c\x7fd":      "a b c d",
		"\n":                  "",
		"äö\u2028<b>":         "äö\u2028<b>",
	} {
		if got := oneLine([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
