package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dwarfline"
)

// bomb is a module whose line table announces 2^33 folders, none of which takes a byte.
func bomb() []byte {
	abbrev := []byte{1, 0x11, 0, 0x10, 0x17, 0, 0, 0}
	info := []byte{12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0}
	header := []byte{1, 1, 1, 0xfb, 14, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x20, 0, 0}
	lines := append([]byte{5, 0, 4, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(header)))...)
	lines = append(lines, header...)
	lines = append(binary.LittleEndian.AppendUint32(nil, uint32(len(lines))), lines...)
	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		name string
		body []byte
	}{{".debug_info", info}, {".debug_abbrev", abbrev}, {".debug_line", lines}} {
		body := append(append([]byte{byte(len(s.name))}, s.name...), s.body...)
		module = append(append(module, 0, byte(len(body))), body...)
	}
	return module
}

// The lines of a module are the same whether this process reads them or one of its own. One that asks for
// any amount of memory ends that process only, and one that is cut short is refused.
func TestLinesInAProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{exe, []string{linesArg}}
	code, err := os.ReadFile("../../host/debug/testdata/cart.wasm")
	if err != nil {
		t.Fatal(err)
	}
	here, err := LinesOf(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	there, err := p.lines(t.Context(), code, linesLimits(len(code)))
	if err != nil || !reflect.DeepEqual(here, there) {
		t.Errorf("in a process of its own: %v", err)
	}
	wrong := new(CompileError)
	begun := time.Now()
	if _, err := p.lines(t.Context(), bomb(), linesLimits(len(bomb()))); !errors.As(err, &wrong) || wrong.Key == "" {
		t.Errorf("a module that asks for much: %v after %v", err, time.Since(begun))
	}
	if _, err := p.lines(t.Context(), code[:len(code)/2], linesLimits(len(code))); err == nil || errors.As(err, &wrong) {
		t.Errorf("half a module: %v", err)
	}
	if _, err := p.lines(t.Context(), []byte("\x00asm\x01\x00\x00\x00"), linesLimits(8)); err == nil || !strings.Contains(err.Error(), dwarfline.ErrNone.Error()) {
		t.Errorf("a module without: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.lines(ctx, code, linesLimits(len(code))); err == nil {
		t.Error("it is read although the context has ended")
	}
}
