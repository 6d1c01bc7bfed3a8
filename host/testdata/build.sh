#!/bin/sh
# Builds the hand-written guests of the tests. Needs wat2wasm (wabt).
set -e
cd "$(dirname "$0")"
for f in *.wat; do wat2wasm --debug-names "$f" -o "${f%.wat}.wasm"; done

# The puppet that batches: it imports next, and another last function asks for the envelopes.
batching=$(mktemp)
failing=$(mktemp)
trap 'rm -f "$batching" "$failing"' EXIT
batches() { # FILE: what batches
  sed -e 's/^(module/(module (import "wasmactors" "next" (func $next (param i32) (result i32)))/' -e '/^  ;; one envelope a call$/,$d' "$1"
  cat puppet_batching.tail
}
batches puppet.wat >"$batching"
wat2wasm --debug-names "$batching" -o puppet_batching.wasm

# The puppet that can also fail in other ways than by a trap, and the one that batches.
awk '
  /^\(module$/ { print "(module (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))"
    print "  (import \"wasmactors\" \"panic\" (func $panic (param i32 i32)))"; next }
  /^  \(func \$record / { while ((getline line <"failing.part") > 0) print line }
  { print }
  /const 254/ { print "    (if (i32.eq (local.get $kind) (i32.const 253)) (then (call $fail (local.get $flag))))" }
' puppet.wat >"$failing"
wat2wasm --debug-names "$failing" -o failing.wasm
batches "$failing" >"$batching"
wat2wasm --debug-names "$batching" -o failing_batching.wasm

# The echo that does not batch: next is a function of its own, which says yes and no in turn.
sed -e 's/^  (import "wasmactors" "next".*$/  (global $more (mut i32) (i32.const 0))\
  (func $next (param i32) (result i32) (global.set $more (i32.xor (global.get $more) (i32.const 1))) (global.get $more))/' echo.wat >"$batching"
wat2wasm --debug-names "$batching" -o echo_single.wasm
