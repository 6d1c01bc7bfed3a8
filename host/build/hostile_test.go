//go:build unix

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// trap is a program that leaves a mark when it is run, under several names.
func trap(t *testing.T, dir string, names ...string) (mark string) {
	t.Helper()
	mark = filepath.Join(t.TempDir(), "mark")
	for _, n := range names {
		script(t, filepath.Join(dir, n), "echo \"$0 $*\" >>"+mark+"\nexit 1")
	}
	return mark
}

func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// plain is a guest of one file.
func plain(t *testing.T) string {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":  "module guest\n\ngo 1.23\n",
		"main.go": "package main\n\nimport \"guest/inner\"\n\nfunc main() { println(inner.N) }\n", "inner/n.go": "package inner\n\nconst N = 1\n",
	})
	return dir
}

// TestNothingOfAStrangersIsRun builds folders that try to have a program run, in
// environments that would let them.
func TestNothingOfAStrangersIsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	for _, c := range []struct {
		name string
		lay  func(t *testing.T, dir string) (mark string)
	}{
		{"version control", func(t *testing.T, dir string) string {
			bin := t.TempDir()
			mark := trap(t, bin, "git", "hg", "svn", "bzr", "fossil")
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			for _, d := range []string{".git", ".hg", ".svn", ".bzr"} {
				write(t, dir, map[string]string{d + "/config": "[core]\n\tfsmonitor = " + mark + "\n", d + "/HEAD": "ref: refs/heads/main\n"})
			}
			return mark
		}},
		{"GOFLAGS", func(t *testing.T, dir string) string {
			mark := trap(t, dir, "evil")
			t.Setenv("GOFLAGS", "-toolexec="+filepath.Join(dir, "evil"))
			return mark
		}},
		{"GOENV", func(t *testing.T, dir string) string {
			mark := trap(t, dir, "evil")
			write(t, dir, map[string]string{"go.env": "GOFLAGS=-toolexec=" + filepath.Join(dir, "evil") + "\nGOCACHEPROG=" + filepath.Join(dir, "evil") + "\nGOTOOLCHAIN=go1.99.0\n"})
			t.Setenv("GOENV", filepath.Join(dir, "go.env"))
			return mark
		}},
		{"GOCACHEPROG, CC, GOAUTH", func(t *testing.T, dir string) string {
			mark := trap(t, dir, "evil")
			for _, v := range []string{"GOCACHEPROG", "CC", "CXX", "AR", "GOAUTH", "GIT_SSH_COMMAND", "GO_EXTLINK_ENABLED"} {
				t.Setenv(v, filepath.Join(dir, "evil"))
			}
			t.Setenv("CGO_ENABLED", "1")
			return mark
		}},
		{"PATH", func(t *testing.T, dir string) string {
			mark := trap(t, dir, "go", "tinygo", "git", "gcc", "wasm-opt")
			t.Setenv("PATH", strings.Join([]string{dir, ".", "", os.Getenv("PATH")}, ":"))
			return mark
		}},
		{"go generate", func(t *testing.T, dir string) string {
			mark := trap(t, dir, "evil")
			write(t, dir, map[string]string{"gen.go": "package main\n\n//go:generate ./evil\n"})
			return mark
		}},
		{"go.work", func(t *testing.T, dir string) string {
			write(t, dir, map[string]string{"go.work": "go 1.99\n\ntoolchain go1.99.0\n\nuse /nowhere\n"})
			return filepath.Join(dir, "nothing")
		}},
		{"a profile", func(t *testing.T, dir string) string {
			write(t, dir, map[string]string{"default.pgo": "not a profile"})
			return filepath.Join(dir, "nothing")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOFLAGS", "")
			dir := plain(t)
			mark := c.lay(t, dir)
			r, err := Guest(context.Background(), dir, Options{Compiler: "go", Root: dir, CacheDir: t.TempDir()})
			if err != nil || r.Compiler != "go" {
				t.Errorf("%v", err)
			}
			if text, err := os.ReadFile(mark); err == nil {
				t.Errorf("this was run: %s", text)
			}
		})
	}
}

// A bundle that asks for another toolchain, or for modules from a repository, gets
// neither, and the user is told.
func TestNothingIsFetchedByProgram(t *testing.T) {
	for name, c := range map[string]struct{ mod, says string }{
		"toolchain":  {"module guest\n\ngo 1.99\n\ntoolchain go1.99.1\n", "no other toolchain is downloaded"},
		"repository": {"module guest\n\ngo 1.23\n\nrequire git.example.invalid/x.git v0.0.0-20200101000000-0123456789ab\n", "building"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := plain(t)
			write(t, dir, map[string]string{"go.mod": c.mod, "main.go": "package main\n\nimport _ \"git.example.invalid/x.git\"\n\nfunc main() {}\n"})
			bin := t.TempDir()
			mark := trap(t, bin, "git")
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			t.Setenv("GOPROXY", "direct")
			t.Setenv("GOFLAGS", "-insecure")
			_, err := Guest(context.Background(), dir, Options{Compiler: "go", Root: dir, Deadline: 20 * time.Second})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if text, err := os.ReadFile(mark); err == nil {
				t.Errorf("this was run: %s", text)
			}
		})
	}
}

// TestSourcesOutside: files that are not the bundle's do not become part of a guest
// unless somebody says so.
func TestSourcesOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	other := t.TempDir()
	write(t, other, map[string]string{
		"secret.text": "secret", "lib/go.mod": "module example.com/lib\n\ngo 1.23\n", "lib/lib.go": "package lib\n\nconst N = 1\n",
		"inner/n.go": "package inner\n\nconst N = 2\n", "extra.go": "package main\n\nvar extra = 1\n",
		"abi/go.mod": "module github.com/wasmactors/wasmactors/abi\n\ngo 1.23\n", "abi/abi.go": "package abi\n",
		"private/go.mod": "module private\n\ngo 1.23\n", "private/p.go": "package private\n",
		"vendor/example.com/v/v.go": "package v\n",
	})
	link := func(t *testing.T, from, to string) {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		lay  func(t *testing.T, dir string)
		says string // "": it is built
		hard bool   // refused by the go command itself, whatever is allowed
	}{
		{"nothing", func(t *testing.T, dir string) {}, "", false},
		{"a link to a source", func(t *testing.T, dir string) {
			link(t, filepath.Join(other, "extra.go"), filepath.Join(dir, "extra.go"))
		}, "extra.go (a link to ", false},
		{"a link to a package", func(t *testing.T, dir string) {
			os.RemoveAll(filepath.Join(dir, "inner"))
			link(t, filepath.Join(other, "inner"), filepath.Join(dir, "inner"))
		}, "inner", false},
		{"a replaced module", func(t *testing.T, dir string) {
			write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.23\n\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => " + other + "/lib\n",
				"lib.go": "package main\n\nimport _ \"example.com/lib\"\n"})
		}, filepath.Join(other, "lib"), false},
		{"an embedded link", func(t *testing.T, dir string) {
			link(t, filepath.Join(other, "secret.text"), filepath.Join(dir, "data.text"))
			write(t, dir, map[string]string{"e.go": "package main\n\nimport _ \"embed\"\n\n//go:embed data.text\nvar data string\n"})
		}, "cannot embed irregular file", true},
		{"embedded above", func(t *testing.T, dir string) {
			write(t, dir, map[string]string{"e.go": "package main\n\nimport _ \"embed\"\n\n//go:embed ../secret.text\nvar data string\n"})
		}, "invalid pattern syntax", true},
		{"the SDK elsewhere", func(t *testing.T, dir string) {
			write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.23\n\nrequire github.com/wasmactors/wasmactors/abi v0.1.0\n\nreplace github.com/wasmactors/wasmactors/abi => " + other + "/abi\n",
				"lib.go": "package main\n\nimport _ \"github.com/wasmactors/wasmactors/abi\"\n"})
		}, "", false},
		{"what claims to be the SDK", func(t *testing.T, dir string) {
			write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.23\n\nrequire github.com/wasmactors/wasmactors/abi v0.1.0\n\nreplace github.com/wasmactors/wasmactors/abi => " + other + "/private\n",
				"lib.go": "package main\n\nimport _ \"github.com/wasmactors/wasmactors/abi\"\n"})
		}, "private", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, cache := plain(t), t.TempDir()
			c.lay(t, dir)
			o := Options{Compiler: "go", Root: dir, CacheDir: cache}
			_, err := Guest(context.Background(), dir, o)
			var outside *OutsideError
			switch {
			case c.says == "":
				if err != nil {
					t.Fatal(err)
				}
				return
			case err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, &outside) == c.hard:
				t.Fatalf("%v\nwant %s", err, c.says)
			case c.hard:
				return
			}
			// Allowed, it is built; and found again only by who allows it.
			var asked []Outside
			o.Allow = func(found []Outside) error { asked = found; return nil }
			for _, cached := range []bool{false, true} {
				asked = nil
				r, err := Guest(context.Background(), dir, o)
				if err != nil || r.Cached != cached || len(asked) != 1 {
					t.Fatalf("%v, asked about %v", err, asked)
				}
			}
			no := errors.New("no")
			o.Allow = func([]Outside) error { return no }
			if _, err := Guest(context.Background(), dir, o); !errors.Is(err, no) {
				t.Errorf("kept, and not asked: %v", err)
			}
		})
	}
}

// A source that never ends does not hold up the host.
func TestPipesAreNoSources(t *testing.T) {
	dir := plain(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.go"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, c := range []string{"go", "tinygo"} {
		newFakeTinyGo(t)
		if _, err := Guest(context.Background(), dir, Options{Compiler: c, Root: dir}); !errors.Is(err, regular.ErrKind) || !strings.Contains(err.Error(), "pipe.go") {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, name := range []string{"inner/pipe.go", "inner/pipe_test.go", "tagged/pipe.go", "lib/pipe.s", "lib/go.mod", "vendor/modules.txt", "go.sum", "go.mod"} {
		dir := plain(t)
		write(t, dir, map[string]string{
			"t.go": "//go:build never\n\npackage main\n\nimport _ \"guest/tagged\"\n", "tagged/t.go": "package tagged\n",
			"lib/l.go": "package lib\n", "lib.go": "package main\n\nimport _ \"example.com/lib\"\n", "lib/go.mod": "module example.com/lib\n",
			"go.mod": "module guest\n\ngo 1.23\n\nrequire example.com/lib v1.0.0\n\nreplace (\n\texample.com/lib v1.0.0 => \"./lib\" // here\n)\n",
		})
		path := filepath.Join(dir, filepath.FromSlash(name))
		_ = os.Remove(path)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Guest(context.Background(), dir, Options{Compiler: "go", Root: dir}); !errors.Is(err, regular.ErrKind) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestModuleFilesAreNotShown: what the go command quotes in its errors about modules is the bundle's own.
func TestModuleFilesAreNotShown(t *testing.T) {
	private := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(private, []byte("sesame-key AAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "lib/go.mod", "vendor/modules.txt", "main.go", "inner/n.go"} {
		dir := plain(t)
		write(t, dir, map[string]string{"lib/go.mod": "module example.com/lib\n", "lib/l.go": "package lib\n", "vendor/modules.txt": ""})
		if name == "lib/go.mod" {
			write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.23\n\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ./lib\n", "l.go": "package main\n\nimport _ \"example.com/lib\"\n"})
		}
		if name != "vendor/modules.txt" {
			_ = os.RemoveAll(filepath.Join(dir, "vendor"))
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		_ = os.Remove(path)
		if err := os.Symlink(private, path); err != nil {
			t.Fatal(err)
		}
		var outside *OutsideError
		_, err := Guest(context.Background(), dir, Options{Compiler: "go", Root: dir})
		if !errors.As(err, &outside) || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		asked := 0
		o := Options{Compiler: "go", Root: dir, Allow: func(found []Outside) error { asked += len(found); return nil }}
		if _, err := Guest(context.Background(), dir, o); asked != 1 || name == "go.mod" && !strings.Contains(fmt.Sprint(err), "sesame") {
			t.Errorf("%s: asked about %d, %v", name, asked, err)
		}
	}
}

// TestDeadlineEndsAll: whatever a compiler has started ends with it.
func TestDeadlineEndsAll(t *testing.T) {
	bin := t.TempDir()
	pids := filepath.Join(bin, "pids")
	script(t, filepath.Join(bin, "tinygo"), `case "$1" in
version) echo tinygo version 0.41.0 ;;
env) echo /opt/tinygo ;;
build) sleep 1000 & echo $! >>`+pids+`; sleep 1000 & echo $! >>`+pids+`; wait ;;
esac`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	children := func() []string {
		text, _ := os.ReadFile(pids)
		return strings.Fields(string(text))
	}
	// On a busy machine the deadline passes before there is a child: it is as long as two need.
	for deadline := time.Second; len(children()) < 2; deadline *= 2 {
		if deadline > time.Minute {
			t.Fatalf("%d children within %v", len(children()), deadline/2)
		}
		if _, err := Guest(t.Context(), plain(t), Options{Compiler: "tinygo", Deadline: deadline}); !errors.Is(err, ErrDeadline) {
			t.Fatalf("the deadline: %v", err)
		}
	}
	most := len(children()) + 2
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan bool)
	go func() {
		defer close(watched)
		for len(children()) < most && ctx.Err() == nil { // until both children of the next build are there
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	_, err := Guest(ctx, plain(t), Options{Compiler: "tinygo", Deadline: 5 * time.Minute})
	cancel()
	<-watched
	if !errors.Is(err, context.Canceled) || len(children()) != most {
		t.Fatalf("cancelled: %v, with %d children of %d", err, len(children()), most)
	}
	for _, p := range children() {
		pid, _ := strconv.Atoi(p)
		gone := false
		for until := time.Now().Add(time.Minute); !gone && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			gone = syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
		}
		if !gone {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// The memory of each process is bounded.
func TestMemoryIsBounded(t *testing.T) {
	if exec.Command("sh", "-c", "ulimit -d").Run() != nil || exec.Command("uname").Run() != nil {
		t.Skip("no ulimit")
	}
	if out, _ := exec.Command("uname").Output(); strings.TrimSpace(string(out)) != "Linux" {
		t.Skip("only Linux can bound another process")
	}
	bin := t.TempDir()
	script(t, filepath.Join(bin, "tinygo"), `case "$1" in
version) echo tinygo version 0.41.0 ;;
env) echo /opt/tinygo ;;
build) sleep 0.2; sh -c "ulimit -d" >&2; exit 1 ;;
esac`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err := Guest(context.Background(), plain(t), Options{Compiler: "tinygo"})
	if want := strconv.Itoa(MaxProcessBytes / 1024); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s KiB", err, want)
	}
}

// TestEnvironment: what is passed, what is decided, and nothing else.
func TestEnvironment(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(conf, []byte("# mine\nGOPROXY=https://proxy.example\nGOPRIVATE=from.file\nGOFLAGS=-toolexec=x\nCC=evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := t.TempDir()
	env := environment([]string{"HOME=/home/ada", "GOENV=" + conf, "GOPRIVATE=from.env", "GOFLAGS=-toolexec=y", "LD_PRELOAD=/x.so", "GOTOOLCHAIN=auto", "GOWORK=/w", "GOEXPERIMENT=x",
		"GODEBUG=embedfollowsymlinks=1", "AWS_SECRET_ACCESS_KEY=k", "PATH=/usr/bin:.:bin:" + bundle + "/bin:/bin"}, bundle)
	for name, want := range map[string]string{
		"HOME": "/home/ada", "GOPROXY": "https://proxy.example", "GOPRIVATE": "from.env", "GOFLAGS": "-buildvcs=false", "GOENV": "off", "GOTOOLCHAIN": "local", "GOWORK": "off",
		"GOVCS": "*:off", "PATH": "/usr/bin:/bin", "CC": "", "LD_PRELOAD": "", "GODEBUG": "", "GOEXPERIMENT": "", "AWS_SECRET_ACCESS_KEY": "", "GOCACHEPROG": "",
	} {
		if got := valueOf(env, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Flags that a manifest may give cannot name a program or a file.
func TestFlags(t *testing.T) {
	for _, f := range []string{"-toolexec=/x", "-gcflags=-S", "-ldflags=-extld=/x", "-ldflags=-X a=b -extld /x", "-overlay=x.json", "-modfile=x", "-o=/etc/passwd", "-ldflags=-X a.b=`x`", "-exec=x", "-gcflags=-l\n-toolexec=x", ""} {
		for _, c := range []string{"go", "tinygo"} {
			if err := CheckFlag(c, f); !errors.Is(err, ErrFlag) {
				t.Errorf("%s %q: %v", c, f, err)
			}
		}
	}
	for c, flags := range map[string][]string{"go": {"-gcflags=-l", "-gcflags=all=-N -l", "-ldflags=-X main.v=1.2.3", "-ldflags=-s"}, "tinygo": {"-opt=2", "-gc=leaking", "-panic=trap", "-stack-size=64kb"}} {
		for _, f := range flags {
			if err := CheckFlag(c, f); err != nil {
				t.Error(err)
			}
		}
	}
	if err := CheckFlag("gcc", "-O2"); !errors.Is(err, ErrFlag) {
		t.Error(err)
	}
	for _, o := range []Options{{Compiler: "go", Tags: []string{"-x"}}, {Compiler: "go", Tags: []string{"a,b"}}, {Compiler: "go", Flags: map[string][]string{"go": {"-toolexec=x"}}}} {
		if _, err := Guest(context.Background(), plain(t), o); !errors.Is(err, ErrFlag) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
