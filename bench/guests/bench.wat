;; The actor of the benchmarks, by hand. A message is a byte string whose first byte says what to do and whose next
;; four are a number n, big-endian; see world.go. Answers have the bytes and the length of what they answer, but op and n.
;; A payload of any other shape, and 'x', make it trap. Built by bench/guests/build.sh.
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (import "wasmactors" "flush" (func $flush (param i32)))
  (memory (export "memory") 1)
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1d\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\65bench")
  (data (i32.const 256) "\6d/user/referee")
  (global $in (mut i32) (i32.const 0))          ;; where the next envelope begins
  (global $out (mut i32) (i32.const 0))         ;; where the next command goes
  ;; the envelope that is handled: where its parts are
  (global $sender (mut i32) (i32.const 0))
  (global $corr (mut i32) (i32.const 0))
  (global $headers (mut i32) (i32.const 0))
  (global $payload (mut i32) (i32.const 0))     ;; the outer byte string, to $in
  (global $body (mut i32) (i32.const 0))        ;; offset of the inner bytes from $payload
  ;; state
  (global $left (mut i32) (i32.const 0))        ;; windows to send
  (global $outstanding (mut i32) (i32.const 0)) ;; windows without an acknowledgement
  (global $received (mut i32) (i32.const 0))
  (global $succ (mut i32) (i32.const 0))        ;; length of the next ref of the ring, at 320

  ;; Steps over one CBOR head.
  (func $step (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))

  ;; The argument of a head of at most 32 bits.
  (func $arg (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $low))))
    (if (i32.eq (local.get $low) (i32.const 24)) (then (return (i32.load8_u offset=1 (local.get $p)))))
    (if (i32.eq (local.get $low) (i32.const 25))
      (then (return (i32.or (i32.shl (i32.load8_u offset=1 (local.get $p)) (i32.const 8)) (i32.load8_u offset=2 (local.get $p))))))
    (call $swap (i32.load offset=1 align=1 (local.get $p))))

  ;; Turns the bytes of a 32-bit number around.
  (func $swap (param $n i32) (result i32)
    (i32.or
      (i32.rotl (i32.and (local.get $n) (i32.const 0x00ff00ff)) (i32.const 24))
      (i32.rotl (i32.and (local.get $n) (i32.const 0xff00ff00)) (i32.const 8))))

  ;; A send with the payload of the current message, and op and n in it. The target is the bytes from $to on.
  (func $emit (param $to i32) (param $tolen i32) (param $reply i32) (param $op i32) (param $n i32)
    (local $p i32) (local $size i32)
    (local.set $size (i32.sub (global.get $in) (global.get $payload)))
    (if (i32.gt_u (i32.add (i32.add (global.get $out) (local.get $size)) (i32.const 64)) (i32.const 0xc000))
      (then
        (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
        (global.set $out (i32.const 0x8000))))
    (local.set $p (global.get $out))
    (i32.store16 align=1 (local.get $p) (i32.const 0x0086))
    (if (i32.le_u (local.get $tolen) (i32.const 9))
      (then
        (i64.store offset=2 align=1 (local.get $p) (i64.load align=1 (local.get $to)))
        (i32.store8 offset=10 (local.get $p) (i32.load8_u offset=8 (local.get $to))))
      (else (memory.copy (i32.add (local.get $p) (i32.const 2)) (local.get $to) (local.get $tolen))))
    (local.set $p (i32.add (i32.add (local.get $p) (i32.const 2)) (local.get $tolen)))
    (if (local.get $reply)
      (then
        (memory.copy (local.get $p) (global.get $corr) (i32.sub (global.get $headers) (global.get $corr)))
        (local.set $p (i32.add (local.get $p) (i32.sub (global.get $headers) (global.get $corr)))))
      (else
        (i32.store8 (local.get $p) (i32.const 0))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))))
    (i32.store8 (local.get $p) (local.get $reply))
    (i32.store8 offset=1 (local.get $p) (i32.const 0xf6))
    (local.set $p (i32.add (local.get $p) (i32.const 2)))
    (if (i32.le_u (local.get $size) (i32.const 40))
      (then ;; what a call of the host's copying costs is more
        (i64.store align=1 (local.get $p) (i64.load align=1 (global.get $payload)))
        (i64.store offset=8 align=1 (local.get $p) (i64.load offset=8 align=1 (global.get $payload)))
        (i64.store offset=16 align=1 (local.get $p) (i64.load offset=16 align=1 (global.get $payload)))
        (i64.store offset=24 align=1 (local.get $p) (i64.load offset=24 align=1 (global.get $payload)))
        (i64.store offset=32 align=1 (local.get $p) (i64.load offset=32 align=1 (global.get $payload))))
      (else (memory.copy (local.get $p) (global.get $payload) (local.get $size))))
    (i32.store8 (i32.add (local.get $p) (global.get $body)) (local.get $op))
    (i32.store offset=1 align=1 (i32.add (local.get $p) (global.get $body)) (call $swap (local.get $n)))
    (global.set $out (i32.add (local.get $p) (local.get $size))))

  (func $back (param $op i32) (param $n i32)
    (call $emit (global.get $sender) (i32.sub (global.get $corr) (global.get $sender)) (i32.const 0) (local.get $op) (local.get $n)))

  (func $report
    (call $emit (i32.const 256) (i32.const 14) (i32.const 0) (i32.const 0x64) (i32.const 0)))

  ;; Sends a window.
  (func $fill
    (local $i i32)
    (local.set $i (i32.const 63))
    (loop $l
      (call $back (i32.const 0x66) (i32.const 0))
      (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $back (i32.const 0x6c) (i32.const 0)))

  ;; Handles the envelope at $in and steps over it.
  (func $handle
    (local $kind i32) (local $p i32) (local $op i32) (local $n i32)
    (local.set $kind (i32.load8_u offset=1 (global.get $in)))
    ;; the time, in nine bytes since 1970 and in general
    (global.set $sender (call $step (i32.add (global.get $in) (i32.const 2))))
    (global.set $corr (call $step (global.get $sender)))
    (global.set $headers (call $step (global.get $corr)))
    (global.set $payload (call $step (global.get $headers))) ;; headers are never sent to it
    (local.set $p (call $step (global.get $payload)))
    (global.set $in (i32.add (local.get $p) (call $arg (global.get $payload))))
    (if (local.get $kind) (then (return)))
    (if (i32.ne (i32.and (i32.load8_u (local.get $p)) (i32.const 0xe0)) (i32.const 0x40)) (then (unreachable)))
    (local.set $p (call $step (local.get $p)))
    (global.set $body (i32.sub (local.get $p) (global.get $payload)))
    (local.set $op (i32.load8_u (local.get $p)))
    (local.set $n (call $swap (i32.load offset=1 align=1 (local.get $p))))
    (if (i32.eq (local.get $op) (i32.const 0x70)) ;; p
      (then
        (if (local.get $n)
          (then (call $back (i32.const 0x70) (i32.sub (local.get $n) (i32.const 1))))
          (else (call $report)))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x66)) ;; f
      (then
        (global.set $received (i32.add (global.get $received) (i32.const 1)))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x6c)) ;; l
      (then
        (global.set $received (i32.add (global.get $received) (i32.const 1)))
        (call $back (i32.const 0x61) (i32.const 0))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x61)) ;; a
      (then
        (if (global.get $left)
          (then
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (call $fill)
            (return)))
        (global.set $outstanding (i32.sub (global.get $outstanding) (i32.const 1)))
        (if (i32.eqz (global.get $outstanding)) (then (call $report)))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x73)) ;; s
      (then
        (global.set $outstanding (i32.add (global.get $outstanding) (i32.const 1)))
        (call $fill)
        (if (i32.gt_u (local.get $n) (i32.const 1))
          (then
            (global.set $outstanding (i32.add (global.get $outstanding) (i32.const 1)))
            (global.set $left (i32.sub (i32.add (global.get $left) (local.get $n)) (i32.const 2)))
            (call $fill)))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x6e)) ;; n
      (then
        (global.set $succ (i32.sub (global.get $corr) (global.get $sender)))
        (memory.copy (i32.const 320) (global.get $sender) (global.get $succ))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x72)) ;; r
      (then
        (if (local.get $n)
          (then (call $emit (i32.const 320) (global.get $succ) (i32.const 0) (i32.const 0x72) (i32.sub (local.get $n) (i32.const 1))))
          (else (call $report)))
        (return)))
    (if (i32.eq (local.get $op) (i32.const 0x68)) ;; h
      (then (call $report) (return)))
    (if (i32.eq (local.get $op) (i32.const 0x71)) ;; q: what it has received
      (then
        (call $emit (global.get $sender) (i32.sub (global.get $corr) (global.get $sender)) (i32.const 1) (i32.const 0x71) (global.get $received))
        (return)))
    (unreachable))

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
