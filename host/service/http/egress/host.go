package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// names converts names of hosts in other scripts as browsers do.
var names = idna.Lookup

// Host is the one spelling of a name or of an address without brackets: in small letters, without a final dot, names in
// other scripts as browsers convert them. What parsers could understand differently is refused: escapes, zones, numbers in
// a host that is not an IPv4 address in its usual form.
func Host(h string) (string, error) {
	if h == "" {
		return "", errors.New("it has no host")
	}
	if strings.Contains(h, ":") {
		a, err := netip.ParseAddr(h)
		switch {
		case err != nil:
			return "", fmt.Errorf("%.80q is not an IPv6 address", h)
		case a.Zone() != "":
			return "", errors.New("an address with a zone is of this machine's links only")
		}
		return a.Unmap().String(), nil
	}
	if strings.Contains(h, "%") {
		return "", errors.New("its host has escapes")
	}
	if !ascii(h) {
		name, err := names.ToASCII(h)
		if err != nil {
			return "", fmt.Errorf("its host is not a name: %w", err)
		}
		h = name
	}
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if len(h) > 253 {
		return "", fmt.Errorf("its host has %d characters, at most 253", len(h))
	}
	var last string
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 {
			return "", errors.New("a part of its host has 1 to 63 characters")
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return "", fmt.Errorf("its host has the character %q", c)
			}
		}
		last = label
	}
	if numeric(last) {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return "", fmt.Errorf("%.80q ends with a number, so it is an IPv4 address, and that is written as four decimal numbers", h)
		}
		return a.String(), nil
	}
	return h, nil
}

// numeric reports whether a label is a number, for anybody: decimal, or hexadecimal.
func numeric(label string) bool {
	digits := label
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits = strings.TrimLeft(hex, "abcdef0123456789")
		return digits == ""
	}
	return strings.Trim(digits, "0123456789") == ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
