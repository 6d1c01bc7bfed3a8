;; Its initialisation takes about four million units of fuel, then grows the memory by two pages and traps if it
;; may not. It answers nothing.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\60\00\00\00\1c\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\64echo") ;; the description
  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func (export "wasmactors_init") (result i32)
    (drop (call $random (i32.const 512) (i32.const 16)))
    (call $spin (i32.const 1000000))
    (if (i32.lt_s (memory.grow (i32.const 2)) (i32.const 0)) (then (unreachable)))
    (i32.const 16))
  (func (export "wasmactors_turn") (param i32) (result i32) (i32.const 0)))
