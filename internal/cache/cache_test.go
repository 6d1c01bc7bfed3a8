package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func openTest(t testing.TB, dir string, max int64) *Cache {
	t.Helper()
	c, err := Open(Options{Dir: dir, MaxBytes: max, KeyFile: testKey})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testKey is the key file of all tests, and of the processes that they start.
var testKey = func() string {
	if file := os.Getenv("CACHE_TEST_KEY"); file != "" {
		return file
	}
	dir, err := os.MkdirTemp("", "cache-key-")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "key")
}()

func key(i int) Key { return KeyOf(fmt.Append(nil, i)) }

func use(t testing.TB, c *Cache, k Key) *Entry {
	t.Helper()
	e, err := c.Use(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// put stores one part and ends the use.
func put(c *Cache, k Key, body []byte) error {
	e, err := c.Use(k)
	if err != nil {
		return err
	}
	return errors.Join(e.Store("image", body), c.Trim(), e.Close())
}

// get reads it.
func get(c *Cache, k Key) ([]byte, error) {
	e, err := c.Use(k)
	if err != nil {
		return nil, err
	}
	body, err := e.Load("image")
	if err == nil {
		e.Touch()
	}
	return body, errors.Join(err, e.Close())
}

func TestStoreAndLoad(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	e := use(t, c, key(1))
	if _, err := e.Load("image"); err != ErrMissing {
		t.Fatalf("empty cache: %v", err)
	}
	body := bytes.Repeat([]byte("abc"), 1000)
	if err := errors.Join(e.Store("image", body), e.Store("empty", nil)); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string][]byte{"image": body, "empty": {}} {
		if got, err := use(t, c, key(1)).Load(part); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what was stored: %v", part, err)
		}
	}
	if _, err := use(t, c, key(2)).Load("image"); err != ErrMissing {
		t.Error("another key:", err)
	}
	if err := e.Store("image", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Load("image"); err != nil || string(got) != "new" {
		t.Error("not replaced:", err)
	}
	if err := e.Drop("image"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load("image"); err != ErrMissing {
		t.Error("dropped:", err)
	}
}

func TestKeysKeepPartsApart(t *testing.T) {
	if KeyOf([]byte("ab"), []byte("c")) == KeyOf([]byte("a"), []byte("bc")) {
		t.Error("parts run together")
	}
}

// TestDamage flips, cuts and extends a stored file at random places, from a seed:
// it never comes back as a body, it is gone afterwards, and it can be stored
// again.
func TestDamage(t *testing.T) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 1))
	c := openTest(t, t.TempDir(), 1<<20)
	body := make([]byte, 700)
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	k := key(1)
	file := filepath.Join(c.path(k), "image")
	name, other := c.secret.name(k), c.secret.name(key(2))
	whole := c.secret.seal(name, "image", body)
	stranger := &Secret{key: [32]byte{1}}
	damages := map[string][]byte{
		"empty": {}, "longer": append(bytes.Clone(whole), 0), "twice": append(bytes.Clone(whole), whole...),
		"of another key": c.secret.seal(other, "image", body), "of another part": c.secret.seal(name, "module", body),
		"of another secret":  stranger.seal(name, "image", body),
		"of another version": append([]byte("WACACHE1"), whole[len(magic):]...), "zeros": make([]byte, len(whole)),
		"only a header": whole[:headerSize],
	}
	for n := range 500 {
		at := r.IntN(len(whole))
		if n < headerSize {
			at = n // every byte of the header
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << r.IntN(8)
		damages[fmt.Sprintf("flipped at %d", at)] = flipped
		damages[fmt.Sprintf("cut at %d", at)] = whole[:at]
		zeroed := bytes.Clone(whole)
		clear(zeroed[at:min(len(zeroed), at+16+r.IntN(100))])
		if !bytes.Equal(zeroed, whole) {
			damages[fmt.Sprintf("zeros at %d", at)] = zeroed
		}
	}
	e := use(t, c, k)
	for name, damaged := range damages {
		if err := e.Store("image", body); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := e.Open("image"); err == nil { // piece by piece
			got, err := io.ReadAll(p)
			if !errors.Is(err, ErrDamaged) || len(got) > 0 {
				t.Errorf("seed %d, %s: %d bytes, %v", seed, name, len(got), err)
			}
			p.Close()
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("seed %d, %s: %v", seed, name, err)
		} else if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Load("image"); !errors.Is(err, ErrDamaged) {
			t.Errorf("seed %d, %s: %v", seed, name, err)
		}
		if _, err := e.Load("image"); err != ErrMissing {
			t.Errorf("seed %d, %s: still there: %v", seed, name, err)
		}
	}
}

// TestFolders puts folders, files and links where the cache does not expect
// them.
func TestFolders(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	c := openTest(t, dir, 1<<20)
	k := key(1)
	if err := put(c, k, []byte("body")); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(c.path(k), "image")
	treasure := filepath.Join(elsewhere, "treasure")
	if err := errors.Join(os.WriteFile(treasure, []byte("gold"), 0o600), os.Remove(image)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(image, 0o700); err != nil { // a folder in the place of a part
		t.Fatal(err)
	}
	if _, err := get(c, k); !errors.Is(err, ErrDamaged) {
		t.Error("read a folder:", err)
	}
	if err := os.Symlink(treasure, image); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if _, err := get(c, k); !errors.Is(err, ErrDamaged) {
		t.Error("read through a link:", err)
	}
	// An entry that is a link, and a link beside the entries: they are followed by
	// nothing that removes.
	for _, name := range []string{c.path(key(2)), filepath.Join(c.dir, "link"), filepath.Join(c.dir, tempPrefix+"link"), filepath.Join(dir, "v1")} {
		if err := os.Symlink(elsewhere, name); err != nil {
			t.Fatal(err)
		}
	}
	if items, err := c.Items(); err != nil || len(items) != 0 {
		t.Error(items, err)
	}
	if _, err := c.Shrink(0, c.item(filepath.Base(c.path(k))).Used.AddDate(1, 0, 0)); err != nil {
		t.Error(err)
	}
	if _, err := c.Clear(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(treasure); err != nil || string(got) != "gold" {
		t.Error("what a link led to is gone", err)
	}
	// The cache itself may be a link.
	link := filepath.Join(t.TempDir(), "cache")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c = openTest(t, link, 1<<20)
	if err := put(c, key(3), []byte("body")); err != nil {
		t.Error(err)
	}
	if body, err := get(openTest(t, dir, 1<<20), key(3)); err != nil || string(body) != "body" {
		t.Error(err)
	}
}

func TestUnusableDirectories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: filepath.Join(file, "cache"), MaxBytes: 1000, KeyFile: testKey}); err == nil {
		t.Error("opened a cache below a file")
	}
	c := openTest(t, filepath.Join(dir, "cache"), 1000)
	if err := os.RemoveAll(dir); err != nil { // it vanishes
		t.Fatal(err)
	}
	if err := put(c, key(1), []byte("x")); err == nil {
		t.Error("stored into nothing")
	}
	if _, err := c.Items(); err == nil {
		t.Error("listed nothing")
	}
}

// TestManyWriters stores, loads, damages, evicts and clears the same few keys from
// many goroutines, as processes that share a directory do. Nothing but a whole
// body may come back.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	bodyOf := func(k Key) []byte { s := sha256.Sum256(k[:]); return bytes.Repeat(s[:], 100) }
	var wg sync.WaitGroup
	for w := range 6 {
		c := openTest(t, dir, 12_000)
		wg.Go(func() {
			for i := range 100 {
				k := key((i + w) % 5)
				switch (i * 7 % 11) % 5 {
				case 0:
					_ = put(c, k, bodyOf(k)) // may lose a race with Clear
				case 1, 2:
					if got, err := get(c, k); err == nil && !bytes.Equal(got, bodyOf(k)) {
						t.Error("a wrong body")
					}
				case 3:
					_ = os.Truncate(filepath.Join(c.path(k), "image"), int64(i*50))
				case 4:
					if i%25 == 4 {
						_, _ = c.Clear()
					}
				}
			}
		})
	}
	wg.Wait()
	c := openTest(t, dir, 12_000)
	if err := put(c, key(1), bodyOf(key(1))); err != nil {
		t.Fatal(err)
	}
	if got, err := get(c, key(1)); err != nil || !bytes.Equal(got, bodyOf(key(1))) {
		t.Error("the cache is of no use any more", err)
	}
}
