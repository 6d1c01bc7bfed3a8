//go:build wasip1

package main

import (
	"slices"
	"sort"
)

type byName []string

func (s byName) Len() int           { return len(s) }
func (s byName) Less(i, j int) bool { return s[i] < s[j] }
func (s byName) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// sorting sorts n thousand numbers, and a tenth as many strings through
// sort.Interface.
func sorting(n int) uint32 {
	r, sum := random(1), uint32(0)
	numbers := make([]uint32, n*1000)
	for i := range numbers {
		numbers[i] = r.next()
	}
	names := make(byName, n*100)
	for i := range names {
		b := make([]byte, 4+r.next()%12)
		for j := range b {
			b[j] = 'a' + byte(r.next()%26)
		}
		names[i] = string(b)
	}
	slices.Sort(numbers)
	sort.Sort(names)
	for i := 0; i < len(numbers); i += 97 {
		sum = mix(sum, numbers[i])
	}
	for _, s := range names {
		sum = mix(sum, uint32(s[0])<<8|uint32(s[3]))
	}
	return sum
}
