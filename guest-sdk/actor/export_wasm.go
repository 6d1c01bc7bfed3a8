//go:build wasip1

package actor

//go:wasmexport wasmactors_init
func wasmactorsInit() uint32 { return initialize() }
