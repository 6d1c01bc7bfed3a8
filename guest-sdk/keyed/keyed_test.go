package keyed

import (
	"errors"
	"strings"
	"testing"
)

func TestKeysHaveNamesInTheSDK(t *testing.T) {
	for key, want := range map[string]string{"ann": "ann", "a/b": "a~2Fb", "..": "~2E~2E"} {
		name, err := Name(key)
		if again, ok := Key(name); name != want || err != nil || again != key || !ok {
			t.Errorf("%q: %q, %v; back %q, %v", key, name, err, again, ok)
		}
	}
	for _, key := range []string{"", strings.Repeat("/", 100)} {
		if name, err := Name(key); !errors.Is(err, ErrBadKey) || name != "" {
			t.Errorf("%q: %q, %v", key, name, err)
		}
	}
}
