;; Walks about its memory in each turn. In the 7th it writes once where it should not, in the 12th it traps at the end.
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (import "wasmactors" "flush" (func $flush (param i32)))
  (import "wasmactors" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 4)
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\60\00\00\00\1e\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\66walker") ;; the description
  (data (i32.const 256) "\86\00\07\00\00\f6\41\f6")       ;; a send
  (data (i32.const 272) "on the way")
  (global (export "ledger") i32 (i32.const 0x30000))
  (global $turns (mut i32) (i32.const 0))
  (global $state (mut i64) (i64.const 88172645463325252))

  (func $random (result i64) ;; xorshift
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 13))))
    (global.set $state (i64.xor (global.get $state) (i64.shr_u (global.get $state) (i64.const 7))))
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 17))))
    (global.get $state))

  (func $write
    (i64.store
      (i32.add (i32.const 0x10000) (i32.shl (i32.and (i32.wrap_i64 (call $random)) (i32.const 0x3fff)) (i32.const 3)))
      (call $random)))

  (func $walk (param $depth i32) (result i32)
    (local $n i32)
    (local.set $n (i32.const 20))
    (loop $again
      (call $write)
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))
    (if (result i32) (local.get $depth)
      (then (i32.add (call $walk (i32.sub (local.get $depth) (i32.const 1))) (call $walk (i32.sub (local.get $depth) (i32.const 1)))))
      (else (i32.const 1))))

  (func $stray (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (if (i32.eq (local.get $n) (i32.const 3)) (then (i64.store (i32.const 0x30008) (i64.const 0x0bad0bad))))
      (br_if $again (local.get $n))))

  (func $act
    (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
    (i64.store (i32.const 0x30000) (i64.extend_i32_u (global.get $turns)))
    (i64.store (i32.const 0x30010) (i64.and (i64.extend_i32_u (i32.div_u (global.get $turns) (i32.const 3))) (i64.const 1))) ;; 0, 0, 1, 1, 1, 0, 0, 0, 1, ...
    (drop (call $walk (i32.const 4)))
    (if (i32.eq (global.get $turns) (i32.const 7)) (then (call $stray (i32.const 9))))
    (if (i32.eq (i32.and (global.get $turns) (i32.const 3)) (i32.const 2)) (then (call $log (i32.const 1) (i32.const 272) (i32.const 10))))
    (if (i32.eq (global.get $turns) (i32.const 9)) (then (drop (memory.grow (i32.const 1)))))
    (drop (call $walk (i32.const 3)))
    (i64.store (i32.const 0x8000) (i64.load (i32.const 256)))
    (call $flush (i32.const 8))
    (if (i32.eq (global.get $turns) (i32.const 12)) (then (unreachable))))

  (func (export "wasmactors_init") (result i32) (i32.const 16))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $n i32)
    (block $done
      (loop $more
        (br_if $done (i32.eqz (call $next (local.get $n))))
        (call $act)
        (i32.store8 (i32.const 0x8000) (i32.const 0xf6)) ;; the end of the turn
        (call $flush (i32.const 1))
        (br $more)))
    (local.get $n)))
