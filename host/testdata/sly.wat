;; Is quick as long as it likes, and then slow. The payload of a message is a byte string with a head of five bytes:
;;   verb (1 byte), argument (4 bytes, little-endian)
;; The bits of the verb are done in this order: 1 grows the memory by as many pages as the upper 16 bits
;; of the argument say, and goes on with the first of them and the lower bits; 2 spins a million times, 3 million units of some 0.1 ns; 4 touches so many pages of 4 KiB that it has not touched before;
;; 8 makes a table of 32 MiB for 16; 16 follows so many pointers in it, each to a line that no cache has; 32 traps; 64 fills
;; so much memory from the first page on, by one instruction. It asks for its envelopes through next.
;; Built by build.sh.
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (memory (export "memory") 640 1024)
  (global $page (mut i32) (i32.const 0x30000))
  (global $at (mut i32) (i32.const 0))
  ;; the control block: version 1, inbox at 64 KiB, outbox at 128 KiB, 64 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\00\01\00\00\00\01\00\00\00\02\00\00\00\01\00\80\01\00\00\1b\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\63sly")
  (func $skip (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))
  (func $spin (param $n i32)
    (loop $l
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $touch (param $n i32)
    (local $p i32)
    (local.set $p (global.get $page))
    (loop $l
      (i32.store (local.get $p) (i32.const 1))
      (i32.store offset=0x1000 (local.get $p) (i32.const 1))
      (i32.store offset=0x2000 (local.get $p) (i32.const 1))
      (i32.store offset=0x3000 (local.get $p) (i32.const 1))
      (i32.store offset=0x4000 (local.get $p) (i32.const 1))
      (i32.store offset=0x5000 (local.get $p) (i32.const 1))
      (i32.store offset=0x6000 (local.get $p) (i32.const 1))
      (i32.store offset=0x7000 (local.get $p) (i32.const 1))
      (local.set $p (i32.add (local.get $p) (i32.const 0x8000)))
      (br_if $l (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 8))) (i32.const 0))))
    (global.set $page (local.get $p)))
  ;; the pointers go through all lines: i -> 1664525i+1013904223 mod 2^19
  (func $table
    (local $i i32)
    (loop $l
      (i32.store offset=0x100000 (i32.shl (local.get $i) (i32.const 6))
        (i32.shl (i32.and (i32.add (i32.mul (local.get $i) (i32.const 1664525)) (i32.const 1013904223)) (i32.const 0x7ffff)) (i32.const 6)))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 0x80000)))))
  (func $chase (param $n i32)
    (local $p i32)
    (local.set $p (global.get $at))
    (loop $l
      (local.set $p (i32.load offset=0x100000 (i32.load offset=0x100000 (i32.load offset=0x100000 (i32.load offset=0x100000 (local.get $p))))))
      (br_if $l (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 4))) (i32.const 0))))
    (global.set $at (local.get $p)))
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  (func $grow (param $n i32)
    (global.set $page (i32.mul (memory.size) (i32.const 65536)))
    (if (i32.eq (memory.grow (local.get $n)) (i32.const -1)) (then (unreachable))))
  (func $do (param $verb i32) (param $arg i32)
    (if (i32.and (local.get $verb) (i32.const 1))
      (then
        (call $grow (i32.shr_u (local.get $arg) (i32.const 16)))
        (local.set $arg (i32.and (local.get $arg) (i32.const 0xffff)))))
    (if (i32.and (local.get $verb) (i32.const 2)) (then (call $spin (i32.const 1000000))))
    (if (i32.and (local.get $verb) (i32.const 4)) (then (call $touch (local.get $arg))))
    (if (i32.and (local.get $verb) (i32.const 8)) (then (call $table)))
    (if (i32.and (local.get $verb) (i32.const 16)) (then (call $chase (local.get $arg))))
    (if (i32.and (local.get $verb) (i32.const 64)) (then (memory.fill (i32.const 0x30000) (i32.const 7) (local.get $arg))))
    (if (i32.and (local.get $verb) (i32.const 32)) (then (unreachable))))
  (func $handle (param $p i32) (result i32)
    (if (i32.load8_u offset=1 (local.get $p)) (then (return (local.get $p)))) ;; no message: it is alone
    (local.set $p (call $skip (call $skip (call $skip (call $skip (call $skip (i32.add (local.get $p) (i32.const 2))))))))
    (if (i32.ne (i32.load8_u (local.get $p)) (i32.const 0x5a)) (then (return (local.get $p))))
    (local.set $p (call $skip (local.get $p)))
    (call $do (i32.load8_u (local.get $p)) (i32.load offset=1 (local.get $p)))
    (i32.add (local.get $p) (i32.const 5)))
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $p i32) (local $out i32)
    (local.set $p (i32.const 0x10000))
    (loop $l
      (if (call $next (local.get $out))
        (then
          (local.set $p (call $handle (local.get $p)))
          (i32.store8 offset=0x20000 (local.get $out) (i32.const 0xf6)) ;; the end of the turn
          (local.set $out (i32.add (local.get $out) (i32.const 1)))
          (br $l))))
    (local.get $out)))
