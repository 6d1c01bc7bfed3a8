;; Its initialisation cannot be frozen, for it draws: it takes 32 MiB and touches them, then spins for some
;; 80 million units of fuel.
;; Built by build.sh.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\60\00\00\00\1f\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\67hoarder") ;; the description
  (func (export "wasmactors_init") (result i32)
    (local $n i32)
    (drop (call $random (i32.const 512) (i32.const 16)))
    (if (i32.lt_s (memory.grow (i32.const 512)) (i32.const 0)) (then (unreachable)))
    (memory.fill (i32.const 131072) (i32.const 7) (i32.const 33554432))
    (local.set $n (i32.const 20000000))
    (loop $again (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.const 16))
  (func (export "wasmactors_turn") (param i32) (result i32) (i32.const 0)))
