;; Programs to weigh metering with: wasmactors_turn(1) fib(27), (2) a loop, (3) a loop over memory.
;; Built by: wat2wasm --debug-names compute.wat -o compute.wasm
(module
  (memory (export "memory") 1)
  (func $fib (param $n i32) (result i32)
    (if (result i32) (i32.lt_s (local.get $n) (i32.const 2))
      (then (local.get $n))
      (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
  (func $loop (param $n i32) (result i32)
    (local $s i32)
    (loop $l
      (local.set $s (i32.add (i32.xor (local.get $s) (local.get $n)) (i32.const 7)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func $mem (param $n i32) (result i32)
    (local $i i32) (local $s i32)
    (loop $outer
      (local.set $i (i32.const 0))
      (loop $l
        (local.set $s (i32.add (local.get $s) (i32.load (local.get $i))))
        (i32.store (local.get $i) (local.get $s))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 65536))))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func (export "wasmactors_init") (result i32) (i32.const 0))
  (func (export "wasmactors_turn") (param $k i32) (result i32)
    (if (i32.eq (local.get $k) (i32.const 1)) (then (return (call $fib (i32.const 27)))))
    (if (i32.eq (local.get $k) (i32.const 2)) (then (return (call $loop (i32.const 1000000)))))
    (call $mem (i32.const 50))))
