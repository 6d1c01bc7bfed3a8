// Package contract holds tests that need more than the package they are about may depend
// on: of the ABI (another codec, the engine, guests in other languages), and of the pages
// for readers (their code compiles, the map has every folder, every guarantee names a test that exists).
package contract
