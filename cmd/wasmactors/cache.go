package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/cache"
)

func cacheCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "cache",
		Usage:     "show cached builds and compilations, or remove some or all of them",
		ArgsUsage: " ",
		Description: "Nothing in the cache is ever out of date, so it never has to be cleared. It stays below --cache-size by\n" +
			"itself: what was not used for longest goes first, and nothing that a running process uses.\n\nExamples:\n\n" +
			"   wasmactors cache                            what there is: sizes, ages, uses\n" +
			"   wasmactors cache --older-than 7d            remove what was not used for a week\n" +
			"   wasmactors cache --shrink-to 100MiB         remove what was not used for longest\n" +
			"   wasmactors cache --clear                    remove everything",
		Flags: append(cacheFlags(),
			&cli.StringFlag{Name: "older-than", Usage: "remove what was last used longer ago than `AGE`, such as 12h, 7d or 4w"},
			&cli.StringFlag{Name: "shrink-to", Usage: "remove the least recently used until at most `SIZE` is left"},
			&cli.BoolFlag{Name: "clear", Usage: "remove everything, also what running processes use (they go on)"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("cache takes no argument")
			}
			return cacheAction(c, env)
		},
	}
}

// cachePart is the report on one folder of the cache.
type cachePart struct {
	Name     string      `json:"name"`
	Dir      string      `json:"dir"`
	Bytes    int64       `json:"bytes"`
	MaxBytes int64       `json:"max_bytes"`
	Entries  []cacheItem `json:"entries"`
}

type cacheItem struct {
	Key   string    `json:"key"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"last_used"`
	Uses  int       `json:"uses"`
	InUse bool      `json:"in_use"`
	About string    `json:"about,omitempty"`
}

func cacheAction(c *cli.Context, env *environment) error {
	dir := cacheDir(c)
	if dir == "" {
		return usage("there is no cache folder")
	}
	size, err := cacheSize(c)
	if err != nil {
		return err
	}
	change, err := cacheChange(c)
	if err != nil {
		return err
	}
	shares := bundle.CacheShares(size)
	parts := []cachePart{}
	for _, name := range []string{bundle.BuildCache, bundle.ImageCache} {
		path := filepath.Join(dir, name)
		part := cachePart{Name: name, Dir: path, MaxBytes: shares[name], Entries: []cacheItem{}}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			parts = append(parts, part)
			continue // do not create a cache only to show it
		}
		k, err := cache.Open(cache.Options{Dir: path, MaxBytes: shares[name], KeyFile: c.String("cache-key")})
		if err != nil {
			return err
		}
		if change != nil {
			removed, err := change(k, name)
			if err != nil {
				return err
			}
			if !c.Bool("json") {
				fmt.Fprintln(env.stdout, removedText(name, path, removed))
			}
		}
		items, err := k.Items()
		if err != nil {
			return err
		}
		for _, it := range items {
			part.Bytes += it.Bytes
			part.Entries = append(part.Entries, cacheItem(it))
		}
		parts = append(parts, part)
	}
	if c.Bool("json") {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(parts)
	}
	if change == nil {
		for _, p := range parts {
			showCache(env, p)
		}
	}
	return nil
}

// cacheChange is the change that the flags ask for; nil to only show the cache.
func cacheChange(c *cli.Context) (func(k *cache.Cache, name string) (cache.Removed, error), error) {
	age, to := c.String("older-than"), c.String("shrink-to")
	if c.Bool("clear") {
		if age != "" || to != "" {
			return nil, usage("--clear removes everything and cannot be combined with --older-than or --shrink-to")
		}
		return func(k *cache.Cache, _ string) (cache.Removed, error) { return k.Clear() }, nil
	}
	if age == "" && to == "" {
		return nil, nil
	}
	var before time.Time
	if age != "" {
		d, err := parseAge(age)
		if err != nil {
			return nil, usage("--older-than: %q is not an age such as 12h, 7d or 4w", age)
		}
		before = time.Now().Add(-d)
	}
	var shares map[string]int64
	if to != "" {
		n, err := bundle.ParseSize(to)
		if err != nil || n == 0 || n > 1<<60 {
			return nil, usage("--shrink-to: %q is not a size such as 100MiB", to)
		}
		shares = bundle.CacheShares(int64(n))
	}
	return func(k *cache.Cache, name string) (cache.Removed, error) {
		most := int64(1) << 62
		if shares != nil {
			most = shares[name]
		}
		return k.Shrink(most, before)
	}, nil
}

// parseAge reads a duration of Go's, or one in days or weeks.
func parseAge(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			var days float64
			if _, err := fmt.Sscanf(n+"\n", "%g\n", &days); err != nil || !(days >= 0 && days < 36500) {
				return 0, errors.New("not a number")
			}
			return time.Duration(days * float64(unit)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("negative")
	}
	return d, err
}

func removedText(name, path string, r cache.Removed) string {
	text := fmt.Sprintf("%s: removed %s, %s, from %s", name, entries(r.Entries), humanBytes(uint64(r.Bytes)), path)
	if r.InUse > 0 {
		text += fmt.Sprintf("; %s in use stay", entries(r.InUse))
	}
	return text
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func showCache(env *environment, p cachePart) {
	fmt.Fprintf(env.stdout, "%s: %s, %s of at most %s, in %s\n", p.Name, entries(len(p.Entries)), humanBytes(uint64(p.Bytes)), humanBytes(uint64(p.MaxBytes)), p.Dir)
	for _, it := range p.Entries {
		about := it.About
		if about == "" {
			about = "?"
		}
		state := ""
		if it.InUse {
			state = ", in use"
		}
		fmt.Fprintf(env.stdout, "  %s  %9s  %s, last %s ago%s  %s\n", it.Key[:12], humanBytes(uint64(it.Bytes)), plural(it.Uses, "use"), humanAge(time.Since(it.Used)), state, about)
	}
}

// humanAge is a duration in its largest unit.
func humanAge(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return plural(int(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return plural(int(d/time.Hour), "hour")
	case d >= 2*time.Minute:
		return plural(int(d/time.Minute), "minute")
	}
	return plural(int(max(d, 0)/time.Second), "second")
}
