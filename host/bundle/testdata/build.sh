#!/bin/sh
# Builds the guests of these tests. Needs wat2wasm (wabt).
set -e
cd "$(dirname "$0")"
for f in *.wat; do wat2wasm --debug-names "$f" -o "${f%.wat}.wasm"; done
