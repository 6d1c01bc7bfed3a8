//go:build race

package sandbox

// raceDetector takes address space many times what the program takes.
const raceDetector = true
