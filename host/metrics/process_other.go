//go:build !unix

package metrics

func cpuSeconds() (float64, bool)     { return 0, false }
func residentBytes() (float64, bool)  { return 0, false }
func anonymousBytes() (float64, bool) { return 0, false }

func descriptors() (open, most float64, ok bool) { return 0, 0, false }
