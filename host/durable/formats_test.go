package durable

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

var fixture = flag.String("fixture", "", "write a store as this release does, to a folder of this name in testdata")

// storedProps are the actors of the stores in testdata.
func storedProps(t testing.TB) Props {
	image := puppetImage(t)
	return Props{
		"a": puppet(image, rec(byte(abi.KindTimer), 0, send("/user/b", add))).WithChildren(host.Child{Name: "kid", Props: puppet(image)}),
		"b": puppet(image), "c": puppet(image),
	}
}

// writeStore makes a store with all kinds of records. Those of a are behind a checkpoint, c is forgotten.
func writeStore(t *testing.T, dir string) {
	w := mustOpen(t, t.TempDir(), storedProps(t), sparing)
	eventually(t, func() bool { _, err := w.Lookup("/user/a/kid"); return err == nil })
	for _, name := range []string{"a", "a/kid", "a", "c"} {
		w.tell(name, add)
		w.report(name)
	}
	w.checkpoint()
	w.tell("b", add)
	w.checkpoint() // of which b, and what has something under way
	w.tell("b", script(rec(0, 0, send("/user/a", add), send("/user/outside", text("x")))))
	w.tell("b", script(rec(0, trap)))
	eventually(t, func() bool { return w.report("b") == 0 && w.report("a") == 3 })
	for range 5 {
		w.tell("b", add)
	}
	if n := w.report("b"); n != 5 {
		t.Fatal(n)
	}
	w.tell("a", script(rec(0, 0, abi.AppendTimer(nil, 1, 1, 0, nil))))
	eventually(t, func() bool { return w.report("b") == 6 })
	w.close()
	s, err := Open(Options{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(context.Background(), "w", "c"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := copyBackward(dir, w.dir); err != nil {
		t.Fatal(err)
	}
}

// Stores of each release open: each folder of testdata is one as a release has written it.
func TestStoresOfEachRelease(t *testing.T) {
	if *fixture != "" {
		dir := filepath.Join("testdata", *fixture)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeStore(t, dir)
	}
	stores, err := filepath.Glob(filepath.Join("testdata", "v*"))
	if err != nil || len(stores) == 0 {
		t.Fatal(stores, err)
	}
	for _, from := range stores {
		dir := t.TempDir()
		if err := copyBackward(dir, from); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		props := storedProps(t)
		for life := range 3 {
			w := mustOpen(t, dir, props)
			a, k, b, c := w.report("a"), w.report("a/kid"), w.report("b"), w.report("c")
			if int(a) != 3+life || k != 1 || b != 6 || c != 0 {
				t.Errorf("%s, life %d: %d %d %d %d", from, life, a, k, b, c)
			}
			w.tell("a", add)
			w.report("a")
			if life == 1 {
				w.checkpoint()
			}
			w.close()
		}
	}
}
