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
