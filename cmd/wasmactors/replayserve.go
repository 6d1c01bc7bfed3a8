package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/runtime"
)

// checkServing says which flags do not go with --serve, or need it.
func checkServing(c *cli.Context, o rerun.Options) error {
	if !c.IsSet("serve") {
		for _, flag := range []string{"admin-token-file", "admin-read-token-file"} {
			if c.IsSet(flag) {
				return usage("--%s needs --serve", flag)
			}
		}
		return nil
	}
	for _, flag := range []string{"actor", "timeout"} {
		if c.IsSet(flag) {
			return usage("--%s does not go with --serve", flag)
		}
	}
	switch {
	case c.String("serve") == "":
		return usage("--serve needs an address such as 127.0.0.1:7777")
	case o.Other != nil:
		return usage("--serve shows what was recorded: the module of --module is none of the recording")
	case o.Until.Path != "" || o.Until.Failure:
		return usage("with --serve, --until is a time, or a duration since the recording's begin")
	}
	return nil
}

// serveRecording is replay --serve: it ends with a signal.
func serveRecording(c *cli.Context, env *environment, engine *runtime.Engine, name string, of *recorder.Recording, o rerun.Options) error {
	d := &adminDoor{explicit: true, cfg: admin.NewConfig().WithLog(warnings(c, env))}
	base := filepath.Base(name)
	path, err := endpoint.Path(os.Getpid(), endpointName(base))
	if err != nil {
		return usage("--serve: %v", err)
	}
	defer d.close()
	d.cfg = d.cfg.WithSocket(path)
	if err := d.tcp(c, c.String("serve"), path); err != nil {
		return err
	}
	show, err := rerun.OpenShow(c.Context, engine, of, o, o.Until.Time)
	if err != nil {
		return notRepeated(c, env, name, err)
	}
	defer show.Close()
	server, err := admin.ServeRecording(context.Background(), show, base, d.cfg)
	if err != nil {
		return usage("--serve: %v", err)
	}
	d.server = server
	if m := show.Now(); m.Difference != nil {
		env.note(oneLine(fmt.Sprintf("%s does not come out as recorded, and is shown up to there: %v", name, m.Difference)))
	}
	if err := d.tell(env, false); err != nil {
		_ = server.Close()
		return err
	}
	<-c.Context.Done()
	return server.Close()
}

// endpointName is the name by which a recording is found, as ps shows it.
func endpointName(file string) string {
	b := []byte("replay-" + file)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			b[i] = '-'
		}
	}
	return string(b[:min(len(b), 40)])
}
