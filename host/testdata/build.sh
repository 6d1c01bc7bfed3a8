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

# The puppet whose state goes over to other code, in two versions: flag 8 of a record makes the second one trap, and with flag 16 it leaves
# out the commands.
awk '
  /data \(i32.const 16\)/ { sub(/\\1e/, "\\2c") }
  /data \(i32.const 0x180\)/ { sub(/\\a3/, "\\a4"); sub(/puppet"/, "puppet\\65saves\\81\\66puppet\"") }
  /^  \(func \$envelope$/ { while ((getline line <"saving.part") > 0) print line }
  /call \$write \(local.get \$from\)/ { print "    (if (i32.eq (global.get $version) (i32.const 2))"
    print "      (then (if (i32.and (local.get $flag) (i32.const 8)) (then (unreachable))) (if (i32.and (local.get $flag) (i32.const 16)) (then (local.set $n (i32.const 0))))))" }
  { print }
  /local.set \$body \(call \$step \(local.get \$body\)\)/ { print "    (if (i32.eq (local.get $kind) (i32.const 12)) (then (return (call $save))))"
    print "    (if (i32.eq (local.get $kind) (i32.const 1)) (then (if (call $load (local.get $body)) (then (return)))))" }
' puppet.wat >"$failing"
batches "$failing" >"$batching"
wat2wasm --debug-names "$batching" -o saving1.wasm
sed -e 's|(i32.const 1)) ;; version$|(i32.const 2))|' "$batching" >"$failing"
wat2wasm --debug-names "$failing" -o saving2.wasm

# The echo that does not batch: next is a function of its own, which says yes and no in turn.
sed -e 's/^  (import "wasmactors" "next".*$/  (global $more (mut i32) (i32.const 0))\
  (func $next (param i32) (result i32) (global.set $more (i32.xor (global.get $more) (i32.const 1))) (global.get $more))/' echo.wat >"$batching"
wat2wasm --debug-names "$batching" -o echo_single.wasm
