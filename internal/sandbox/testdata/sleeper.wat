;; Asks to wait for a nanosecond as often as the payload's first byte says, and answers with a send whose correlation
;; is how often that was refused. An envelope an entry.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\01\00\00\00\00\02\00\00\00\04\00\00\00\08\00\00\00\04\00\00\60\00\00\00\1f\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\67sleeper") ;; the description
  (data (i32.const 256) "\86\00\07\00\00\f6\41\f6")
  (data (i32.const 320) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00") ;; the subscription
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $left i32)
    (local $refused i32)
    (local.set $left (i32.load8_u (i32.add (i32.const 0x1ff) (local.get $len))))
    (loop $again
      (local.set $refused (i32.add (local.get $refused)
        (i32.ne (call $poll (i32.const 320) (i32.const 400) (i32.const 1) (i32.const 440)) (i32.const 0))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))
    (i64.store (i32.const 0x800) (i64.load (i32.const 256)))
    (i32.store8 (i32.const 0x803) (local.get $refused))
    (i32.const 8)))
