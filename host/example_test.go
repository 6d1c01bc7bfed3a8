package host_test

import (
	"context"
	"fmt"
	"os"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// An application that runs a guest and asks it something.
func Example() {
	ctx := context.Background()
	engine, _ := runtime.New(ctx, runtime.NewConfig())
	defer engine.Close(ctx)
	code, _ := os.ReadFile("testdata/echo.wasm")
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "echo"})
	if err != nil {
		panic(err)
	}
	sys, _ := host.New(host.NewConfig("app"))
	defer sys.Close(ctx)
	guest, _ := sys.Spawn("echo", host.Guest(image, "echo"))
	answer, err := sys.Ask(ctx, guest, map[string]int{"n": 42})
	if err != nil {
		panic(err)
	}
	var v map[string]int
	fmt.Println(answer.Decode(&v), v["n"], guest.Path())
	// Output: <nil> 42 /user/echo
}
