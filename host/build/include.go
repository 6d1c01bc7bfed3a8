package build

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/wasmactors/wasmactors/internal/regular"
)

var (
	directive = pattern(`(?m)(?:^|[*/])[ \t]*(?:#|%:)[ \t]*(?:include|include_next|import|embed)\b[ \t]*(.*)$`)
	named     = pattern(`^(?:"([^"\n]+)"|<([^>\n]+)>)`)
	unseen    = pattern(`\.incbin|__has_include|__has_embed|\\\r?\n[ \t]*(?:#|include|embed)|\?\?=`)
)

// maxIncluded bounds the files that C sources include, and each in bytes.
const (
	mostIncluded = 10_000
	maxIncluded  = 64 << 20
)

// includes finds what C sources include, also what included files do. Names that are not found are the
// compiler's own headers. open says that some names depend on more than the sources, so that a
// build of them cannot be kept.
func includes(ctx context.Context, from []string, dirs []string) (found []string, open bool) {
	todo := slices.Clone(from)
	seen := map[string]bool{}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		text, err := regular.Read(ctx, path, maxIncluded)
		if err != nil || len(seen) > mostIncluded {
			return found, true
		}
		if !slices.Contains(from, path) {
			found = append(found, path)
		}
		if unseen().Match(text) {
			open = true
		}
		for _, m := range directive().FindAllSubmatch(text, -1) {
			n := named().FindSubmatch(m[1])
			if n == nil {
				open = true // a macro
				continue
			}
			name, places := string(n[1]), dirs
			if name == "" {
				name = string(n[2])
			} else {
				places = append([]string{filepath.Dir(path)}, dirs...)
			}
			if filepath.IsAbs(name) {
				places = []string{""}
			}
			for _, dir := range places {
				at := filepath.Join(dir, name)
				if exists(at) && !isDir(at) {
					todo = append(todo, at)
					break
				}
			}
		}
	}
	return found, open
}
