;; Works for as long as each message says, in rounds of a loop, and then sends the message back to its sender.
;; A message carries a 32-bit number; a payload of any other shape makes it trap. Built by bench/guests/build.sh.
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (memory (export "memory") 1)
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1c\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\64busy")
  (global $in (mut i32) (i32.const 0))  ;; where the next envelope begins
  (global $out (mut i32) (i32.const 0)) ;; where the next command goes

  ;; Steps over one CBOR head (an integer, or null).
  (func $step (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))

  ;; Turns the bytes of a 32-bit number around: CBOR is big-endian.
  (func $swap (param $n i32) (result i32)
    (i32.or
      (i32.rotl (i32.and (local.get $n) (i32.const 0x00ff00ff)) (i32.const 24))
      (i32.rotl (i32.and (local.get $n) (i32.const 0xff00ff00)) (i32.const 8))))

  ;; Handles the envelope at $in and steps over it.
  (func $handle
    (local $kind i32) (local $sender i32) (local $corr i32) (local $body i32) (local $n i32) (local $size i32) (local $left i32)
    (local.set $kind (i32.load8_u offset=1 (global.get $in)))
    (local.set $sender (call $step (i32.add (global.get $in) (i32.const 2))))
    (local.set $corr (call $step (local.get $sender)))
    (local.set $body (call $step (call $step (local.get $corr)))) ;; headers are never sent to it
    ;; the payload: a byte string of less than 64 KiB
    (local.set $size (i32.and (i32.load8_u (local.get $body)) (i32.const 31)))
    (local.set $n (call $step (local.get $body)))
    (if (i32.eq (local.get $size) (i32.const 24)) (then (local.set $size (i32.load8_u offset=1 (local.get $body)))))
    (if (i32.eq (local.get $size) (i32.const 25))
      (then (local.set $size (i32.or (i32.shl (i32.load8_u offset=1 (local.get $body)) (i32.const 8)) (i32.load8_u offset=2 (local.get $body))))))
    (global.set $in (i32.add (local.get $n) (local.get $size)))
    (if (local.get $kind) (then (return)))
    (if (i32.ne (i32.load8_u (local.get $n)) (i32.const 0x1a)) (then (unreachable)))
    (local.set $n (call $swap (i32.load offset=1 (local.get $n))))
    (local.set $left (local.get $n))
    (loop $work
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $work (i32.gt_s (local.get $left) (i32.const 0))))
    ;; a send: 86 00, the target, correlation 0, flags 0, no headers, the number
    (local.set $size (i32.sub (local.get $corr) (local.get $sender)))
    (i32.store16 (global.get $out) (i32.const 0x0086))
    ;; a ref takes 9 bytes at most, and there is room for what lies behind
    (i64.store offset=2 align=1 (global.get $out) (i64.load align=1 (local.get $sender)))
    (i32.store8 offset=10 (global.get $out) (i32.load8_u offset=8 (local.get $sender)))
    (global.set $out (i32.add (i32.add (global.get $out) (i32.const 2)) (local.get $size)))
    (i32.store align=1 (global.get $out) (i32.const 0x45f60000))
    (i32.store8 offset=4 (global.get $out) (i32.const 0x1a))
    (i32.store offset=5 align=1 (global.get $out) (call $swap (local.get $n)))
    (global.set $out (i32.add (global.get $out) (i32.const 9))))

  (func (export "wasmactors_init") (result i32) (i32.const 16))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (global.set $in (i32.const 0x1000))
    (global.set $out (i32.const 0x8000))
    (loop $turn
      (if (call $next (i32.sub (global.get $out) (i32.const 0x8000)))
        (then
          (call $handle)
          (i32.store8 (global.get $out) (i32.const 0xf6))
          (global.set $out (i32.add (global.get $out) (i32.const 1)))
          (br $turn))))
    (i32.sub (global.get $out) (i32.const 0x8000))))
