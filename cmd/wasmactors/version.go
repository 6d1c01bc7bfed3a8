package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/abi"
)

func versionCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print the versions of the program, the ABI and wazero",
		ArgsUsage: " ",
		Action:    func(*cli.Context) error { return printVersion(env) },
	}
}

func printVersion(env *environment) error {
	wazero := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				wazero = d.Version
			}
		}
	}
	fmt.Fprintf(env.stdout, "wasmactors %s, ABI %d, wazero %s, %s %s/%s\n", version, abi.Version, wazero, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
