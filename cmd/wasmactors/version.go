package main

import (
	"encoding/json"
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
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("version takes no argument")
			}
			return printVersion(env, c.Bool("json"))
		},
	}
}

func printVersion(env *environment, asJSON bool) error {
	wazero := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				wazero = d.Version
			}
		}
	}
	if asJSON {
		text, err := json.Marshal(struct {
			Version string `json:"version"`
			ABI     int    `json:"abi"`
			Wazero  string `json:"wazero"`
			Go      string `json:"go"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
		}{version, abi.Version, wazero, runtime.Version(), runtime.GOOS, runtime.GOARCH})
		if err != nil {
			return err
		}
		return write(env.stdout, string(text)+"\n")
	}
	fmt.Fprintf(env.stdout, "wasmactors %s, ABI %d, wazero %s, %s %s/%s\n", version, abi.Version, wazero, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
