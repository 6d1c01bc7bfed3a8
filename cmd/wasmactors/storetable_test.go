package main

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode"

	"github.com/wasmactors/wasmactors/host/admin"
)

// A store that a stranger has made forges no rows, no columns and nothing for a terminal.
func TestTablesOfForgedStores(t *testing.T) {
	hidden := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	for _, text := range []string{"a\nb", "a\tb", "a\vb\f", "\x1b[2J\x1b]0;x\a", "\u202eb", "\xff", "\x00", "a\r\nb", "\x9b1m", "../..", strings.Repeat("x", 9000)} {
		var out bytes.Buffer
		l := &eventList{table: tabwriter.NewWriter(&out, 0, 8, 2, ' ', tabwriter.Debug)}
		if err := l.add(admin.StoredEvent{ID: text, Type: text, Tags: []string{text, text}, Payload: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if err := l.flush(); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if strings.Count(got, "\n") != 1 || strings.Count(got, "|") != 6 || strings.ContainsFunc(strings.TrimSuffix(got, "\n"), hidden) || len(got) > 20_000 {
			t.Errorf("%.20q: %.200q", text, got)
		}
	}
}
