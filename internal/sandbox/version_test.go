package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// knownFrozen is the hash of what the echo guest is frozen to by imageVersion.
const knownFrozen = "566d0f8f7e731166"

// TestImageVersion notices when the same module is frozen to something else:
// then cached images of before must not be used, and imageVersion must be
// raised.
func TestImageVersion(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := &Image{engine: e}
	if err := i.cfg.complete(); err != nil {
		t.Fatal(err)
	}
	rec, err := i.build(context.Background(), guest(t, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(rec.encode(), rec.module...))
	if got := hex.EncodeToString(sum[:8]); got != knownFrozen {
		t.Errorf("the echo guest is frozen to %s, not to %s: raise imageVersion, then note the new hash", got, knownFrozen)
	}
}
