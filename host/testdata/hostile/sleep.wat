;; tries: to sleep for an hour, again and again
;; fails as: guest_panic
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1f\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\67hostile")
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $i i32) (local $n i32)
    ;; only a message (kind 0) sets it off; start and stop pass
    (if (i32.ne (i32.load8_u (i32.const 0x1001)) (i32.const 0)) (then (return (i32.const 0))))
    (i32.store (i32.const 0x200) (i32.const 0))
    (i64.store (i32.const 0x218) (i64.const 3600000000000))
    (loop $l (drop (call $poll (i32.const 0x200) (i32.const 0x300) (i32.const 1) (i32.const 0x400))) (br $l))
    (unreachable)
  )
)
