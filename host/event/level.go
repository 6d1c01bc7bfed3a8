package event

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

var levelNames = [...]string{abi.LogDebug: "debug", abi.LogInfo: "info", abi.LogWarn: "warn", abi.LogError: "error"}

// LevelName is the name of a level of guests' logs; a level outside the range counts as the
// nearest one.
func LevelName(level int) string { return levelNames[min(max(level, 0), len(levelNames)-1)] }

// LevelNames are the names, the lowest first.
func LevelNames() []string { return slices.Clone(levelNames[:]) }

// ParseLevel is the inverse of LevelName.
func ParseLevel(name string) (level int, ok bool) {
	level = slices.Index(levelNames[:], name)
	return max(level, 0), level >= 0
}
