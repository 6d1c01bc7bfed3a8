package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/host/service"
)

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	f := At(path)
	if _, err := os.Stat(path); err == nil {
		t.Error("it was made before anybody has asked")
	}
	kv, err := f.Of("kv")
	if err != nil || kv != filepath.Join(path, "kv") {
		t.Fatal(kv, err)
	}
	if info, err := os.Stat(kv); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	if _, err := f.Of("sql"); err != nil {
		t.Error(err)
	}
	other := At(path)
	if _, err := other.Of("kv"); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := other.Of("kv"); err != nil {
		t.Error(err)
	}
	_ = other.Close()
	for _, none := range []*Folder{nil, At("")} {
		if _, err := none.Of("kv"); !errors.Is(err, service.ErrNoState) {
			t.Error(err)
		}
		if err := none.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDefault(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	dir := t.TempDir()
	a, err := Default(filepath.Join(dir, "a", "bundle.yaml"), "shop")
	b, err2 := Default(filepath.Join(dir, "b", "bundle.yaml"), "shop")
	if err != nil || err2 != nil || a == b || filepath.Dir(a) != filepath.Join(base, "wasmactors") {
		t.Error(a, b, err, err2)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "bundle.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "link")); err == nil {
		real, _ := Default(filepath.Join(dir, "a", "bundle.yaml"), "shop")
		if c, _ := Default(filepath.Join(dir, "link", "bundle.yaml"), "shop"); c != real {
			t.Error("a link to a bundle is another bundle", c, real)
		}
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if c, err := Default("x", "shop"); err == nil && !filepath.IsAbs(c) {
		t.Error(c)
	}
}
