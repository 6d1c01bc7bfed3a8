//go:build wasip1

package main

import "math"

// matrix multiplies matrices of n by n.
func matrix(n int) uint32 {
	a, b, c := square(n), square(n), square(n)
	for i := range n {
		for j := range n {
			a[i][j] = float64(i*j%7) + 0.5
			b[i][j] = float64((i+j)%5) - 1.25
		}
	}
	for i, row := range c {
		for k, x := range a[i] {
			for j, y := range b[k] {
				row[j] += x * y
			}
		}
	}
	sum := uint32(0)
	for _, row := range c {
		for _, x := range row {
			sum = mix(sum, uint32(math.Float64bits(x)>>32))
		}
	}
	return sum
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}
