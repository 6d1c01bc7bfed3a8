package observe_test

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
)

// A pool is looked at, and one of its actors would be restarted.
func Example() {
	system, err := host.New(host.NewConfig("shop").WithManual())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = system.Close(context.Background()) }()
	o := observe.New(system, observe.Options{}.WithBundle("shop", "."))
	defer o.Close()
	worker := host.Func(func(*host.Context, host.Message) error { return nil })
	for _, name := range []string{"pool-1", "pool-2"} {
		if _, err := system.Spawn(name, worker); err != nil {
			fmt.Println(err)
		}
	}
	system.RunUntilIdle(1000)

	page, err := o.Actors(observe.Query{Select: observe.Select{Paths: []string{"/user/pool-*"}}})
	fmt.Println(page.Total, page.Actors[0].Path, page.Actors[0].State, err)
	outcome, err := o.Do(observe.Verb{Verb: observe.VerbRestart, DryRun: true, Select: observe.Select{Paths: []string{"/user/pool-2"}}})
	fmt.Println(outcome.Changed[0].Path, outcome.Changed[0].Did, err)
	// Output:
	// 2 /user/pool-1 running <nil>
	// /user/pool-2 is restarted <nil>
}
