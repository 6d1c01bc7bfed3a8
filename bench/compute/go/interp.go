//go:build wasip1

package main

type op byte

const (
	push op = iota
	load
	store
	add
	mul
	mod
	less
	jumpUnless
	jump
	halt
)

type instruction struct {
	op  op
	arg int32
}

// interpret runs a stack machine's loop n thousand times: a sum of products.
func interpret(n int) uint32 {
	code := []instruction{
		{push, 0}, {store, 0}, {push, 1}, {store, 1},
		{load, 0}, {push, int32(n) * 1000}, {less, 0}, {jumpUnless, 22},
		{load, 1}, {push, 31}, {mul, 0}, {load, 0}, {add, 0}, {push, 1000003}, {mod, 0}, {store, 1},
		{load, 0}, {push, 1}, {add, 0}, {store, 0}, {jump, 4}, {halt, 0},
		{load, 1}, {halt, 0},
	}
	var stack [16]int32
	var vars [4]int32
	sp, pc := 0, 0
	for {
		in := code[pc]
		pc++
		switch in.op {
		case push:
			stack[sp] = in.arg
			sp++
		case load:
			stack[sp] = vars[in.arg]
			sp++
		case store:
			sp--
			vars[in.arg] = stack[sp]
		case add:
			sp--
			stack[sp-1] += stack[sp]
		case mul:
			sp--
			stack[sp-1] *= stack[sp]
		case mod:
			sp--
			stack[sp-1] %= stack[sp]
		case less:
			sp--
			if stack[sp-1] < stack[sp] {
				stack[sp-1] = 1
			} else {
				stack[sp-1] = 0
			}
		case jumpUnless:
			sp--
			if stack[sp] == 0 {
				pc = int(in.arg)
			}
		case jump:
			pc = int(in.arg)
		case halt:
			return uint32(stack[0])
		}
	}
}
