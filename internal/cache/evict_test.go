package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// age makes an entry look as if it had last been used so long ago.
func age(t *testing.T, c *Cache, k Key, d time.Duration) {
	t.Helper()
	at := time.Now().Add(-d)
	if err := os.Chtimes(filepath.Join(c.path(k), usesFile), at, at); err != nil {
		t.Fatal(err)
	}
}

func has(c *Cache, k Key) bool {
	_, err := os.Stat(filepath.Join(c.path(k), "image"))
	return err == nil
}

func TestEvictsWhatWasUsedLeast(t *testing.T) {
	c := openTest(t, t.TempDir(), 10_000)
	body := make([]byte, 2000)
	for i := range 4 {
		if err := put(c, key(i), body); err != nil {
			t.Fatal(err)
		}
		age(t, c, key(i), time.Duration(100-i)*time.Minute)
	}
	if _, err := get(c, key(0)); err != nil { // used again: now the youngest
		t.Fatal(err)
	}
	dir := filepath.Join(c.path(key(2)), "code")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "code"), make([]byte, 1000), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := put(c, key(9), body); err != nil { // 11,000 and headers: too much
		t.Fatal(err)
	}
	for i, want := range map[int]bool{0: true, 1: false, 3: true, 9: true} {
		if has(c, key(i)) != want {
			t.Errorf("entry %d: kept is not %v", i, want)
		}
	}
	if n, err := c.Bytes(); err != nil || n > 10_000 {
		t.Errorf("%d bytes kept, %v", n, err)
	}
	if err := put(c, key(10), make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	if has(c, key(10)) {
		t.Error("an entry above the bound was stored")
	}
}

// TestNeverEvictsWhatIsInUse: not even if it is the oldest and everything is too
// much.
func TestNeverEvictsWhatIsInUse(t *testing.T) {
	dir := t.TempDir()
	c, other := openTest(t, dir, 3000), openTest(t, dir, 3000)
	if err := put(c, key(1), make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	mine := use(t, c, key(1))
	age(t, c, key(1), 1000*time.Hour)
	for i := 2; i < 5; i++ {
		if err := put(other, key(i), make([]byte, 2000)); err != nil {
			t.Fatal(err)
		}
	}
	if !has(c, key(1)) {
		t.Error("an entry in use was evicted")
	}
	items, err := c.Items()
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		if it.InUse != (it.Key == filepath.Base(c.path(key(1)))) {
			t.Errorf("%+v", it)
		}
	}
	if done, err := other.Shrink(0, time.Time{}); err != nil || done.InUse != 1 || !has(c, key(1)) {
		t.Errorf("%+v %v", done, err)
	}
	if err := mine.Close(); err != nil {
		t.Fatal(err)
	}
	if done, err := other.Shrink(0, time.Time{}); err != nil || done.Entries != 1 || has(c, key(1)) {
		t.Errorf("no longer in use: %+v %v", done, err)
	}
}

func TestShrinkByAge(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	for i := range 5 {
		if err := put(c, key(i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		age(t, c, key(i), time.Duration(i)*time.Hour)
	}
	done, err := c.Shrink(1<<20, time.Now().Add(-150*time.Minute))
	if err != nil || done.Entries != 2 || done.Bytes == 0 {
		t.Errorf("%+v %v", done, err)
	}
	for i := range 5 {
		if has(c, key(i)) != (i < 3) {
			t.Errorf("entry %d", i)
		}
	}
}

func TestItems(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	if err := put(c, key(1), make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := get(c, key(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := use(t, c, key(1)).Describe("the guest"); err != nil {
		t.Fatal(err)
	}
	use(t, c, key(2)).Close() // nothing was stored: no entry
	items, err := c.Items()
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	it := items[0]
	if it.Key != filepath.Base(c.path(key(1))) || it.About != "the guest" || it.Uses != 3 || it.Bytes < 1000 || time.Since(it.Used) > time.Minute {
		t.Errorf("%+v", it)
	}
}

// TestSweepsLeftovers of processes that have died, and of other versions.
func TestSweepsLeftovers(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	old, young := c.temp("image"), c.temp("image")
	v0, v1 := filepath.Join(c.root, "v0"), filepath.Join(c.root, "v1")
	not := filepath.Join(c.root, "videos")
	for _, dir := range []string{v0, v1, not} {
		if err := os.MkdirAll(filepath.Join(dir, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{old, young, filepath.Join(v0, "f"), filepath.Join(v1, "f")} {
		if err := os.WriteFile(f, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for f, d := range map[string]time.Duration{
		old: 2 * leftover, filepath.Join(v0, "f"): 2 * outdated, filepath.Join(v0, "x"): 2 * outdated, v0: 2 * outdated,
		filepath.Join(v1, "x"): 2 * outdated, v1: 2 * outdated, not: 2 * outdated, filepath.Join(not, "x"): 2 * outdated,
	} {
		if err := os.Chtimes(f, time.Now().Add(-d), time.Now().Add(-d)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Trim(); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]bool{old: false, young: true, v0: false, v1: true, not: true} {
		if _, err := os.Stat(f); (err == nil) != want {
			t.Errorf("%s: kept is not %v", filepath.Base(f), want)
		}
	}
	if _, err := c.Clear(); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]bool{young: false, v1: false, not: true} {
		if _, err := os.Stat(f); (err == nil) != want {
			t.Errorf("after Clear, %s: kept is not %v", filepath.Base(f), want)
		}
	}
}
