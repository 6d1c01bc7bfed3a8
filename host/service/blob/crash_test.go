package blob

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	crand "crypto/rand"
)

// crashEnv names the folder of a child that is killed.
const crashEnv = "WASMACTORS_BLOB_CRASH"

// crashChild puts objects of its own and new ones under names that are there, until it is killed.
func crashChild() {
	s, err := openStore(os.Getenv(crashEnv), func(b []byte) { _, _ = crand.Read(b) }, time.Now, func(string, ...any) {})
	if err == nil {
		var x *space
		if x, err = s.space("test"); err == nil {
			fmt.Println("ready")
			base := time.Now().UnixNano()
			for worker := range int64(3) {
				go func() {
					for i := worker; ; i += 3 {
						version := base + i
						name := fmt.Sprint("n", worker, "-", i%20)
						if _, err := put(x, name, body(version), wide, condition{}, nil); err != nil {
							fmt.Println("error", err)
							os.Exit(1)
						}
						fmt.Println(name, version)
					}
				}()
			}
			select {}
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// body is the content of a version: of any length, and it says which one it is.
func body(version int64) []byte {
	return bytes.Repeat([]byte(strconv.FormatInt(version, 10)+" "), int(version%3000)+1)
}

// TestKill kills a process that writes, again and again: each name has an object that was put as a
// whole, and none that is older than what was acknowledged.
func TestKill(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	if v, err := strconv.Atoi(os.Getenv("WASMACTORS_LONG")); err == nil && v > 0 {
		rounds = v
	}
	dir := filepath.Join(t.TempDir(), "blobs")
	latest := map[string]int64{}
	n := 0
	for range rounds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			if line = strings.TrimSpace(line); line == "ready" {
				time.AfterFunc(time.Duration(20+rand.IntN(100))*time.Millisecond, func() { _ = cmd.Process.Kill() })
				continue
			}
			name, version, _ := strings.Cut(line, " ")
			v, err := strconv.ParseInt(version, 10, 64)
			if err != nil {
				t.Fatal(line)
			}
			latest[name] = max(latest[name], v)
			n++
		}
		_ = cmd.Wait()
		x := openTest(t, dir)
		sp, err := x.space("test")
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range latest {
			got, err := get(sp, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			first, _, _ := bytes.Cut(got, []byte(" "))
			version, _ := strconv.ParseInt(string(first), 10, 64)
			if !bytes.Equal(got, body(version)) || version < v {
				t.Errorf("%s has %d, not whole or older than %d", name, version, v)
			}
		}
		if left := files(t, filepath.Join(dir, "ns-test", newFolder)); len(left) != 0 {
			t.Errorf("left over: %v", left)
		}
		_ = x.close()
	}
	t.Logf("%d rounds, %d objects acknowledged", rounds, n)
}
