package grammar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = []struct {
	name   string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// ParseSize reads a size in bytes, such as 65536, 64KiB or 1.5MiB, as files
// write it.
func ParseSize(text string) (uint64, error) {
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			return scaled(n, u.factor, text, "a size such as 65536, 64KiB or 16MiB")
		}
	}
	return scaled(text, 1, text, "a size such as 65536, 64KiB or 16MiB")
}

// ParseCount reads a number, such as 1000, 10k or 500M.
func ParseCount(text string) (uint64, error) {
	const want = "a number such as 1000, 10k, 500M or 1G"
	for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			return scaled(n, factor, text, want)
		}
	}
	return scaled(text, 1, text, want)
}

func scaled(number string, factor float64, text, want string) (uint64, error) {
	number = strings.ReplaceAll(strings.TrimSpace(number), "_", "")
	if n, err := strconv.ParseUint(number, 10, 64); err == nil && factor == 1 {
		return n, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || v < 0 || strings.ContainsAny(number, "xXpPeE") {
		return 0, fmt.Errorf("%q is not %s", text, want)
	}
	v *= factor
	if v >= 1<<63 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	if v != math.Trunc(v) {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return uint64(v), nil
}

// ParseDuration reads a duration, such as 100ms, 1m30s or 0.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 100ms, 1.5s or 1m30s", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}
