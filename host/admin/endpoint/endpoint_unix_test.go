//go:build unix

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// others is a user who is neither root nor the tests'.
const others = 54321

// TestMain is also another user's client: it says whether it gets an answer.
func TestMain(m *testing.M) {
	if path := os.Getenv("ENDPOINT_TEST_DIAL"); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(0)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		text, err := io.ReadAll(c)
		fmt.Printf("read %q %v\n", text, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runtimeDir is a short private folder as a session's.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestSocketIsTheUsersAlone(t *testing.T) {
	dir := runtimeDir(t)
	path, err := Path(42, "shop")
	if err != nil || path != filepath.Join(dir, "wasmactors", "42-shop.sock") {
		t.Fatal(path, err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for p, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Lstat(p); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", p, info.Mode(), err)
		}
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "listens there already") {
		t.Error(err)
	}
	places, err := List()
	if err != nil || len(places) != 1 || places[0] != (Place{42, "shop", path}) || Stale(path) {
		t.Error(places, err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(c); string(text) != "hello" {
		t.Error(text, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket is left behind")
	}
}

// A process that was killed leaves its socket; who comes next with the number replaces it.
func TestStaleSockets(t *testing.T) {
	runtimeDir(t)
	path, err := Path(42, "shop")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	raw.(*net.UnixListener).SetUnlinkOnClose(false)
	raw.Close()
	if !Stale(path) {
		t.Error("not stale")
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Error(err)
	}
}

func TestLongPathsSaySo(t *testing.T) {
	dir := runtimeDir(t)
	long := filepath.Join(dir, strings.Repeat("x", 90))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	if _, err := Path(42, "shop"); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "at most 103") {
		t.Error(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	path, err := Path(4194304, strings.Repeat("b", 255))
	if err != nil {
		t.Error("a long name of a bundle:", err)
	}
	if p, ok := parse(filepath.Base(path)); !ok || p.PID != 4194304 {
		t.Error(p, ok)
	}
}

// Folders that others own, can enter, or can put something into, are not used.
func TestFoldersThatAreNotTheUsersAlone(t *testing.T) {
	dir := runtimeDir(t)
	own := filepath.Join(dir, "wasmactors")
	fallen := filepath.Join(dir, fmt.Sprintf("wasmactors-%d", os.Geteuid()))
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := Path(1, "b")
	if err != nil || filepath.Dir(path) != fallen {
		t.Error("others can enter:", path, err)
	}
	if _, err := Listen(filepath.Join(own, "1-b.sock")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Error(err)
	}
	if err := os.Chmod(fallen, 0o711); err != nil {
		t.Fatal(err)
	}
	if path, err = Path(1, "b"); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Error(path, err)
	}
	if _, err := List(); err == nil {
		t.Error("a folder that others can enter is listed")
	}
	_ = os.RemoveAll(fallen)
	_ = os.RemoveAll(own)
	if err := os.Symlink("/tmp", own); err != nil {
		t.Fatal(err)
	}
	if path, err = Path(1, "b"); err != nil || filepath.Dir(path) != fallen {
		t.Error("a link:", path, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	_ = os.RemoveAll(fallen)
	if err := errors.Join(os.Mkdir(fallen, 0o700), os.Chown(fallen, others, others)); err != nil {
		t.Fatal(err)
	}
	if path, err = Path(1, "b"); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Error(path, err)
	}
}

// Another user cannot connect: not through the folder, not to the socket, and not if both
// were opened by mistake.
func TestAnotherUserCannotConnect(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := runtimeDir(t)
	path, err := Path(42, "shop")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "secret")
			_ = c.Close()
		}
	}()
	dial := func() string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		exe := filepath.Join(dir, "client")
		if err := os.Link(self, exe); err != nil && !errors.Is(err, os.ErrExist) {
			data, err := os.ReadFile(self)
			if err == nil {
				err = os.WriteFile(exe, data, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(exe)
		cmd.Dir = "/"
		cmd.Env = []string{"ENDPOINT_TEST_DIAL=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: others, Gid: others}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		open func() error
		want string
	}{
		{func() error { return nil }, "permission denied"},
		{func() error { return os.Chmod(filepath.Dir(path), 0o755) }, "permission denied"},
		{func() error { return os.Chmod(path, 0o666) }, `read ""`}, // by who it is
	}
	for i, s := range steps {
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		if got := dial(); !strings.Contains(got, s.want) {
			t.Errorf("step %d: %s, want %s", i, got, s.want)
		}
	}
}
