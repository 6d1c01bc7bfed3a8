package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/runtime"
)

// cacheFlags are shared by the commands that build or load.
func cacheFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cache-dir", EnvVars: []string{"WASMACTORS_CACHE_DIR"}, Usage: "keep built and compiled modules in `DIR` (default: wasmactors in the user's cache folder; \"none\" turns it off)"},
		&cli.StringFlag{Name: "cache-key", EnvVars: []string{"WASMACTORS_CACHE_KEY"}, Usage: "authenticate what is kept with the key in `FILE`, which is made if missing (default: wasmactors/cache.key in the user's configuration folder)"},
		&cli.StringFlag{Name: "cache-size", EnvVars: []string{"WASMACTORS_CACHE_SIZE"}, Usage: "keep at most `SIZE` there; what was not used for longest goes first (default: 1GiB)"},
	}
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

// bundleOptions are what the flags say about opening a bundle.
func bundleOptions(c *cli.Context, env *environment) (bundle.Options, error) {
	size, err := cacheSize(c)
	if err != nil {
		return bundle.Options{}, err
	}
	if err := checkCompiler(c.String("compiler")); err != nil {
		return bundle.Options{}, err
	}
	return bundle.Options{
		CacheDir: cacheDir(c), CacheBytes: size, CacheKey: c.String("cache-key"), Compiler: c.String("compiler"),
		Engine: func(cfg runtime.Config) runtime.Config { return cfg.WithLog(warnings(c, env)) },
	}, nil
}

// warnings writes what the engine has to say to standard error.
func warnings(c *cli.Context, env *environment) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	switch {
	case c.Bool("quiet"):
		return slog.New(slog.DiscardHandler)
	case c.Bool("json"):
		return slog.New(slog.NewJSONHandler(env.stderr, o))
	}
	return slog.New(slog.NewTextHandler(env.stderr, o))
}
