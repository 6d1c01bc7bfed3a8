package build

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// passed are the variables that tools get from the user's environment, or from the file that
// `go env -w` writes. None of them names a program to run. All others (GOFLAGS, GOENV,
// GOTOOLCHAIN, GOWORK, GOCACHEPROG, GOAUTH, CC, GIT_...) are not passed.
var passed = []string{
	"HOME", "USER", "LOGNAME", "LANG", "TZ", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
	"USERPROFILE", "LOCALAPPDATA", "APPDATA", "SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "PROGRAMDATA", "PATHEXT", "NUMBER_OF_PROCESSORS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE",
	"GOMAXPROCS", "TINYGOROOT",
}

// decided are the variables that are always set like this.
var decided = []string{
	"GOENV=off",                    // the file of go env -w is not read: see passed
	"GOFLAGS=-buildvcs=false",      // also for the go command that TinyGo starts
	"GOTOOLCHAIN=local",            // go.mod's toolchain line downloads and runs nothing
	"GOWORK=off",                   // a bundle's go.work is not used
	"GOVCS=*:off",                  // no git, hg, svn: modules come from a proxy or from the module cache
	"GO111MODULE=on",               //
	"GOTELEMETRY=off",              //
	"GIT_TERMINAL_PROMPT=0",        // no prompts
	"GIT_CONFIG_NOSYSTEM=1",        // if git is started after all,
	"GIT_CONFIG_GLOBAL=" + devnull, // then without anybody's hooks
}

const devnull = os.DevNull

// environment is the environment of tools. Of PATH only absolute folders outside of the
// sources remain, so that no program of the bundle's is run.
func environment(own []string, folders ...string) []string {
	file := map[string]string{}
	if path := goEnvFile(own); path != "" {
		file = readGoEnv(path)
	}
	var env []string
	for _, name := range passed {
		v := valueOf(own, name)
		if v == "" {
			v = file[name]
		}
		if v != "" {
			env = append(env, name+"="+v)
		}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(valueOf(own, "PATH")) {
		if filepath.IsAbs(dir) && !within(dir, folders...) {
			dirs = append(dirs, dir)
		}
	}
	env = append(env, "PATH="+strings.Join(dirs, string(filepath.ListSeparator)))
	return append(env, decided...)
}

// forTarget adds what depends on the compiler, and a folder for temporary files.
func (c *compiler) forTarget(tmp string) []string {
	env := append([]string(nil), c.env...)
	cgo := "CGO_ENABLED=0"
	if c.name == "go" {
		env = append(env, "GOOS=wasip1", "GOARCH=wasm")
	} else if c.o.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	env = append(env, cgo)
	if tmp == "" {
		tmp = os.TempDir()
	}
	return append(env, "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
}

// valueOf is the last value of a variable; on Windows the case of names does not matter.
func valueOf(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		k, v, ok := strings.Cut(env[i], "=")
		if ok && (k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name)) {
			return v
		}
	}
	return ""
}

// goEnvFile is the file of `go env -w`, the user's own.
func goEnvFile(own []string) string {
	switch path := valueOf(own, "GOENV"); path {
	case "off":
		return ""
	case "":
		dir, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "go", "env")
	default:
		return path
	}
}

// maxGoEnv bounds the file of `go env -w`, in bytes.
const maxGoEnv = 1 << 20

func readGoEnv(path string) map[string]string {
	values := map[string]string{}
	text, err := regular.ReadFile(path, maxGoEnv)
	if err != nil {
		return values
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		k, v, ok := strings.Cut(strings.TrimSpace(s.Text()), "=")
		if ok && !strings.HasPrefix(k, "#") {
			values[k] = v
		}
	}
	return values
}

// within reports whether a path lies in one of the folders, symbolic links followed.
func within(path string, folders ...string) bool {
	path = realPath(path)
	for _, f := range folders {
		if f == "" {
			continue
		}
		if rel, err := filepath.Rel(realPath(f), path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// realPath follows the symbolic links of a path, of which the end may not exist.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	rest := ""
	for at := path; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(at)
		if up == at {
			return path
		}
		rest, at = filepath.Join(filepath.Base(at), rest), up
	}
}

func trimRight(s string) string { return strings.TrimRight(s, "\n") }
