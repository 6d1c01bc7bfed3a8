package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/runtime"
)

// ErrNoBuild is returned for a module of sources where building is forbidden.
var ErrNoBuild = errors.New("building is forbidden here")

// ModuleError is an error about a module, with its place in the manifest.
func (m *Manifest) ModuleError(mod Module, err error) *ModuleError {
	return &ModuleError{Module: mod.Name, Err: err, File: m.File, Line: mod.line, Column: mod.column, Source: cmp.Or(mod.Wasm, mod.Go)}
}

// advice says what to do about a module that is refused.
func (e *ModuleError) advice() string {
	if key := e.limit(); key != "" {
		return fmt.Sprintf("modules.%s.limits.%s raises it", e.Module, key)
	}
	var quota *wasi.QuotaError
	if errors.As(e.Err, &quota) {
		return fmt.Sprintf("%s of the folder in modules.%s.dirs raises it", quota.What, e.Module)
	}
	text := e.Err.Error()
	for _, a := range foreign {
		if strings.Contains(text, a.sign) {
			return fmt.Sprintf("the file is %s: %s", e.Source, a.advice)
		}
	}
	var load *runtime.LoadError
	if errors.As(e.Err, &load) {
		return "the file is " + e.Source
	}
	return ""
}

// foreign are parts of errors by which modules made for other hosts are recognised, and what
// their users can do.
var foreign = []struct{ sign, advice string }{
	{`"env"."abort"`, "it comes from AssemblyScript: compile it with --use abort= so that it does not import env.abort, and see docs/abi.md for what else a guest needs"},
	{`"env"."seed"`, "it comes from AssemblyScript: compile it with --use seed="},
	{"wasi_unstable", "it was built for an older WASI: build it for wasip1 (wasi_snapshot_preview1)"},
	{`"gojs".`, "it was built with GOOS=js: build it with GOOS=wasip1 -buildmode=c-shared"},
	{"__wbindgen", "it was built with wasm-bindgen for browsers: build it for wasm32-wasip1 without"},
	{"wasi:", "it is a component: this host runs core modules, build it for wasip1"},
}

// limit is the key of the limit that the module has exceeded, or "".
func (e *ModuleError) limit() string {
	var l *runtime.LimitError
	var load *runtime.LoadError
	var f *abi.Failure
	var c *runtime.CompileError
	switch {
	case errors.As(e.Err, &l):
		return l.Key
	case errors.As(e.Err, &c):
		return c.Key
	case errors.As(e.Err, &load) && errors.As(load.Err, &f):
		return map[abi.FailureKind]string{
			abi.FailureFuel: "init-fuel", abi.FailureDeadline: "init-deadline", abi.FailureMemoryLimit: "memory", abi.FailureStackOverflow: "stack",
		}[f.Kind]
	}
	return ""
}
