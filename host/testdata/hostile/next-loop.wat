;; tries: to ask for the next envelope forever
;; fails as: fuel
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (memory (export "memory") 2)
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1f\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\67hostile")
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $i i32) (local $n i32)
    ;; only a message (kind 0) sets it off; start and stop pass
    (if (i32.ne (i32.load8_u (i32.const 0x1001)) (i32.const 0))
      (then (drop (call $next (i32.const 0))) (i32.store8 (i32.const 0x8000) (i32.const 0xf6)) (return (i32.const 1))))
    (drop (call $next (i32.const 0)))
    (i32.store8 (i32.const 0x8000) (i32.const 0xf6))
    (loop $l (drop (call $next (i32.const 1))) (br $l))
    (unreachable)
  )
)
