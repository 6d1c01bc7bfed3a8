package router

import "github.com/wasmactors/wasmactors/host"

// Score is what the smallest mailbox goes by.
func Score(l host.Load, alive bool) int { return score(l, alive) }
