//go:build !race

package estimate_test

const raceEnabled = false
