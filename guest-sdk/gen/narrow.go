package main

import (
	"fmt"
	"go/types"
)

// narrow names the fields whose range depends on the compiler: int and its like have 32
// bits with TinyGo, so the same message is read by one build of a guest and refused by another.
func narrow(structs []structType) (notes []string) {
	for i := range structs {
		for _, f := range structs[i].fields {
			if kind := machineWord(f.typ, map[types.Type]bool{}); kind != "" {
				notes = append(notes, fmt.Sprintf("%s.%s: %s has 32 bits with TinyGo, and larger numbers are refused there: use %s64 or %s32",
					structs[i].name, f.path, kind, kind, kind))
			}
		}
	}
	return notes
}

// machineWord is "int" or "uint" if t is made of one, not counting what has methods of
// its own or is another struct.
func machineWord(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	if named, ok := types.Unalias(t).(*types.Named); ok {
		if own, _ := codec(named); own || isTime(t) {
			return ""
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch u.Kind() {
		case types.Int:
			return "int"
		case types.Uint, types.Uintptr:
			return "uint"
		}
	case *types.Slice:
		return machineWord(u.Elem(), seen)
	case *types.Array:
		return machineWord(u.Elem(), seen)
	case *types.Pointer:
		return machineWord(u.Elem(), seen)
	case *types.Map:
		if k := machineWord(u.Key(), seen); k != "" {
			return k
		}
		return machineWord(u.Elem(), seen)
	}
	return ""
}
