package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type six,tree

// six is the struct of six fields.
type six struct {
	ID     uint64
	Name   string
	Amount int64
	Price  float64
	Active bool
	Tags   []string
}

// tree is a message of skynet: a subtree to build, or what it has come to.
type tree struct {
	Leaves uint64
	Sum    uint64
}
