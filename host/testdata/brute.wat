;; Does by the megabyte what it is told. The payload of a message is a byte string with a head of five bytes:
;;   verb (1 byte), argument (4 bytes, little-endian), bytes
;; verb 0 writes the bytes to the outbox so many times; 1 grows the memory by so many pages and touches them; 2 spins,
;; for ever with 0; 3 calls itself so deep; 4 grows the table by so much; 5 logs its own lines so many times; 6 hands the
;; bytes over so many times before its turn has ended, and then spins for ever.
;; Built by build.sh.
(module
  (import "wasmactors" "log" (func $log (param i32 i32 i32)))
  (import "wasmactors" "flush" (func $flush (param i32)))
  (memory (export "memory") 258)
  (table $t 1 10000000 funcref)
  ;; the control block: version 1, inbox at 1 MiB, outbox at 8 MiB, 5 MiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\00\10\00\00\00\50\00\00\00\80\00\00\00\50\00\80\01\00\00\1d\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\65brute")
  (func $skip (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))
  (func $deep (param $n i32) (result i64)
    (local $a i64) (local $b i64) (local $c i64) (local $d i64)
    (local.set $a (i64.extend_i32_u (local.get $n)))
    (local.set $b (i64.mul (local.get $a) (i64.const 3)))
    (local.set $c (i64.mul (local.get $a) (i64.const 5)))
    (local.set $d (i64.mul (local.get $a) (i64.const 7)))
    (if (local.get $n) (then (local.set $a (call $deep (i32.sub (local.get $n) (i32.const 1))))))
    (i64.add (i64.add (local.get $a) (local.get $b)) (i64.add (local.get $c) (local.get $d))))
  (func $copy (param $p i32) (param $n i32) (param $times i32) (result i32)
    (local $out i32)
    (local.set $out (i32.const 0x800000))
    (block $done
      (loop $l
        (br_if $done (i32.eqz (local.get $times)))
        (memory.copy (local.get $out) (local.get $p) (local.get $n))
        (local.set $out (i32.add (local.get $out) (local.get $n)))
        (local.set $times (i32.sub (local.get $times) (i32.const 1)))
        (br $l)))
    (i32.sub (local.get $out) (i32.const 0x800000)))
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $p i32) (local $n i32) (local $verb i32) (local $arg i32) (local $i i32)
    (if (i32.load8_u (i32.const 0x100001)) (then (return (i32.const 0))))
    (local.set $p (call $skip (call $skip (call $skip (call $skip (call $skip (i32.const 0x100002)))))))
    (if (i32.ne (i32.load8_u (local.get $p)) (i32.const 0x5a)) (then (return (i32.const 0))))
    (local.set $p (call $skip (local.get $p)))
    (local.set $verb (i32.load8_u (local.get $p)))
    (local.set $arg (i32.load offset=1 (local.get $p)))
    (local.set $p (i32.add (local.get $p) (i32.const 5)))
    (local.set $n (i32.sub (i32.add (i32.const 0x100000) (local.get $len)) (local.get $p)))
    (if (i32.eqz (local.get $verb)) (then (return (call $copy (local.get $p) (local.get $n) (local.get $arg)))))
    (if (i32.eq (local.get $verb) (i32.const 1))
      (then
        (local.set $i (i32.mul (memory.size) (i32.const 65536)))
        (if (i32.eq (memory.grow (local.get $arg)) (i32.const -1)) (then (unreachable)))
        (memory.fill (local.get $i) (i32.const 7) (i32.mul (local.get $arg) (i32.const 65536)))))
    (if (i32.eq (local.get $verb) (i32.const 2))
      (then (loop $l
        (br_if $l (i32.ne (local.tee $arg (i32.sub (local.get $arg) (i32.const 1))) (i32.const 0))))))
    (if (i32.eq (local.get $verb) (i32.const 3)) (then (drop (call $deep (local.get $arg)))))
    (if (i32.eq (local.get $verb) (i32.const 4)) (then (drop (table.grow $t (ref.null func) (local.get $arg)))))
    (if (i32.eq (local.get $verb) (i32.const 5))
      (then (loop $l
        (call $log (i32.const 1) (local.get $p) (local.get $n))
        (br_if $l (local.tee $arg (i32.sub (local.get $arg) (i32.const 1)))))))
    (if (i32.eq (local.get $verb) (i32.const 6))
      (then
        (loop $l
          (call $flush (call $copy (local.get $p) (local.get $n) (i32.const 1)))
          (br_if $l (local.tee $arg (i32.sub (local.get $arg) (i32.const 1)))))
        (loop $ever (br $ever))))
    (i32.const 0)))
