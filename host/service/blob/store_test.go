package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		crashChild()
	}
	goleak.VerifyTestMain(m)
}

func openTest(t testing.TB, dir string) *store {
	t.Helper()
	s, err := openStore(dir, func(b []byte) { _, _ = rand.Read(b) }, time.Now, func(text string, args ...any) { t.Log(append([]any{text}, args...)...) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSpace(t testing.TB, dir string) *space {
	s := openTest(t, dir)
	t.Cleanup(func() { _ = s.close() })
	x, err := s.space("test")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

var wide = limits{bytes: 1 << 30, objects: 1000, object: 1 << 30}

func put(x *space, name string, data []byte, lim limits, c condition, want []byte) (Object, error) {
	w, err := x.create(name, "", lim, c, want)
	if err != nil {
		return Object{}, err
	}
	defer w.abandon()
	for len(data) > 0 {
		n := min(len(data), 1000)
		if _, err := w.Write(data[:n]); err != nil {
			return Object{}, err
		}
		data = data[n:]
	}
	return w.publish()
}

func get(x *space, name string) ([]byte, error) {
	f, o, err := x.openObject(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := verify(context.Background(), f, &o); err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, o.Size))
}

// files are those of a folder and below it, but for locks.
func files(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockFile {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever an object is called, it stays in the folder, and keeps to itself.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "in", "folder")
	x := openSpace(t, inner)
	names := []string{"a", "A", "\u00e4", "a\u0308", "..", ".", "../../out", "/etc/passwd", `..\..\out`, "con", "NUL", "aux.txt", "a:b", "a\nb", " ", "a ", "a.", strings.Repeat("x", MaxName), strings.Repeat("x", MaxName-1), "\ufeff", "💾"}
	for i, name := range names {
		if _, err := put(x, name, []byte(fmt.Sprint(i)), wide, condition{absent: true}, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i, name := range names {
		if got, err := get(x, name); err != nil || string(got) != fmt.Sprint(i) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, f := range files(t, dir) {
		if !strings.HasPrefix(f, filepath.Join(inner, "ns-test", objectFolder)) || len(filepath.Base(f)) != 64 {
			t.Errorf("a file %s", f)
		}
	}
	for _, name := range []string{"", "a\x00b", "\xff", strings.Repeat("x", MaxName+1)} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

func TestConditions(t *testing.T) {
	x := openSpace(t, t.TempDir())
	o, err := put(x, "a", []byte("one"), wide, condition{}, nil)
	if err != nil || o.SHA256 != sha256.Sum256([]byte("one")) {
		t.Fatal(o, err)
	}
	other := sha256.Sum256([]byte("other"))
	for _, c := range []struct {
		name string
		c    condition
		want []byte
		code service.Code
	}{
		{"a", condition{absent: true}, nil, service.Exists},
		{"a", condition{match: other[:]}, nil, service.Conflict},
		{"b", condition{match: other[:]}, nil, service.Conflict},
		{"b", condition{}, other[:], service.Conflict},
		{"a", condition{match: o.SHA256[:]}, nil, ""},
		{"a", condition{match: o.SHA256[:]}, nil, service.Conflict},
	} {
		if _, err := put(x, c.name, []byte("two"), wide, c.c, c.want); service.CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// The condition holds when the object is published, not only when it is begun.
	first, err := x.create("c", "", wide, condition{absent: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.abandon()
	if _, err := put(x, "c", nil, wide, condition{absent: true}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := first.publish(); service.CodeOf(err) != service.Exists {
		t.Error(err)
	}
	if _, err := x.remove("a", condition{match: other[:]}); service.CodeOf(err) != service.Conflict {
		t.Error(err)
	}
	if existed, err := x.remove("a", condition{}); err != nil || !existed {
		t.Error(existed, err)
	}
	if existed, err := x.remove("a", condition{}); err != nil || existed {
		t.Error(existed, err)
	}
}

func TestQuotas(t *testing.T) {
	dir := t.TempDir()
	x := openSpace(t, dir)
	lim := limits{bytes: 10_000, objects: 2, object: 6000}
	if _, err := put(x, "a", make([]byte, 6001), lim, condition{}, nil); service.CodeOf(err) != service.TooLarge {
		t.Error(err)
	}
	if _, err := put(x, "a", make([]byte, 6000), lim, condition{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := put(x, "b", make([]byte, 4001), lim, condition{}, nil); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
	if _, err := put(x, "b", make([]byte, 4000), lim, condition{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := put(x, "c", nil, lim, condition{}, nil); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
	if _, err := put(x, "b", nil, lim, condition{}, nil); err != nil {
		t.Error("what is there may be replaced:", err)
	}
	if bytes, objects := x.usage(); bytes != 6000 || objects != 2 || x.coming != 0 {
		t.Error(bytes, objects, x.coming)
	}
	if got := files(t, filepath.Join(dir, "ns-test", newFolder)); len(got) != 0 {
		t.Error("what was given up is still there:", got)
	}
	// Those who write at the same time do not get more together.
	one, err := x.create("a", "", lim, condition{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer one.abandon()
	if _, err := one.Write(make([]byte, 3000)); err != nil {
		t.Error(err)
	}
	if _, err := put(x, "b", make([]byte, 1001), lim, condition{}, nil); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
}

// What a crash leaves is removed, what is damaged is not served.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	x, err := s.space("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "a", "c"} {
		if _, err := put(x, name, []byte("of "+name), wide, condition{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openStore(dir, nil, nil, nil); err == nil {
		t.Error("a folder was opened twice")
	}
	w, err := x.create("d", "", wide, condition{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	_ = w.file.Close()
	_ = s.close()
	damaged := filepath.Join(dir, "ns-test", objectFolder, fileName("b"))
	data, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// One under the name of another, one cut off, one that is nothing of ours.
	for name, b := range map[string][]byte{fileName("x"): data, fileName("y"): data[:len(data)-1], "readme": []byte("hello")} {
		if err := os.WriteFile(filepath.Join(dir, "ns-test", objectFolder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x = openSpace(t, dir)
	if !slices.Equal(x.names, []string{"a", "b", "c"}) || len(files(t, filepath.Join(dir, "ns-test", newFolder))) != 0 {
		t.Error(x.names)
	}
	if got, err := get(x, "a"); err != nil || string(got) != "of a" {
		t.Error(string(got), err)
	}
	if _, err := get(x, "b"); service.CodeOf(err) != service.Unavailable || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// TestFullDisk fills a small file system: what fails is an error, and what was there stays.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := mountSmall(dir, 1<<20); err != nil {
		t.Skip("no small file system can be made here: ", err)
	}
	t.Cleanup(func() { unmount(dir) })
	s := openTest(t, filepath.Join(dir, "blobs"))
	defer func() { _ = s.close() }()
	x, err := s.space("test")
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Repeat([]byte("x"), 300_000)
	if _, err := put(x, "a", old, wide, condition{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := put(x, name, make([]byte, 2<<20), wide, condition{}, nil); service.CodeOf(err) != service.Unavailable || !strings.Contains(err.Error(), "the disk is full") {
			t.Error(err)
		}
	}
	if got, err := get(x, "a"); err != nil || !bytes.Equal(got, old) {
		t.Error(err)
	}
	if _, err := put(x, "b", old, wide, condition{}, nil); err != nil {
		t.Error("what was given up still takes room:", err)
	}
}

// TestModel compares a store, opened anew now and then, with a map.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "blob")
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		s := openTest(t, dir)
		defer func() { _ = s.close() }()
		x, err := s.space("test")
		if err != nil {
			rt.Fatal(err)
		}
		model := map[string]string{}
		lim := limits{bytes: 60, objects: 4, object: 25}
		total := func() (n int) {
			for _, v := range model {
				n += len(v)
			}
			return n
		}
		name := rapid.SampledFrom([]string{"a", "ab", "b", "ba", "c", "A"})
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k, v := name.Draw(rt, "k"), rapid.StringN(0, 30, 30).Draw(rt, "v")
				absent := rapid.Bool().Draw(rt, "absent")
				_, there := model[k]
				want := service.Code("")
				switch {
				case absent && there:
					want = service.Exists
				case !there && len(model) >= lim.objects:
					want = service.Quota
				case len(v) > 25:
					want = service.TooLarge
				case total()+len(v) > 60:
					want = service.Quota
				default:
					model[k] = v
				}
				if _, err := put(x, k, []byte(v), lim, condition{absent: absent}, nil); service.CodeOf(err) != want {
					rt.Fatalf("put %q: %v, want %q", k, err, want)
				}
			},
			"delete": func(rt *rapid.T) {
				k := name.Draw(rt, "k")
				_, there := model[k]
				if existed, err := x.remove(k, condition{}); err != nil || existed != there {
					rt.Fatal(existed, err)
				}
				delete(model, k)
			},
			"reopen": func(rt *rapid.T) {
				if err := s.close(); err != nil {
					rt.Fatal(err)
				}
				s = openTest(t, dir)
				if x, err = s.space("test"); err != nil {
					rt.Fatal(err)
				}
			},
			"list": func(rt *rapid.T) {
				prefix, after, limit := rapid.SampledFrom([]string{"", "a", "b", "z"}).Draw(rt, "prefix"), name.Draw(rt, "after"), rapid.IntRange(1, 4).Draw(rt, "limit")
				var all []string
				for k := range model {
					if strings.HasPrefix(k, prefix) && k > after {
						all = append(all, k)
					}
				}
				slices.Sort(all)
				var got []string
				more := x.list(prefix, after, func(o *Object) bool {
					if len(got) == limit {
						return false
					}
					got = append(got, o.Name)
					return true
				})
				if !slices.Equal(got, all[:min(limit, len(all))]) || more != (len(all) > limit) {
					rt.Fatalf("%q after %q: %v %v, want %v", prefix, after, got, more, all)
				}
			},
			"": func(rt *rapid.T) {
				for k, v := range model {
					if got, err := get(x, k); err != nil || string(got) != v {
						rt.Fatalf("%q: %q, %v", k, got, err)
					}
				}
				if b, n := x.usage(); int(b) != total() || n != len(model) || x.coming != 0 {
					rt.Fatal(b, n, x.coming)
				}
			},
		})
	})
}

// FuzzAbout: what stands behind an object's bytes is read, or refused, and written as it was.
func FuzzAbout(f *testing.F) {
	f.Add(appendAbout([]byte("abc"), &Object{Name: "x", Size: 3, Type: "t", Modified: time.Unix(0, 5)}))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := readAbout(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		if again := appendAbout(data[:o.Size:o.Size], &o); !bytes.Equal(again, data) {
			t.Errorf("%x became %x", data, again)
		}
	})
}
