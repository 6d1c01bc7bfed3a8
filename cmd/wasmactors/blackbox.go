package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// blackBoxFlags are the flags for crash files of commands that run a bundle.
func blackBoxFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "black-box", Usage: "keep the last turns of each guest, and write a crash file to the folder `DIR` when one fails (made if it is missing); wasmactors replay repeats it"},
		&cli.BoolFlag{Name: "with-module", Usage: "put the module into crash files, so that they can be repeated elsewhere"},
	}
}

var errWithModule = usage("--with-module is for run: what dev runs may have changed by the time of a failure")

// openBlackBox is the recorder that the flags ask for, instead of what the manifest says; nil if they ask for none. m is nil
// in dev.
func openBlackBox(c *cli.Context, env *environment, m *bundle.Manifest, o *bundle.Options) (*blackbox.Recorder, error) {
	dir, modules := c.String("black-box"), c.Bool("with-module")
	switch {
	case modules && m == nil:
		return nil, errWithModule
	case modules && dir == "" && m.Recorder == nil:
		return nil, usage("--with-module is for --black-box, or for a bundle that has the key recorder")
	}
	adjust := func(cfg blackbox.Config) blackbox.Config {
		cfg.Version, cfg.Failed = version, func(path string, err error) {
			env.note(oneLine(fmt.Sprintf("crash file %s: %v", path, err)))
		}
		if modules {
			from := *o
			cfg.Module = func(sum [32]byte) ([]byte, error) { return moduleOf(c.Context, m, from, sum) }
		}
		return cfg
	}
	if dir == "" {
		o.Recorder = adjust
		return nil, nil
	}
	o.NoRecorder = true
	r, err := blackbox.Open(adjust(blackbox.Config{Dir: dir}))
	if err != nil {
		return nil, usage("--black-box: %v", err)
	}
	return r, nil
}

// moduleOf is the module of a bundle with a hash.
func moduleOf(ctx context.Context, m *bundle.Manifest, o bundle.Options, sum [32]byte) ([]byte, error) {
	o.Progress = nil
	for i := range m.Modules {
		if code, _, err := bundle.Code(context.WithoutCancel(ctx), m.Modules[i], o); err == nil && sha256.Sum256(code) == sum {
			return code, nil
		}
	}
	return nil, fmt.Errorf("no module of the bundle has the SHA-256 %x: it has changed since it was loaded", sum)
}

// closeBlackBox writes what is left.
func closeBlackBox(r *blackbox.Recorder) {
	if r != nil {
		r.Close()
	}
}
