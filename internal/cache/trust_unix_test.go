//go:build unix

package cache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// TestTrustedFolders: who could put something into the cache, or take it away?
func TestTrustedFolders(t *testing.T) {
	for _, c := range []struct {
		name    string
		modes   map[string]os.FileMode // below a private folder that others can pass
		refused string                 // the folder that the error names; "" if it is fine
	}{
		{"mine", map[string]os.FileMode{"a": 0o755, "a/b": 0o700}, ""},
		{"everybody may write to it", map[string]os.FileMode{"a": 0o755, "a/b": 0o777}, "a/b"},
		{"a group may write to it", map[string]os.FileMode{"a": 0o755, "a/b": 0o770}, "a/b"},
		{"everybody may write to it, with the sticky bit", map[string]os.FileMode{"a": 0o755, "a/b": 0o777 | os.ModeSticky}, "a/b"},
		{"everybody may write to its parent", map[string]os.FileMode{"a": 0o777, "a/b": 0o700}, "a"},
		{"everybody may write to its parent, with the sticky bit", map[string]os.FileMode{"a": 0o777 | os.ModeSticky, "a/b": 0o700}, ""},
		{"a group may write to its parent", map[string]os.FileMode{"a": 0o775, "a/b": 0o700}, "a"},
		{"everybody may write to it, nobody can get there", map[string]os.FileMode{"a": 0o700, "a/b": 0o777}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := passable(t)
			for _, dir := range []string{"a", "a/b"} {
				if err := errors.Join(os.Mkdir(filepath.Join(base, dir), 0o700), os.Chmod(filepath.Join(base, dir), c.modes[dir])); err != nil {
					t.Fatal(err)
				}
				if os.Geteuid() == 0 { // not to root's group
					if err := os.Chown(filepath.Join(base, dir), -1, 54321); err != nil {
						t.Fatal(err)
					}
				} else if trust.PrivateGroup(uint32(os.Getegid())) && c.modes[dir]&0o022 == 0o020 {
					t.Skip("the group is this user's alone")
				}
			}
			for _, dir := range []string{"a/b", "a/b/c"} { // it is there, and it is to be made
				if dir == "a/b/c" && strings.HasSuffix(c.refused, "/b") {
					dir = "a/b/c/d"
				}
				_, err := trust.MakeFolder(filepath.Join(base, dir))
				if c.refused == "" && err != nil {
					t.Error(dir, err)
				}
				if want := filepath.Join(base, c.refused) + " belongs to"; c.refused != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "chmod go-w")) {
					if dir == "a/b/c/d" && c.modes["a/b"]&os.ModeSticky != 0 && err == nil {
						continue // below a folder as /tmp is
					}
					t.Errorf("%s: %v, want %q", dir, err, want)
				}
			}
		})
	}
}

// passable is a folder of ours that others can pass through.
func passable(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "trust-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// TestFoldersOfOthers plays another user by pretending to be one: everything that
// the test makes belongs to somebody else, then.
func TestFoldersOfOthers(t *testing.T) {
	me := trust.Self
	if me == 0 {
		t.Skip("root's folders are trusted by everybody")
	}
	base := passable(t)
	key := filepath.Join(base, "key")
	if _, err := LoadSecret(key); err != nil {
		t.Fatal(err)
	}
	trust.Self = me + 1
	defer func() { trust.Self = me }()
	if _, err := trust.Folder(base); err == nil || !strings.Contains(err.Error(), base+" belongs to") {
		t.Error(err)
	}
	if _, err := readSecret(key); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Error(err)
	}
}

// TestOtherUsers gives folders, files and links to another user, and is root.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	const other = 54321
	base := passable(t)
	theirs, mine := filepath.Join(base, "theirs"), filepath.Join(base, "mine")
	link := filepath.Join(base, "link")
	if err := errors.Join(os.MkdirAll(filepath.Join(theirs, "mine"), 0o700), os.Mkdir(mine, 0o700), os.Chown(theirs, other, other),
		os.Symlink(mine, link), os.Lchown(link, other, other)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{theirs, filepath.Join(theirs, "mine"), link, filepath.Join(link, "x")} {
		_, err := Open(Options{Dir: dir, MaxBytes: 1000, KeyFile: testKey})
		if err == nil || !strings.Contains(err.Error(), "belongs to user 54321, not to root") || !strings.Contains(err.Error(), "another folder") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if names, _ := os.ReadDir(mine); len(names) > 0 {
		t.Error("something was made through the other user's link")
	}
	key := filepath.Join(mine, "key")
	if _, err := LoadSecret(key); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(key, other, other); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSecret(key); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Error(err)
	}
	if _, err := LoadSecret(filepath.Join(theirs, "key")); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Error(err)
	}
}

// TestAnotherUserPlants: a process of another user, who was let into the folder at
// some time, plants an entry that it has sealed with a key of its own, under the
// name of ours, and is let into nothing that we make.
func TestAnotherUserPlants(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	base := passable(t)
	dir := filepath.Join(base, "cache")
	c := openTest(t, dir, 1<<20)
	if err := put(c, key(1), []byte("mine")); err != nil {
		t.Fatal(err)
	}
	entry := c.path(key(1))
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(c.dir, 0o755), os.Chmod(entry, 0o777)); err != nil {
		t.Fatal(err)
	}
	forged := (&Secret{}).seal(c.secret.name(key(1)), "image", []byte("theirs"))
	cmd := exec.Command("/bin/sh", "-c", `cat >"$0.new" && mv "$0.new" "$0"; cat "$1"`, filepath.Join(entry, "image"), testKey)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(forged)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	if out, err := cmd.CombinedOutput(); err == nil || len(out) == 32 {
		t.Fatalf("the key can be read: %q %v", out, err)
	}
	if raw, err := os.ReadFile(filepath.Join(entry, "image")); err != nil || !bytes.Equal(raw, forged) {
		t.Fatal("not planted", err)
	}
	if body, err := get(c, key(1)); !errors.Is(err, ErrDamaged) {
		t.Errorf("%q %v", body, err)
	}
	if err := put(c, key(1), []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if body, err := get(c, key(1)); err != nil || string(body) != "mine" {
		t.Errorf("%q %v", body, err)
	}
}

// TestLinksInTheCache: nothing is written through a link, nor to a file that has
// another name, nor is a FIFO waited for.
func TestLinksInTheCache(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	c := openTest(t, dir, 1<<20)
	diary := filepath.Join(elsewhere, "diary")
	plant := map[string]func(name string) error{
		"a link":        func(name string) error { return os.Symlink(diary, name) },
		"a second name": func(name string) error { return os.Link(diary, name) },
		"a FIFO":        func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a folder":      func(name string) error { return os.Mkdir(name, 0o700) },
	}
	for what, make := range plant {
		for _, part := range []string{usesFile, "image", aboutPart} {
			if err := os.WriteFile(diary, []byte("dear"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := put(c, key(1), []byte("body")); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(c.path(key(1)), part)
			if err := errors.Join(os.RemoveAll(name), make(name)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Items(); err != nil {
				t.Error(err)
			}
			body, err := get(c, key(1))
			if part == "image" && !errors.Is(err, ErrDamaged) {
				t.Errorf("%s as %s: %q %v", what, part, body, err)
			}
			if part != "image" && (err != nil || string(body) != "body") {
				t.Errorf("%s as %s: %q %v", what, part, body, err)
			}
			e := use(t, c, key(1))
			e.Touch()
			if err := errors.Join(e.Describe("it"), e.Store("image", []byte("body")), e.Close()); err != nil {
				t.Errorf("%s as %s: %v", what, part, err)
			}
			if text, err := os.ReadFile(diary); err != nil || string(text) != "dear" {
				t.Errorf("%s as %s: the diary says %q, %v", what, part, text, err)
			}
			if _, err := c.Clear(); err != nil {
				t.Error(err)
			}
		}
	}
	// The entry itself is a link.
	if err := os.Symlink(elsewhere, c.path(key(2))); err != nil {
		t.Fatal(err)
	}
	if err := put(c, key(2), []byte("body")); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(elsewhere); len(names) != 1 {
		t.Error("written through a link")
	}
}

// TestTooLarge: a file that nobody has stored is not read without bound.
func TestTooLarge(t *testing.T) {
	c := openTest(t, t.TempDir(), 10_000)
	if err := put(c, key(1), []byte("body")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(c.path(key(1)), "image"), 1<<40); err != nil {
		t.Skip(err)
	}
	if _, err := get(c, key(1)); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestKeyFile: what is not the user's alone is not a key.
func TestKeyFile(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"has mode 0640":    func(f string) error { return os.Chmod(f, 0o640) },
		"has mode 0602":    func(f string) error { return os.Chmod(f, 0o602) },
		"is not a key":     func(f string) error { return os.Truncate(f, 31) },
		"is longer":        func(f string) error { return os.WriteFile(f, bytes.Repeat([]byte{1}, 33), 0o600) },
		"not a regular":    func(f string) error { return errors.Join(os.Rename(f, f+"2"), os.Symlink(f+"2", f)) },
		"is not a regular": func(f string) error { return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o600)) },
		"others can write": func(f string) error { return os.Chmod(filepath.Dir(f), 0o777) },
	} {
		base := passable(t)
		file := filepath.Join(base, "folder", "key")
		first, err := LoadSecret(file)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := LoadSecret(file); err != nil || *again != *first {
			t.Error("another key", err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 || info.Size() != 32 {
			t.Error(info, err)
		}
		if err := change(file); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSecret(file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(Options{Dir: filepath.Join(base, "cache"), MaxBytes: 1000, KeyFile: file}); err == nil {
			t.Errorf("%s: a cache was opened", name)
		}
	}
	dir := t.TempDir()
	if _, err := Open(Options{Dir: dir, MaxBytes: 1000, KeyFile: filepath.Join(dir, "key")}); err == nil || !strings.Contains(err.Error(), "keep it elsewhere") {
		t.Error(err)
	}
}

// TestKeyIsMadeOnce: of many who start at the same time all have the same key.
func TestKeyIsMadeOnce(t *testing.T) {
	for range 20 {
		file := filepath.Join(t.TempDir(), "a", "b", "key")
		found := make(chan string, 16)
		for range cap(found) {
			go func() {
				s, err := LoadSecret(file)
				if err != nil {
					found <- err.Error()
					return
				}
				found <- fmt.Sprintf("%x", s.key)
			}()
		}
		first := <-found
		for range cap(found) - 1 {
			if k := <-found; k != first || len(k) != 64 {
				t.Fatalf("%s and %s", first, k)
			}
		}
		if names, _ := os.ReadDir(filepath.Dir(file)); len(names) != 1 {
			t.Error("left:", names)
		}
	}
}

// TestLostKey: with another key nothing is found, nothing fails, and what the old
// key has left goes as it is not used.
func TestLostKey(t *testing.T) {
	dir, keys := t.TempDir(), t.TempDir()
	open := func() *Cache {
		c, err := Open(Options{Dir: dir, MaxBytes: 10_000, KeyFile: filepath.Join(keys, "key")})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	body := make([]byte, 2500)
	for i := range 3 {
		if err := put(open(), key(i), body); err != nil {
			t.Fatal(err)
		}
		age(t, open(), key(i), 1e12)
	}
	if err := os.Remove(filepath.Join(keys, "key")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := get(open(), key(i)); !errors.Is(err, ErrMissing) {
			t.Error(err)
		}
		if err := put(open(), key(i), body); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if got, err := get(open(), key(i)); err != nil || !bytes.Equal(got, body) {
			t.Error(err)
		}
	}
	if n, err := open().Bytes(); err != nil || n > 10_000 {
		t.Error(n, err)
	}
}
