package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
)

func cacheCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "cache",
		Usage:     "show what is kept of builds and compilations, or clear it",
		ArgsUsage: " ",
		Description: "Examples:\n\n" +
			"   wasmactors cache\n" +
			"   wasmactors cache --clear",
		Flags: []cli.Flag{cacheDirFlag(), &cli.BoolFlag{Name: "clear", Usage: "remove everything"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("cache takes no argument")
			}
			dir := cacheDir(c)
			if dir == "" {
				return usage("there is no cache folder")
			}
			// Only what this program puts there: the folder itself may be anybody's.
			for _, part := range []string{"builds", "images"} {
				p := filepath.Join(dir, part)
				files, size, err := usageOf(p)
				if err != nil {
					return err
				}
				if c.Bool("clear") {
					if err := os.RemoveAll(p); err != nil {
						return err
					}
					fmt.Fprintf(env.stdout, "removed %s: %s, %s\n", p, plural(files, "file"), humanBytes(size))
					continue
				}
				fmt.Fprintf(env.stdout, "%s: %s, %s\n", p, plural(files, "file"), humanBytes(size))
			}
			return nil
		},
	}
}

func usageOf(dir string) (files int, size uint64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil {
			files++
			size += uint64(info.Size())
		}
		return nil
	})
	return files, size, err
}
