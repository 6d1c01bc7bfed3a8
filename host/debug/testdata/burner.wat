;; Spends fuel until there is none: each step writes somewhere in 1 MiB. The start of the actor is handled.
(module
  (memory (export "memory") 32)
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\60\00\00\00\1e\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\66burner") ;; the description
  (global $turns (mut i32) (i32.const 0))
  (global $state (mut i64) (i64.const 88172645463325252))

  (func $random (result i64) ;; xorshift
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 13))))
    (global.set $state (i64.xor (global.get $state) (i64.shr_u (global.get $state) (i64.const 7))))
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 17))))
    (global.get $state))

  (func $burn (param $n i32)
    (loop $again
      (i64.store
        (i32.add (i32.const 0x100000) (i32.and (i32.wrap_i64 (call $random)) (i32.const 0xffff8)))
        (i64.extend_i32_u (local.get $n)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $again)))

  (func (export "wasmactors_init") (result i32) (i32.const 16))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (i32.store8 (i32.const 0x8000) (i32.const 0xf6)) ;; the end of the turn
    (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
    (if (i32.eq (global.get $turns) (i32.const 1)) (then (return (i32.const 1))))
    (call $burn (i32.const 0))
    (unreachable)))
