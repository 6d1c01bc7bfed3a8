package admin

import (
	"net/http"
	"strings"
	"testing"
)

// A node that is about to stop is not ready, and says why.
func TestANodeThatIsApartIsNotReady(t *testing.T) {
	why := ""
	s := serveSite(t, func(c Config) Config { return c.WithNodes(func() Nodes { return fakeNodes{why} }) })
	for _, x := range []struct {
		why, want string
		status    int
	}{{"", `"ok"`, http.StatusOK}, {"the majority is lost", `"apart","cluster":"the majority is lost"`, http.StatusServiceUnavailable}, {"", `"ok"`, http.StatusOK}} {
		why = x.why
		if status, text := s.do(http.MethodGet, "/readyz", ""); status != x.status || !strings.Contains(string(text), x.want) {
			t.Errorf("%q: %d %s", x.why, status, text)
		}
	}
}
