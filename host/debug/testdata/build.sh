#!/bin/sh
# Builds the guest. Needs wat2wasm (wabt); the tests need only what it has built.
set -e
cd "$(dirname "$0")"
for f in *.wat; do wat2wasm --debug-names --enable-annotations "$f" -o "${f%.wat}.wasm"; done
