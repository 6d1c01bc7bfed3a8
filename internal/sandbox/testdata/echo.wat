;; Answers each envelope with a send of a fixed shape: to ref 7, correlation 0, flags 0, no headers, payload the
;; one byte 0xf6. The first byte of an envelope's payload says what to do instead:
;;   1 trap   2 loop   3 recurse   4 grow the memory by 1 page   5 grow it by 1000 pages, then trap
;;   6 exit early (begin no further turn)   7 send three times, then trap   8 flush, send, flush
;;   9 ask for a panic   10 count up a global and an address, and send the count as correlation
;;   11 log a line   12 fail by a command   13 change the table   14 touch 200 pages of the memory
;;   15 spin for a while (about a million units of fuel)   16 flush, then trap
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (import "wasmactors" "flush" (func $flush (param i32)))
  (import "wasmactors" "log" (func $log (param i32 i32 i32)))
  (import "wasmactors" "panic" (func $panic (param i32 i32)))
  (memory (export "memory") 2)
  (table 2 funcref)
  (elem (i32.const 0) $touch)
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\60\00\00\00\1c\00\00\00\00\00\00\00")
  (data (i32.const 96) "\a3\63abi\01\63sdk\65wat/1\65types\81\64echo") ;; the description
  (data (i32.const 256) "\86\00\07\00\00\f6\41\f6")       ;; the send
  (data (i32.const 272) "out of coffee")
  (data (i32.const 288) "\82\0c\64nope")                  ;; fail "nope"
  (global $in (mut i32) (i32.const 0))
  (global $out (mut i32) (i32.const 0))
  (global $count (mut i64) (i64.const 0))

  (func $step (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))

  (func $byte (param $b i32)
    (i32.store8 (global.get $out) (local.get $b))
    (global.set $out (i32.add (global.get $out) (i32.const 1))))

  (func $send
    (i64.store (global.get $out) (i64.load (i32.const 256)))
    (global.set $out (i32.add (global.get $out) (i32.const 8))))

  (func $drain
    (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
    (global.set $out (i32.const 0x8000)))

  (func $recurse (param i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (local.get 0)))

  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))

  (func $touch
    (local $p i32)
    (local.set $p (i32.const 0x10000))
    (drop (memory.grow (i32.const 12)))
    (loop $again
      (i32.store8 (local.get $p) (i32.const 1))
      (local.set $p (i32.add (local.get $p) (i32.const 4096)))
      (br_if $again (i32.lt_u (local.get $p) (i32.const 0xd8000)))))

  (func $act (param $what i32)
    (if (i32.eq (local.get $what) (i32.const 1)) (then (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 2)) (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $what) (i32.const 3)) (then (drop (call $recurse (i32.const 0)))))
    (if (i32.eq (local.get $what) (i32.const 4)) (then (drop (memory.grow (i32.const 1)))))
    (if (i32.eq (local.get $what) (i32.const 5)) (then (drop (memory.grow (i32.const 1000))) (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 7)) (then (call $send) (call $send) (call $send) (unreachable)))
    (if (i32.eq (local.get $what) (i32.const 8)) (then (call $send) (call $drain) (call $send) (call $drain)))
    (if (i32.eq (local.get $what) (i32.const 9)) (then (call $panic (i32.const 272) (i32.const 13))))
    (if (i32.eq (local.get $what) (i32.const 10)) (then
      (global.set $count (i64.add (global.get $count) (i64.const 1)))
      (i64.store (i32.const 512) (i64.add (i64.load (i32.const 512)) (i64.const 1)))
      (call $byte (i32.const 0x86)) (call $byte (i32.const 0)) (call $byte (i32.const 7))
      (call $byte (i32.wrap_i64 (i64.add (global.get $count) (i64.load (i32.const 512)))))
      (call $byte (i32.const 0)) (call $byte (i32.const 0xf6)) (call $byte (i32.const 0x40))
      (return)))
    (if (i32.eq (local.get $what) (i32.const 11)) (then (call $log (i32.const 1) (i32.const 272) (i32.const 13))))
    (if (i32.eq (local.get $what) (i32.const 12)) (then
      (call $send)
      (i64.store (global.get $out) (i64.load (i32.const 288)))
      (global.set $out (i32.add (global.get $out) (i32.const 7)))
      (return)))
    (if (i32.eq (local.get $what) (i32.const 13)) (then (table.set 0 (i32.const 1) (ref.func $touch))))
    (if (i32.eq (local.get $what) (i32.const 14)) (then (call $touch)))
    (if (i32.eq (local.get $what) (i32.const 15)) (then (call $spin (i32.const 200000))))
    (if (i32.eq (local.get $what) (i32.const 16)) (then (call $send) (call $drain) (unreachable)))
    (call $send))
  (elem declare func $touch)

  (func $handle (result i32)
    (local $p i32) (local $what i32) (local $size i32)
    ;; kind, time, sender, correlation, headers (none)
    (local.set $p (call $step (call $step (call $step (call $step (call $step (i32.add (global.get $in) (i32.const 1))))))))
    (local.set $size (i32.and (i32.load8_u (local.get $p)) (i32.const 31))) ;; payloads of up to 23 bytes
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (local.get $size) (then (local.set $what (i32.load8_u (local.get $p)))))
    (global.set $in (i32.add (local.get $p) (local.get $size)))
    (call $act (local.get $what))
    (call $byte (i32.const 0xf6))
    (i32.or (i32.eq (local.get $what) (i32.const 6)) (i32.eq (local.get $what) (i32.const 12))))

  (func (export "wasmactors_init") (result i32) (i32.const 16))

  (func $turn (export "wasmactors_turn") (param $len i32) (result i32)
    (global.set $in (i32.const 0x1000))
    (global.set $out (i32.const 0x8000))
    (block $done
      (loop $turn
        (br_if $done (i32.eqz (call $next (i32.sub (global.get $out) (i32.const 0x8000)))))
        (br_if $done (call $handle))
        (br $turn)))
    (i32.sub (global.get $out) (i32.const 0x8000))))
