//go:build race

package estimate_test

const raceEnabled = true
