#!/bin/sh
# Builds the C programs of the compute suite. Needs clang with the wasm32 target and wasm-ld.
set -e
cd "$(dirname "$0")"
objects=$(mktemp -d)
for f in *.c; do
  clang --target=wasm32 -nostdlib -ffreestanding -fno-builtin -O2 -Wall -Wno-parentheses -c "$f" -o "$objects/${f%.c}.o"
done
wasm-ld --no-entry -z stack-size=65536 "$objects"/*.o -o suite.wasm
rm -r "$objects"
