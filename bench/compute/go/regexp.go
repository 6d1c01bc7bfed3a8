//go:build wasip1

package main

import (
	"regexp"
	"strings"
)

var patterns = []*regexp.Regexp{
	regexp.MustCompile(`([a-z0-9._]+)@([a-z0-9-]+\.)+[a-z]{2,}`),
	regexp.MustCompile(`\b(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\b`),
	regexp.MustCompile(`(?i)error|warn(ing)?:\s+.*timeout`),
}

// match searches a log of n times four lines with each pattern.
func match(n int) uint32 {
	lines := strings.Repeat(`2024-05-01 10.20.30.40 GET /index.html 200 "user.name@mail.example.com"
2024-05-01 192.168.1.1 POST /login 401 Warning: the upstream has hit a timeout
nothing of interest is to be found here, neither at the beginning nor at the end
2024-05-02 1.2.3 an address that is not one, nobody@nowhere, ERROR 7
`, n)
	sum := uint32(0)
	for _, p := range patterns {
		for _, at := range p.FindAllStringSubmatchIndex(lines, -1) {
			for _, i := range at {
				sum = mix(sum, uint32(i))
			}
		}
	}
	return sum
}
