package sql_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/sql"
)

// An actor in Go asks a database as a guest does.
func Example() {
	dir, err := os.MkdirTemp("", "sql")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sys, err := host.New(host.NewConfig("example"))
	if err != nil {
		panic(err)
	}
	running, err := sql.Service.Start(sys, &service.Env{Base: dir}, &sql.Settings{
		Databases: map[string]sql.DatabaseSettings{"main": {File: "main.db"}},
	})
	if err != nil {
		panic(err)
	}
	answers := make(chan string)
	props := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Sender == running.Ref() {
			var out struct {
				Rows [][]string `cbor:"rows"`
			}
			if err := m.Decode(&out); err != nil { // a reply that is an error, too
				panic(err)
			}
			answers <- fmt.Sprint(out.Rows)
			return nil
		}
		query := map[string]any{"sql": "select 'hello ' || ?", "params": []any{"world"}}
		return ctx.Ask(running.Ref(), []any{"query", query}, 1, time.Minute)
	})
	props = props.WithGrant("sql", sql.Service.Grant(sql.Grant{Databases: map[string]string{"main": "rw"}}, service.Bounds{}))
	ref, err := sys.Spawn("greeter", props)
	if err != nil {
		panic(err)
	}
	if err := sys.Tell(ref, "go"); err != nil {
		panic(err)
	}
	fmt.Println(<-answers)
	_ = sys.Close(context.Background())
	_ = running.Wait(context.Background())
	// Output: [[hello world]]
}
