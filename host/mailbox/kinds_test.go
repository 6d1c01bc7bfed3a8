package mailbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Whatever lists the kinds lists those of the table.
func TestKindsAreListed(t *testing.T) {
	guide, sdk := read(t, "../../docs/guide/mailboxes.md"), read(t, "../../guest-sdk/actor/mailbox.go")
	for k := range table {
		e := &table[k]
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", e.name, e.full, e.order); !strings.Contains(guide, row) {
			t.Errorf("docs/guide/mailboxes.md has no row\n%s", row)
		}
		if !strings.Contains(sdk, fmt.Sprintf("%q", e.name)) {
			t.Errorf("guest-sdk/actor/mailbox.go does not name the kind %s", e.name)
		}
	}
}

func read(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every entry of the table is complete, and what New makes of it is valid.
func TestTableIsComplete(t *testing.T) {
	for k := range table {
		e, kind := &table[k], Kind(k)
		parsed, ok := ParseKind(e.name)
		if e.name == "" || e.full == "" || e.order == "" || e.levels < 1 || !ok || parsed != kind || kind.String() != e.name {
			t.Errorf("kind %d: %+v", k, e)
		}
		if err := New(kind).Check(); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		if kind.setsFull() == slices.Contains(e.takes, "full") {
			t.Errorf("%s: either its name or the key full says what a full one does", e.name)
		}
		if (e.header != "") != slices.Contains(e.takes, "header") {
			t.Errorf("%s: a kind that reads a header has a default, and takes the key", e.name)
		}
	}
	if len(table) != int(Custom) || len(Kinds()) != len(table) {
		t.Errorf("%d entries, %d names, Custom is %d", len(table), len(Kinds()), Custom)
	}
	if own := Own("mine", nil); own.IsHosted() || own.IsUsual() || own.Takes("full") || !own.Takes("bytes") || own.Check() != nil {
		t.Errorf("%+v", own)
	}
}
