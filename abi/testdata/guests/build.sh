#!/bin/sh
# Builds the guests that follow docs/abi.md. Needs wat2wasm (wabt), clang and lld.
set -e
cd "$(dirname "$0")"
wat2wasm --debug-names echo.wat -o echo.wasm
wat2wasm --debug-names ../all_imports.wat -o ../all_imports.wasm
clang --target=wasm32 -nostdlib -O2 -Wl,--no-entry -Wl,--strip-debug -o counter.wasm counter.c
