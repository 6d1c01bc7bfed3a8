package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestMain lets the test binary be another process that uses the cache.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CACHE_TEST_DIR"); dir != "" {
		os.Exit(otherProcess(dir, os.Getenv("CACHE_TEST_DO")))
	}
	code := m.Run()
	_ = os.RemoveAll(filepath.Dir(testKey))
	os.Exit(code)
}

// bodyOf is what belongs to a key: 300 KB.
func bodyOf(k Key) []byte { s := sha256.Sum256(k[:]); return bytes.Repeat(s[:], 10_000) }

func otherProcess(dir, do string) int {
	c, err := Open(Options{Dir: dir, MaxBytes: 1 << 20, KeyFile: testKey})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	switch do {
	case "churn": // until it is killed
		for i := 0; ; i++ {
			k := key(i % 4)
			_ = put(c, k, bodyOf(k))
			if got, err := get(c, k); err == nil && !bytes.Equal(got, bodyOf(k)) {
				fmt.Println("a wrong body")
				return 1
			}
			if i == 3 {
				fmt.Println("going")
			}
		}
	case "hold": // an entry, until it is killed
		if _, err := c.Use(key(1)); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("going")
		select {}
	case "full": // with a disk that takes no more than 100 KB
		err := limitFiles(100_000)
		if err == nil {
			err = put(c, key(1), bodyOf(key(1)))
		}
		if err == nil {
			fmt.Println("it was stored")
			return 1
		}
		if body, err := get(c, key(2)); err != nil || !bytes.Equal(body, bodyOf(key(2))) {
			fmt.Println("what is there cannot be used:", err)
			return 1
		}
		fmt.Println("going", err)
	}
	return 0
}

// start runs the test binary as another process and waits until it is going.
func start(t *testing.T, dir, do string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "CACHE_TEST_DIR="+dir, "CACHE_TEST_DO="+do, "CACHE_TEST_KEY="+testKey)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, _ := out.Read(line)
	if !bytes.HasPrefix(line[:n], []byte("going")) {
		t.Errorf("%s: %s", do, line[:n])
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() == 1 {
		t.Errorf("it has ended by itself: %v", err)
	}
}

// TestKilledProcesses kills processes in the midst of storing, reading and
// evicting, while others go on. What is found afterwards is whole or missing, no
// lock is left, and what was left is swept.
func TestKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	c := openTest(t, dir, 1<<20)
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 1))
	survivor := start(t, dir, "churn")
	for range 8 {
		cmd := start(t, dir, "churn")
		for range r.IntN(40) { // let it get somewhere; what is read meanwhile is right, too
			k := key(r.IntN(4))
			if got, err := get(c, k); err == nil && !bytes.Equal(got, bodyOf(k)) {
				t.Error("a wrong body")
			}
		}
		kill(t, cmd)
	}
	kill(t, survivor)
	for i := range 4 {
		k := key(i)
		if got, err := get(c, k); err == nil && !bytes.Equal(got, bodyOf(k)) || err != nil && !errors.Is(err, ErrMissing) {
			t.Errorf("entry %d: %v", i, err)
		}
		if err := put(c, k, bodyOf(k)); err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if items, _ := c.Items(); len(items) > 4 {
		t.Errorf("%d entries", len(items))
	} else {
		for _, it := range items {
			if it.InUse {
				t.Errorf("%+v", it)
			}
		}
	}
	names, err := os.ReadDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * leftover)
	for _, n := range names {
		if n.Name()[0] == 't' {
			_ = os.Chtimes(c.dir+"/"+n.Name(), past, past)
		}
	}
	if err := c.Trim(); err != nil {
		t.Fatal(err)
	}
	if names, _ = os.ReadDir(c.dir); len(names) > 4 {
		t.Errorf("left: %v", names)
	}
}

// TestAnotherProcessUsesIt: its entry is not evicted while it lives, and is once
// it was killed.
func TestAnotherProcessUsesIt(t *testing.T) {
	dir := t.TempDir()
	c := openTest(t, dir, 1<<20)
	if err := put(c, key(1), bodyOf(key(1))); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, dir, "hold")
	if done, err := c.Shrink(0, time.Time{}); err != nil || done.InUse != 1 || !has(c, key(1)) {
		t.Errorf("%+v %v", done, err)
	}
	kill(t, cmd)
	if done, err := c.Shrink(0, time.Time{}); err != nil || done.Entries != 1 || has(c, key(1)) {
		t.Errorf("%+v %v", done, err)
	}
}

// TestFullDisk: what cannot be written leaves nothing behind, and what is there
// can still be read.
func TestFullDisk(t *testing.T) {
	if err := limitFiles(-1); err != nil {
		t.Skip("files cannot be limited here:", err)
	}
	dir := t.TempDir()
	c := openTest(t, dir, 1<<20)
	if err := put(c, key(2), bodyOf(key(2))); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, dir, "full")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(c.dir)
	if err != nil || len(names) != 1 || names[0].Name() != filepath.Base(c.path(key(2))) {
		t.Errorf("left: %v, %v", names, err)
	}
}

// TestReadOnly: a cache that cannot be written serves what is in it.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	c := openTest(t, dir, 1<<20)
	k := key(1)
	if err := put(c, k, []byte("body")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{c.path(k), c.dir} {
		if err := os.Chmod(d, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(d, 0o700)
	}
	if err := os.Chmod(c.path(k)+"/"+usesFile, 0o400); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(c.dir + "/" + strconv.Itoa(os.Getpid())); err == nil {
		f.Close()
		t.Skip("this user may write anywhere")
	}
	c = openTest(t, dir, 1<<20)
	if body, err := get(c, k); err != nil || string(body) != "body" {
		t.Error(err)
	}
	if err := put(c, key(2), []byte("body")); err == nil {
		t.Error("stored")
	}
}
