#!/bin/sh
# Builds the guests that follow docs/abi.md; the tests need only the results. Needs
# wabt, clang and lld.
set -e
cd "$(dirname "$0")"
wat2wasm -o echo.wasm echo.wat
clang --target=wasm32 -nostdlib -Os -Wall -Wextra -Wno-unused-parameter -Wl,--no-entry -Wl,--strip-all -o counter.wasm counter.c
chmod 644 counter.wasm
