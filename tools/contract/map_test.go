package contract

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var onTheMap = regexp.MustCompile("(?m)^\\| `([a-z/-]+)/` \\|")

// The map in CONTRIBUTING has every folder of the layers, once, and no other.
func TestMapIsTheFolders(t *testing.T) {
	text, err := os.ReadFile(root + "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var mapped []string
	for _, row := range onTheMap.FindAllStringSubmatch(string(text), -1) {
		mapped = append(mapped, row[1])
	}
	// These have a row for each folder in them, the other top folders only one.
	open := []string{"", "internal", "host", "host/internal", "supervision", "guest-sdk", "cmd", "tools"}
	found := []string{"docs/architecture", "docs/examples"}
	for _, dir := range open {
		entries, err := os.ReadDir(root + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains([]string{"testdata", "bin", "fuzz-out"}, name) {
				found = append(found, path.Join(dir, name))
			}
		}
	}
	slices.Sort(found)
	slices.Sort(mapped)
	for _, dir := range found {
		if !slices.Contains(mapped, dir) {
			t.Errorf("the map has no %s/", dir)
		}
	}
	for i, dir := range mapped {
		if !slices.Contains(found, dir) || i > 0 && mapped[i-1] == dir {
			t.Errorf("%s/ is on the map twice, or is not a folder", dir)
		}
	}
}
