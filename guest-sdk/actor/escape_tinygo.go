//go:build tinygo

package actor

// unescaped does nothing under TinyGo, which has other rules for what escapes.
func unescaped(v Encoder) Encoder { return v }

func unescapedDecoder(d Decoder) Decoder { return d }
