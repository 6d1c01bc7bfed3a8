// Package sandbox turns WebAssembly modules into images, and images into
// instances that handle messages in atomic turns.
//
// An [Engine] loads modules. An [Image] is a module that has been checked,
// metered, initialised once and frozen; its instances start where the
// initialisation ended. An [Instance] belongs to one user at a time, who pushes
// envelopes into its inbox, runs them as turns and reads the commands that the
// turns have left:
//
//	img, err := engine.Load(ctx, wasm, sandbox.ImageConfig{Name: "bank"})
//	x, err := Get(img)
//	defer x.Put()
//	for x.Push(&envelope) { ... }
//	x.Run(&entry, &result)
//	for {
//		turn, ok, err := x.NextCommand(&command)
//		...
//	}
//
// Guests are hostile until checked: whatever is read from a guest's memory is
// validated first, and whatever a guest does ends as an [abi.Failure] of that
// instance, never as a failure of the host. docs/architecture/images.md states
// the guarantees.
package sandbox
