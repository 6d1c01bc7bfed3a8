// Package weak has one function that is tested well, one that is not, and one that no test reaches.
package weak

// Clamp is well tested.
func Clamp(v, low, high int) int {
	if v < low {
		return low
	}
	if v > high {
		return high
	}
	return v
}

// Log is called, and nobody looks.
func Log(to *[]string, text string) {
	*to = append(*to, text)
}

// Unused is not called.
func Unused(n int) bool { return n == 3 }

// Loop does not end without its statement.
func Loop(n int) (sum int) {
	for n > 0 {
		sum += n
		n--
	}
	return sum
}
