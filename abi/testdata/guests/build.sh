#!/bin/sh
# Builds the guests that follow docs/abi.md; the tests need only the results. Needs
# wabt, clang and lld.
set -e
cd "$(dirname "$0")"
wat2wasm -o echo.wasm echo.wat
for guest in counter parent; do
  clang --target=wasm32 -nostdlib -Os -Wall -Wextra -Wno-unused-parameter -Wl,--no-entry -Wl,--strip-all -o $guest.wasm $guest.c
  chmod 644 $guest.wasm
done
