//go:build never

package deps

import (
	_ "github.com/charmbracelet/log"
	_ "github.com/fxamacker/cbor/v2"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/tetratelabs/wazero"
	_ "github.com/urfave/cli/v2"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sys/unix"
	_ "pgregory.net/rapid"
	_ "github.com/wasmactors/wasmactors/abi"
)
