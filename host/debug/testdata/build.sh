#!/bin/sh
# Builds the guests. Needs wat2wasm (wabt), clang and lld; the tests need only what it has built.
set -e
cd "$(dirname "$0")"
for f in *.wat; do wat2wasm --debug-names --enable-annotations "$f" -o "${f%.wat}.wasm"; done
clang --target=wasm32 -O1 -g -fdebug-compilation-dir=. -nostdlib -Wl,--no-entry cart.c -o cart.wasm
chmod 644 cart.wasm
