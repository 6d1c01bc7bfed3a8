package metrics

import (
	"runtime"
	"testing"
)

// What the process has of its own is a part of what is resident.
func TestAnonymousMemoryIsAPart(t *testing.T) {
	own, ok := anonymousBytes()
	if runtime.GOOS != "linux" {
		if ok {
			t.Error("a figure from nowhere")
		}
		return
	}
	all, _ := residentBytes()
	if !ok || own < 1<<20 || own > all+(64<<20) {
		t.Errorf("%g of %g bytes", own, all)
	}
}
