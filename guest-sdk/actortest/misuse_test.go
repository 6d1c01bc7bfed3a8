//go:build !wasip1

package actortest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// recorder is a test that fails without failing this one.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.said = append(r.said, fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// fails runs f, which must fail its test with a text.
func fails(t *testing.T, want string, f func(testing.TB)) {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	if len(r.said) != 1 || !strings.Contains(r.said[0], want) {
		t.Errorf("the test has said %q, want %q", r.said, want)
	}
}

// onto is the same actor in another test.
func onto(a *actortest.Actor, t testing.TB) *actortest.Actor { return actortest.Onto(a, t) }
