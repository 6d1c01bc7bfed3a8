package blob

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

func keyed(life abi.Ref, number, settled uint64) *once.Request {
	return &once.Request{Life: life, Effect: &host.Effect{Key: [16]byte{byte(life), byte(number), byte(number >> 8)}, Number: number, Settled: settled}}
}

// putOnce is put as the provider does it.
func putOnce(x *space, name, data string, r *once.Request) (host.Raw, error) {
	if done := x.doneBefore(r); done != nil {
		return done.answer(), nil
	}
	w, err := x.create(name, "", wide, condition{}, nil)
	if err != nil {
		return nil, err
	}
	defer w.abandon()
	w.once = r
	if _, err := w.Write([]byte(data)); err != nil {
		return nil, err
	}
	o, err := w.publish()
	if err != nil {
		return nil, err
	}
	return answer(&o, nil, host.Ref{}), nil
}

func copyFolder(t testing.TB, from string) string {
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestEveryCrashOfAChange: the process is killed between any two steps of a change, and the change asked for again. It is made once, and
// what others have put since stays. Without the keys, or when it is not finished at the start, it is not so.
func TestEveryCrashOfAChange(t *testing.T) {
	for _, mutant := range []string{"", "no keys", "not finished"} {
		wrong, crashes := 0, 0
		for _, removes := range []bool{false, true} {
			dir := t.TempDir()
			s := openTest(t, dir)
			x, err := s.space("test")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := putOnce(x, "a", "first", keyed(7, 1, 1)); err != nil {
				t.Fatal(err)
			}
			var copies []string
			kill := func() { copies = append(copies, copyFolder(t, dir)) }
			kill()
			s.step = kill
			r := keyed(7, 2, 1)
			var want host.Raw
			if removes {
				if existed, err := x.removeOnce("a", condition{}, r, 1<<30); !existed || err != nil {
					t.Fatal(existed, err)
				}
			} else if want, err = putOnce(x, "a", "second", r); err != nil {
				t.Fatal(err)
			}
			s.step = nil
			kill()
			_ = s.close()
			for i, at := range copies {
				if mutant == "no keys" {
					_ = os.RemoveAll(filepath.Join(at, "ns-test", keysFolder))
				}
				if mutant == "not finished" {
					_ = os.RemoveAll(filepath.Join(at, "ns-test", newFolder))
				}
				s := openTest(t, at)
				x, err := s.space("test")
				if err != nil {
					t.Fatal(err)
				}
				before, _ := x.stat("a")
				done := removes && before.Size == 0 || before.Size == int64(len("second"))
				if done { // somebody else comes first
					if _, err := put(x, "a", []byte("third"), wide, condition{}, nil); err != nil {
						t.Fatal(err)
					}
				}
				bad := ""
				if removes {
					existed, err := x.removeOnce("a", condition{}, r, 1<<30)
					if !existed || err != nil {
						bad = fmt.Sprint("it answers ", existed, err)
					}
				} else {
					is, err := putOnce(x, "a", "second", r)
					if err != nil || done && !bytes.Equal(is, want) {
						bad = fmt.Sprintf("it answers %x, not %x, %v", is, want, err)
					}
				}
				data, err := get(x, "a")
				switch {
				case done && string(data) != "third":
					bad += fmt.Sprintf(", and what came after it is gone: %q %v", data, err)
				case !done && !removes && string(data) != "second", !done && removes && err == nil:
					bad += fmt.Sprintf(", and it is not done: %q %v", data, err)
				}
				if crashes++; bad != "" {
					if wrong++; mutant == "" {
						t.Errorf("removes %v, step %d: %s", removes, i, bad)
					}
				}
				_ = s.close()
			}
		}
		if t.Logf("%d crashes, %d wrong (%q)", crashes, wrong, mutant); crashes < 10 || mutant != "" && wrong == 0 {
			t.Errorf("%q: it makes no difference", mutant)
		}
	}
}

// TestChangesThatFail: a change that could not be made is not made later.
func TestChangesThatFail(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	x, _ := s.space("test")
	if _, err := putOnce(x, "a", "first", nil); err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(dir, "ns-test", objectFolder)
	s.step = func() { _ = os.Rename(objects, objects+"-away") }
	if _, err := putOnce(x, "a", "second", keyed(7, 1, 1)); service.CodeOf(err) != service.Unavailable {
		t.Fatal(err)
	}
	s.step = nil
	if err := os.Rename(objects+"-away", objects); err != nil {
		t.Fatal(err)
	}
	if len(x.keys.of) != 0 || x.keys.bytes != 0 {
		t.Errorf("%+v is kept", x.keys)
	}
	if _, err := putOnce(x, "a", "third", nil); err != nil {
		t.Fatal(err)
	}
	_ = s.close()
	x = openSpace(t, dir)
	if data, err := get(x, "a"); string(data) != "third" {
		t.Errorf("%q %v", data, err)
	}
}

// TestKeptKeysAreBounded: what is settled, and what is old, goes; of one life there is not more than a number, of all not more than a part of
// the quota.
func TestKeptKeysAreBounded(t *testing.T) {
	dir := t.TempDir()
	clock := time.Unix(1e9, 0)
	s, err := openStore(dir, func(b []byte) { _, _ = rand.Read(b) }, func() time.Time { return clock }, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	x, err := s.space("test")
	if err != nil {
		t.Fatal(err)
	}
	remove := func(r *once.Request, quota int64) error {
		if _, err := put(x, "a", nil, wide, condition{}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := x.removeOnce("a", condition{}, r, quota)
		return err
	}
	for n := uint64(1); n <= 5; n++ {
		if err := remove(keyed(7, n, max(n, 2)-1), 1<<30); err != nil || len(x.keys.of[7]) > 2 {
			t.Fatal(err, len(x.keys.of[7]))
		}
	}
	for n := uint64(100); len(x.keys.of[8]) < once.MostOpen; n++ {
		list := append(x.keys.of[8], once.Kept{Number: n, Key: [16]byte{1}, At: clock.UnixNano(), Answer: (&change{Object: Object{Name: "x", Modified: clock}}).encode()})
		x.setKeys(8, list)
	}
	if err := remove(keyed(8, 5000, 1), 1<<30); service.CodeOf(err) != service.Busy {
		t.Error(err)
	}
	if err := remove(keyed(8, 5000, 5000), 1<<30); err != nil || len(x.keys.of[8]) != 1 {
		t.Error(err, len(x.keys.of[8]))
	}
	life := abi.Ref(1000)
	for ; life < 2000; life++ {
		if err = remove(keyed(life, 1, 1), 1<<20); err != nil {
			break
		}
	}
	if service.CodeOf(err) != service.Quota || x.keys.bytes > leastOfKeys || life < 1200 {
		t.Errorf("%d lives, %d bytes: %v", life-1000, x.keys.bytes, err)
	}
	clock = clock.Add(once.Keep + sweepEvery)
	if err := remove(keyed(life, 1, 1), 1<<20); err != nil || len(x.keys.of) != 1 || x.keys.bytes != perLife {
		t.Errorf("%v, %d lives, %d bytes", err, len(x.keys.of), x.keys.bytes)
	}
	names, _ := os.ReadDir(filepath.Join(dir, "ns-test", keysFolder))
	if len(names) != 1 {
		t.Errorf("%d files", len(names))
	}
}

// TestDamagedKeys: keys that have changed are found.
func TestDamagedKeys(t *testing.T) {
	list := []once.Kept{{Number: 3, Key: [16]byte{1}, At: 7, Answer: (&change{Object: Object{Name: "x", Modified: time.Unix(1, 0)}, File: "00112233445566778899aabbccddeeff"}).encode()}}
	good := encodeKeys(list)
	if got, err := decodeKeys(good); err != nil || fmt.Sprint(got) != fmt.Sprint(list) {
		t.Fatal(got, err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		if _, err := decodeKeys(bad); err == nil {
			t.Errorf("byte %d", i)
		}
	}
	dir := t.TempDir()
	s := openTest(t, dir)
	x, _ := s.space("test")
	if _, err := putOnce(x, "a", "first", keyed(7, 1, 1)); err != nil {
		t.Fatal(err)
	}
	_ = s.close()
	file := filepath.Join(dir, "ns-test", keysFolder, fmt.Sprintf("%016x", 7))
	if err := os.WriteFile(file, good[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir)
	defer s.close()
	if _, err := s.space("test"); err == nil {
		t.Error("it is opened")
	}
}

// FuzzKeys: what is read is what was written, or refused.
func FuzzKeys(f *testing.F) {
	c := change{Object: Object{Name: "x", Modified: time.Unix(1, 0)}, File: "00112233445566778899aabbccddeeff"}
	f.Add(encodeKeys([]once.Kept{{Number: 3, Answer: c.encode()}}), c.encode())
	f.Add([]byte(keysMagic), []byte{0})
	f.Fuzz(func(t *testing.T, file, b []byte) {
		if list, err := decodeKeys(file); err == nil && !bytes.Equal(encodeKeys(list), file) {
			t.Errorf("%x", file)
		}
		if c, err := decodeChange(b); err == nil {
			if again, err := decodeChange(c.encode()); err != nil || again != c {
				t.Errorf("%+v, %+v, %v", c, again, err)
			}
		}
	})
}
