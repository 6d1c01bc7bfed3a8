package contract

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/guest-sdk/events"
	"github.com/wasmactors/wasmactors/host"
)

var (
	reasonRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| [^|]+ \\|$")
	channels  = regexp.MustCompile("(?m)^\\| (`[\\w.-]+`(?:, `[\\w.-]+`)*) \\| `[\\w-]+` \\|")
)

// eventsPage is a part of docs/services/events.md: from one heading to the next.
func eventsPage(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(root + "docs/services/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/services/events.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// The page of the service events lists every reason of a dead letter, with its text, in the order
// of the code.
func TestReasonsOfDeadLettersAreListed(t *testing.T) {
	var listed, want []string
	for _, row := range reasonRow.FindAllStringSubmatch(eventsPage(t, "### Reasons of dead letters"), -1) {
		listed = append(listed, row[1]+": "+row[2])
	}
	for _, r := range host.DeadReasons() {
		want = append(want, r.Name()+": "+r.String())
	}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/services/events.md lists\n%s\nand the host has\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}

// The channels of the page are those that the SDK names.
func TestChannelsOfEventsAreListed(t *testing.T) {
	var listed []string
	for _, row := range channels.FindAllStringSubmatch(eventsPage(t, "## Channels"), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			listed = append(listed, strings.TrimSuffix(strings.Trim(name, "`"), ".REASON"))
		}
	}
	want := []string{events.Started, events.Failed, events.Restarted, events.Resumed, events.Stopped, events.Escalated,
		events.Paused, events.Unpaused, events.DeadLetters, events.Suppressed, events.Unhandled}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/services/events.md lists %v, the SDK names %v", listed, want)
	}
}
