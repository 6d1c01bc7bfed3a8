// Package contract holds tests of the ABI that need more than package abi may
// depend on: another codec, the engine, and guests in other languages.
package contract
