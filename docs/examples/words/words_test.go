package words_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/docs/examples/words"
)

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	text := `wasmactors: 1
name: shop
modules:
  shop: {wasm: ./shop.wasm}
actors:
  cart:
    type: shop/cart
    mailbox: {kind: small-first}
    supervision: {backoff: {curve: square-root, min: 1s, max: 4s, jitter: none}}
`
	if err := os.WriteFile(filepath.Join(dir, "bundle.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := words.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := m.Actors[0].Supervision.Backoff()
	if m.Actors[0].Mailbox.String() != "small-first" || b.Policy.Delay(4, nil) != 2*time.Second || b.Policy.Delay(100, nil) != 4*time.Second {
		t.Errorf("mailbox %v, delays %v, %v", m.Actors[0].Mailbox, b.Policy.Delay(4, nil), b.Policy.Delay(100, nil))
	}
}
