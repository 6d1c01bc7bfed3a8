//go:build tinygo

package actor

// recovers is false under TinyGo, whose panics print their text to standard output and
// trap: the host takes the text from there.
const recovers = false

func tell(any) {}

// warmPanic does nothing: TinyGo does not unwind.
func warmPanic() {}
