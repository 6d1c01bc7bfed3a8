package instrcount

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

func init() {
	if os.Getenv("INSTRCOUNT") != "" || os.Getenv("INSTRCOUNT_MODULE") != "" {
		runtime.LockOSThread()
	}
}

//go:noinline
func loop(n int) (sum int) {
	for i := range n {
		sum += i * i
	}
	return sum
}

var sink int

func TestMain(m *testing.M) {
	if module := os.Getenv("INSTRCOUNT_MODULE"); module != "" {
		payload, _ := hex.DecodeString(os.Getenv("INSTRCOUNT_PAYLOAD"))
		if err := serve(module, os.Getenv("INSTRCOUNT_TYPE"), payload); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("INSTRCOUNT") == "" {
		os.Exit(m.Run())
	}
	for _, n := range []int{1000, 1000, 1000, 2000, 2000, 2000} {
		_ = Mark()
		sink += loop(n)
		_ = Mark()
	}
}

func TestCount(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INSTRCOUNT=1")
	spans, err := Run(cmd)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || len(spans) != 6 {
		t.Fatalf("%v, %v", spans, err)
	}
	short, long := Least(spans[:3]), Least(spans[3:])
	if more := long.Total - short.Total; more < 2000 || more > 10_000 || more%1000 != 0 || short.Generated != 0 {
		t.Errorf("%+v", spans)
	}
	if _, err := Run(exec.Command("false")); err == nil {
		t.Error("a program that fails")
	}
}
