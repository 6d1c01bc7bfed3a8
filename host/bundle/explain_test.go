package bundle

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// What explain says of a manifest with everything in it; testdata/explained.txt is
// written anew when UPDATE is set.
func TestExplain(t *testing.T) {
	m, err := Load("testdata/explained.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, path := range []string{"/user/a/kid", "a/other", "user/b", "c", "d", "e"} {
		if err := m.Explain(&b, path); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("testdata/explained.txt", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/explained.txt")
	if err != nil || b.String() != string(want) {
		t.Errorf("%v\n%s", err, &b)
	}
	if err := m.Explain(&b, "/user/a/kit"); err == nil || !strings.Contains(err.Error(), `did you mean "/user/a/kid"?`) {
		t.Errorf("%v", err)
	}
}
