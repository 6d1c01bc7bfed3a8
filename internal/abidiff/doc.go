// Package abidiff holds tests of the ABI that need more than package abi may
// depend on: another CBOR codec, the engine, and guests in other languages.
package abidiff
