// Package abi is the contract between the wasmactors host and its guests, and
// nothing else: envelopes, commands, failure codes, the module's description of
// itself, and the CBOR codec that both sides share.
//
// The package has no dependency, uses no reflection and compiles under TinyGo.
// The normative text is wasmactors.cddl beside it and docs/abi.md.
package abi
