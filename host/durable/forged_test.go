package durable

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Nothing is written through a symbolic link that a store has come with: a bundle of others would reach any file of the user.
func TestLinksAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	for _, name := range []string{"log", "events", "modules", "secret", "secret.new", "log/0000000000000200-00000001.log", "log/checkpoint", "log/lock", "events/CURRENT", "past"} {
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, name)
		to := outside
		if strings.ContainsAny(name, "/.") || name == "secret" {
			to = file
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), name+`" is no file and no folder`) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = s.Close()
		}
		b, err := os.ReadFile(file)
		list, wrong := os.ReadDir(outside)
		if string(b) != "mine" || len(list) != 1 || err != nil || wrong != nil {
			t.Errorf("%s: %q, %v, %v, %v", name, b, list, err, wrong)
		}
	}

	to, link := filepath.Join(outside, "store"), filepath.Join(t.TempDir(), "state") // the folder itself is where the user has allowed it
	if err := errors.Join(os.Mkdir(to, 0o700), os.Symlink(to, link)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: link})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A store whose secret is missing is not given another one: nothing in it has its ref then.
func TestAMissingSecret(t *testing.T) {
	dir := t.TempDir()
	x, err := openEvents(t, dir, []string{"t"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.add("t", 5); err != nil {
		t.Fatal(err)
	}
	x.close()
	path := filepath.Join(dir, "secret")
	b, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), path+" is missing, and the store has records") {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if actors, events, err := s.CheckEvents(t.Context()); actors != 1 || events != 1 || err != nil {
		t.Error(actors, events, err)
	}
}

// A check reads the events, too: also those that only their index has.
func TestADamagedIndexIsFound(t *testing.T) {
	dir := t.TempDir()
	x, err := openEvents(t, dir, []string{"t"})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := x.add("t", 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.close()
	index := filepath.Join(dir, "events")
	all, err := filepath.Glob(filepath.Join(index, "*.sst"))
	if err != nil || len(all) == 0 {
		t.Fatal(err, "the index has no tables")
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := append([]byte(nil), b...)
		for i := range spoilt {
			spoilt[i] ^= 0x5a
		}
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, n, err := s.CheckEvents(t.Context()); err == nil {
			t.Errorf("%s: %d events, and no error", filepath.Base(path), n)
		}
		_ = s.Close()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
