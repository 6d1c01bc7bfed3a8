//go:build wasip1

package actor

//go:wasmexport wasmactors_init
func wasmactorsInit() uint32 { return initialize() }

//go:wasmexport wasmactors_turn
func wasmactorsTurn(inboxLen uint32) uint32 { return turn(inboxLen) }
