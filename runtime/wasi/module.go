package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Module is the name under which guests import these functions.
const Module = "wasi_snapshot_preview1"

// Function describes one exported function.
type Function struct {
	Name    string
	Params  []api.ValueType
	Results []api.ValueType
}

// Functions lists every function of WASI preview 1; all are exported.
func Functions() []Function { panic("skeleton") }

// Instantiate puts the host module into r, once per wazero runtime.
func Instantiate(ctx context.Context, r wazero.Runtime) (api.Module, error) { panic("skeleton") }
