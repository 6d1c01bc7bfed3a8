//go:build race

package instrcount_test

const raceDetector = true
