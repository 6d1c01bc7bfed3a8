//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
)

// A bundle may come with links of the names that files get which are written beside it. What these lead to stays as it is.
func TestLinksOfABundleAreNotFollowed(t *testing.T) {
	for name, write := range map[string]func(dir string) error{
		"m.wasm": func(dir string) error {
			code, _, stderr := try(t, context.Background(), "", "build", echoBundle(t, ""), "--output", dir)
			if code != 0 {
				t.Error(stderr)
			}
			return nil
		},
		"pays-7.case.json": func(dir string) error { return new(simulate.Plan).Save(filepath.Join(dir, "pays-7.case.json")) },
	} {
		dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "authorized_keys")
		path := filepath.Join(dir, name)
		if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
		if err := write(dir); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
			t.Errorf("%s: what the link leads to is %.40q, %v", name, b, err)
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			t.Errorf("%s: nothing was written: %v", name, err)
		}
	}
}
