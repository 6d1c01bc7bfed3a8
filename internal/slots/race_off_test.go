//go:build !race

package slots

const raceEnabled = false
