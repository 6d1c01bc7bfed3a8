// Package six has the struct of six fields that actors in Go send each other. Guests have their own copy, in guests/go.
package six

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type Six

// Six is a message of six fields.
type Six struct {
	ID     uint64
	Name   string
	Amount int64
	Price  float64
	Active bool
	Tags   []string
}

// Sample is one with a number.
func Sample(n int) *Six {
	return &Six{ID: uint64(n), Name: "a name of some length", Amount: -1234, Price: 12.5, Active: true, Tags: []string{"red", "green"}}
}
