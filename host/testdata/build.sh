#!/bin/sh
# Builds the hand-written guests of the tests. Needs wat2wasm (wabt).
set -e
cd "$(dirname "$0")"
for f in *.wat; do wat2wasm --debug-names "$f" -o "${f%.wat}.wasm"; done

# The puppet that batches: it imports next, and another last function asks for the envelopes.
batching=$(mktemp)
trap 'rm -f "$batching"' EXIT
sed -e 's/^(module$/(module (import "wasmactors" "next" (func $next (param i32) (result i32)))/' -e '/^  ;; one envelope a call$/,$d' puppet.wat >"$batching"
cat puppet_batching.tail >>"$batching"
wat2wasm --debug-names "$batching" -o puppet_batching.wasm

# The echo that does not batch: next is a function of its own, which says yes and no in turn.
sed -e 's/^  (import "wasmactors" "next".*$/  (global $more (mut i32) (i32.const 0))\
  (func $next (param i32) (result i32) (global.set $more (i32.xor (global.get $more) (i32.const 1))) (global.get $more))/' echo.wat >"$batching"
wat2wasm --debug-names "$batching" -o echo_single.wasm
