package mapped

// marking reports whether the collector marks.
func marking() (is bool)
