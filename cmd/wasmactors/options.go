package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/log"
	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/state"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/runtime"
)

// cacheFlags are shared by the commands that build or load.
func cacheFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cache-dir", EnvVars: []string{"WASMACTORS_CACHE_DIR"}, Usage: "keep built and compiled modules in `DIR` (default: wasmactors in the user's cache folder; \"none\" turns it off)"},
		&cli.StringFlag{Name: "cache-key", EnvVars: []string{"WASMACTORS_CACHE_KEY"}, Usage: "authenticate what is kept with the key in `FILE`, which is made if missing (default: wasmactors/cache.key in the user's configuration folder)"},
		&cli.StringFlag{Name: "cache-size", EnvVars: []string{"WASMACTORS_CACHE_SIZE"}, Usage: "keep at most `SIZE` there; the least recently used goes first (default: 1GiB)"},
	}
}

// bundleFlags are shared by the commands that open a bundle.
func bundleFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "compiler", Usage: "build Go guests with `NAME`: auto, go or tinygo (default: what the manifest says)"},
		envFlag(),
		&cli.StringSliceFlag{Name: "allow", Usage: "let the bundle reach outside of its own folder: `KIND=VALUE`, as check shows it, or KIND for all of a kind: " + kindsOfReach()},
		&cli.BoolFlag{Name: "no-build", Usage: "build nothing: refuse modules that are not .wasm files"},
		&cli.StringFlag{Name: "state", EnvVars: []string{"WASMACTORS_STATE"}, Usage: "let services keep their state in `DIR` (default: a folder for this bundle below the user's for state; \"none\" keeps nothing)"},
		&cli.BoolFlag{Name: "allow-cgo", Usage: "compile C and assembly of guests, which can include any file"},
	}, cacheFlags()...)
}

func envFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "env", Usage: "give the manifest the variable `NAME`, for ${NAME} in it: its value here, or that of NAME=value"}
}

func cacheDir(c *cli.Context) string {
	switch dir := c.String("cache-dir"); dir {
	case "none":
		return ""
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(base, "wasmactors")
	default:
		return dir
	}
}

func cacheSize(c *cli.Context) (int64, error) {
	text := c.String("cache-size")
	if text == "" {
		return bundle.DefaultCacheBytes, nil
	}
	n, err := bundle.ParseSize(text)
	if err != nil || n == 0 || n > 1<<60 {
		return 0, usage("--cache-size (or WASMACTORS_CACHE_SIZE): %q is not a size such as 500MiB or 2GiB", text)
	}
	return int64(n), nil
}

// stateDir says which folder the services of a bundle keep their state in, "" for none.
func stateDir(c *cli.Context) func(*bundle.Manifest) (string, error) {
	return func(m *bundle.Manifest) (string, error) {
		switch dir := c.String("state"); dir {
		case "none":
			return "", nil
		case "":
			dir, err := state.Default(m.File, m.Name)
			if err != nil {
				return "", usage("%w; --state names one, or none", err)
			}
			return dir, nil
		default:
			return filepath.Abs(dir)
		}
	}
}

// bundleOptions reads the flags for opening a bundle.
func bundleOptions(c *cli.Context, env *environment) (bundle.Options, error) {
	size, err := cacheSize(c)
	if err != nil {
		return bundle.Options{}, err
	}
	switch name := c.String("compiler"); name {
	case "", "auto", "go", "tinygo":
	default:
		return bundle.Options{}, usage("--compiler must be auto, go or tinygo, not %q", name)
	}
	allowed, err := permissions(c)
	if err != nil {
		return bundle.Options{}, err
	}
	env.consent = &consent{env: env, given: allowed, quiet: c.Bool("quiet"), busy: c.String("input") == "-"}
	return bundle.Options{
		Services: all.Kinds(), StateDir: stateDir(c), Log: warnings(c, env),
		CacheDir: cacheDir(c), CacheBytes: size, CacheKey: c.String("cache-key"), Compiler: c.String("compiler"),
		Engine:  func(cfg runtime.Config) runtime.Config { return cfg.WithLog(warnings(c, env)) },
		Allow:   env.consent.ask,
		NoBuild: c.Bool("no-build"), Cgo: c.Bool("allow-cgo"),
	}, nil
}

// warnings is a log of the engine's warnings on standard error, which looks like what the console prints: with --json each is an event.
func warnings(c *cli.Context, env *environment) *slog.Logger {
	switch {
	case c.Bool("quiet"):
		return slog.New(slog.DiscardHandler)
	case c.Bool("json"):
		o := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
			case a.Key == slog.TimeKey:
				return slog.Attr{}
			case a.Key == slog.MessageKey:
				a.Key = "text"
			}
			return a
		}}
		return slog.New(slog.NewJSONHandler(env.stderr, o)).With("event", "warning")
	}
	text := log.NewWithOptions(env.stderr, log.Options{ReportTimestamp: true, TimeFormat: "15:04:05.000", Level: log.WarnLevel})
	text.SetColorProfile(colours(env.terminal))
	return slog.New(text)
}

// variables are the variables of the manifest: those that --env gives, and no others.
func variables(c *cli.Context) (bundle.Variables, error) { return variablesOf(c.StringSlice("env")) }

// variablesOf are those that the values of --env give.
func variablesOf(flags []string) (bundle.Variables, error) {
	given := map[string]string{}
	for _, text := range flags {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			if value, ok = os.LookupEnv(name); !ok {
				return nil, usage("--env %s: there is no such variable here; --env %s=value gives it one", name, name)
			}
		}
		if name == "" {
			return nil, usage("--env %q: the name is missing", text)
		}
		given[name] = value
	}
	return func(name string) (string, bool) { v, ok := given[name]; return v, ok }, nil
}

// load reads a manifest; that the bundle does not exist is a usage error.
func load(c *cli.Context, path string) (*bundle.Manifest, error) {
	vars, err := variables(c)
	if err != nil {
		return nil, err
	}
	m, err := bundle.LoadWith(path, vars, all.Kinds()...)
	var ds bundle.Diagnostics
	if err != nil && !errors.As(err, &ds) {
		return nil, usage("%v", err)
	}
	return m, err
}

// durationFlag reads a duration that is not negative; 0 if it is not given.
func durationFlag(c *cli.Context, name string) (time.Duration, error) {
	text := c.String(name)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && strings.Contains(err.Error(), "missing unit"):
		return 0, usage("--%s: %q lacks a unit: %ss is seconds, %sm minutes", name, text, text, text)
	case err != nil:
		return 0, usage("--%s: %q is not a duration such as 500ms, 10s or 1h30m", name, text)
	case d <= 0:
		return 0, usage("--%s: %s is not more than 0", name, text)
	}
	return d, nil
}

// didYouMean is the candidate that is most like a name.
func didYouMean(name string, candidates []string) string {
	if s := grammar.Nearest(name, candidates); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}
