package bundle

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// How numbers with units are written. The JSON Schema says the same.
const (
	sizeRule     = `^(0|[1-9][0-9_]*)(\.[0-9]+)? ?(B|kB|MB|GB|KiB|MiB|GiB)?$`
	countRule    = `^(0|[1-9][0-9_]*)(\.[0-9]+)?[kMG]?$`
	durationRule = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`
	intRule      = `^-?(0|[1-9][0-9_]*)$`

	sizeWant     = "write a size such as 65536, 64KiB or 16MiB"
	countWant    = "write a count such as 1000, 10k, 500M or 1G"
	durationWant = "write a duration such as 100ms, 1.5s, 1m30s or 0"
)

var (
	sizePattern     = regexp.MustCompile(sizeRule)
	countPattern    = regexp.MustCompile(countRule)
	durationPattern = regexp.MustCompile(durationRule)
	intPattern      = regexp.MustCompile(intRule)
)

var units = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"k": 1e3, "M": 1e6, "G": 1e9,
}

// parseSize reads a size in bytes, such as 65536, 64KiB or 1.5MiB.
func parseSize(text string) (uint64, error) { return parseScaled(text, sizePattern, "a size") }

// parseCount reads a number, such as 1000, 10k or 500M.
func parseCount(text string) (uint64, error) { return parseScaled(text, countPattern, "a count") }

func parseScaled(text string, rule *regexp.Regexp, what string) (uint64, error) {
	if !rule.MatchString(text) {
		return 0, fmt.Errorf("%q is not %s", text, what)
	}
	number := strings.TrimRight(text, " BkKMGi")
	factor := units[strings.TrimSpace(text[len(number):])]
	number = strings.ReplaceAll(number, "_", "")
	if n, err := strconv.ParseUint(number, 10, 64); err == nil && n < 1<<62 && factor == 1 {
		return n, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not %s", text, what)
	}
	v *= factor
	if v >= 1<<62 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	if v != math.Trunc(v) {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return uint64(v), nil
}

// parseDuration reads a duration, such as 100ms, 1m30s or 0; never negative.
func parseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if !durationPattern.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is too long a duration", text)
	}
	return d, nil
}

// parseInt reads a whole number.
func parseInt(text string) (int64, error) {
	if !intPattern.MatchString(text) {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
}

// sizeText is a size as a person writes it.
func sizeText(n float64) string {
	for _, u := range []struct {
		name   string
		factor float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.factor && n == math.Trunc(n/u.factor)*u.factor {
			return strconv.FormatFloat(n/u.factor, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
