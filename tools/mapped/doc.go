// Package mapped tests what guest-sdk/gen makes of structs: against another codec, with hostile input, and in WebAssembly, where
// guests of standard Go read and write structs by assembly.
package mapped
