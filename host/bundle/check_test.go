package bundle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// Check knows the services that a run knows: settings, grants, and what is wrong with them.
func TestCheckKnowsServices(t *testing.T) {
	var made []*lamp
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good": "wasmactors: 1\nname: a\nmodules: {m: {wasm: m.wasm}}\nservices: {lamp: {volts: 12}}\nactors: {x: {type: m/x, capabilities: {lamp: {rooms: [hall]}}}}\n",
		"bad":  "wasmactors: 1\nname: a\nmodules: {m: {wasm: m.wasm}}\nactors: {x: {type: m/x, capabilities: {lamp: {rooms: [cellar]}}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Check(context.Background(), dir, nil, Options{CacheDir: servicetest.CacheDir(), Services: []service.Kind{lampKind(&made)}})
		if err == nil || !strings.Contains(err.Error(), "m.wasm") { // there is none
			t.Errorf("%s: %v", name, err)
		}
		if known := !strings.Contains(err.Error(), "unknown key"); !known || strings.Contains(err.Error(), "there is none") != (name == "bad") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(made) > 0 {
		t.Error("a service was started")
	}
}
