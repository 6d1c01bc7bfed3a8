//go:build tinygo

package actor

// report does nothing under TinyGo, whose panics print their text to standard
// error and trap: the host takes the text from there.
func report() {}

// warmPanic does nothing: TinyGo does not unwind.
func warmPanic() {}
