//go:build tinygo

package actor

// unescaped does nothing under TinyGo, which decides otherwise what escapes.
func unescaped(v Encoder) Encoder { return v }
