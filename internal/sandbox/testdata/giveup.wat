;; Guests of other languages give up with unreachable, and say why before. The payload's first byte says how:
;; 1 as TinyGo panics, on stdout; 2 as its runtime does; 3 as an assertion of C does, on stderr; 4 without a word;
;; 5 as TinyGo does when it was refused memory; 6 it prints what TinyGo prints and goes on; 7 it prints to stdout
;; and gives up. With a size of 1 of the environment the initialisation gives up as 1 does.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $env (param i32 i32) (result i32)))
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\01\00\00\00\00\04\00\00\00\04\00\00\00\08\00\00\00\04\00\00\60\00\00\00\1e\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\66giveup")
  (data (i32.const 0x100) "panic: the books do not agree\n")
  (data (i32.const 0x140) "panic: runtime error at 0x000012ab: index out of range\n")
  (data (i32.const 0x180) "first\nAssertion failed: sum == 0 (ledger.c: book: 12)\n")
  (data (i32.const 0x1c0) "panic: runtime error at 0x00000f00: out of memory\n")
  (data (i32.const 0x200) "hello\n")
  (func $say (param $fd i32) (param $at i32) (param $n i32)
    (i32.store (i32.const 0x80) (local.get $at))
    (i32.store (i32.const 0x84) (local.get $n))
    (drop (call $write (local.get $fd) (i32.const 0x80) (i32.const 1) (i32.const 0x88))))
  (func (export "wasmactors_init") (result i32)
    (drop (call $env (i32.const 0x90) (i32.const 0x94)))
    (if (i32.eq (i32.load (i32.const 0x90)) (i32.const 1))
      (then (call $say (i32.const 1) (i32.const 0x100) (i32.const 30)) (unreachable)))
    (i32.const 16))
  (func $act (param $what i32)
    (if (i32.eq (local.get $what) (i32.const 1)) (then (call $say (i32.const 1) (i32.const 0x100) (i32.const 30)) (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 2)) (then (call $say (i32.const 1) (i32.const 0x140) (i32.const 55)) (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 3)) (then (call $say (i32.const 2) (i32.const 0x180) (i32.const 54)) (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 4)) (then (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 5)) (then
      (drop (memory.grow (i32.const 60000)))
      (call $say (i32.const 1) (i32.const 0x1c0) (i32.const 50))
      (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 6)) (then
      (call $say (i32.const 1) (i32.const 0x100) (i32.const 30))
      (call $say (i32.const 2) (i32.const 0x180) (i32.const 54))))
    (if (i32.eq (local.get $what) (i32.const 7)) (then (call $say (i32.const 1) (i32.const 0x200) (i32.const 6)) (unreachable))))
  ;; Envelopes are those of the test: 86 00 01 18 2a 00 f6 41 and a byte.
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $in i32) (local $out i32)
    (local.set $in (i32.const 0x400))
    (local.set $out (i32.const 0x800))
    (loop $more
      (if (call $next (i32.sub (local.get $out) (i32.const 0x800))) (then
        (call $act (i32.load8_u (i32.add (local.get $in) (i32.const 8))))
        (local.set $in (i32.add (local.get $in) (i32.const 9)))
        (i32.store8 (local.get $out) (i32.const 0xf6))
        (local.set $out (i32.add (local.get $out) (i32.const 1)))
        (br $more))))
    (i32.sub (local.get $out) (i32.const 0x800)))
)
