;; Does what it is told: its arguments and the payload of every message are a byte string of records, each of them
;;   kind (1 byte), flag (1 byte), n (2 bytes, little-endian), n bytes of commands
;; kind 0 writes the commands to the outbox; flag 1 traps then, flag 2 makes the turn the last one of the batch, flag 4
;; goes round a loop of loads 300,000 times before. 255 adds
;; the flag to a counter; 254 answers with the counter; any other kind keeps the commands, and what the flag says, for
;; envelopes of that kind. build.sh makes two modules of it: puppet.wasm has one envelope in each call; for
;; puppet_batching.wasm puppet_batching.tail, which asks for further ones, replaces the last function.
(module
  (memory (export "memory") 2)
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1e\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\66puppet")
  (global $out (mut i32) (i32.const 0))
  (global $in (mut i32) (i32.const 0)) ;; the envelope
  (global $last (mut i32) (i32.const 0)) ;; the turn is the last one of the batch
  (global $sender (mut i32) (i32.const 0)) ;; where the sender of the envelope begins, and where it ends with the correlation
  (global $headers (mut i32) (i32.const 0))
  ;; the kept commands: a slot of 1 KiB a kind from 0x10000 on, its length, its flag, its bytes
  (func $slot (param $kind i32) (result i32)
    (i32.add (i32.const 0x10000) (i32.shl (local.get $kind) (i32.const 10))))
  ;; behind the head of an item
  (func $step (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))
  ;; the argument of a head, below 65536
  (func $argument (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (if (i32.eq (local.get $low) (i32.const 24)) (then (return (i32.load8_u offset=1 (local.get $p)))))
    (if (i32.eq (local.get $low) (i32.const 25))
      (then (return (i32.or (i32.shl (i32.load8_u offset=1 (local.get $p)) (i32.const 8)) (i32.load8_u offset=2 (local.get $p))))))
    (local.get $low))
  ;; behind an item that is a number, a text, a byte string, or a map of those
  (func $skip (param $p i32) (result i32)
    (local $next i32) (local $n i32)
    (local.set $next (call $step (local.get $p)))
    (if (i32.eq (i32.and (i32.load8_u (local.get $p)) (i32.const 0xe0)) (i32.const 0xa0))
      (then
        (local.set $n (i32.shl (call $argument (local.get $p)) (i32.const 1)))
        (block $done
          (loop $item
            (br_if $done (i32.eqz (local.get $n)))
            (local.set $next (call $skip (local.get $next)))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br $item)))
        (return (local.get $next))))
    (if (result i32) (i32.eq (i32.and (i32.load8_u (local.get $p)) (i32.const 0xc0)) (i32.const 0x40))
      (then (i32.add (local.get $next) (call $argument (local.get $p))))
      (else (local.get $next))))
  (func $byte (param $b i32)
    (i32.store8 (global.get $out) (local.get $b))
    (global.set $out (i32.add (global.get $out) (i32.const 1))))
  (func $write (param $from i32) (param $n i32)
    (memory.copy (global.get $out) (local.get $from) (local.get $n))
    (global.set $out (i32.add (global.get $out) (local.get $n))))
  (func $spin
    (local $i i32) (local $p i32)
    (loop $l
      (local.set $p (i32.load (local.get $p))) ;; there is 0
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300000)))))
  (func $perform (param $from i32) (param $n i32) (param $flag i32)
    (if (i32.and (local.get $flag) (i32.const 4)) (then (call $spin)))
    (call $write (local.get $from) (local.get $n))
    (if (i32.and (local.get $flag) (i32.const 1)) (then (unreachable)))
    (global.set $last (i32.or (global.get $last) (i32.and (local.get $flag) (i32.const 2)))))
  (func $report
    (call $byte (i32.const 0x86))
    (call $byte (i32.const 0))
    (call $write (global.get $sender) (i32.sub (global.get $headers) (global.get $sender)))
    (call $byte (i32.const 1))
    (call $byte (i32.const 0xf6))
    (call $byte (i32.const 0x41))
    (call $byte (i32.load8_u (i32.const 0x400))))
  (func $record (param $p i32) (param $n i32)
    (local $kind i32) (local $flag i32) (local $slot i32)
    (local.set $kind (i32.load8_u (local.get $p)))
    (local.set $flag (i32.load8_u offset=1 (local.get $p)))
    (local.set $p (i32.add (local.get $p) (i32.const 4)))
    (if (i32.eqz (local.get $kind)) (then (return (call $perform (local.get $p) (local.get $n) (local.get $flag)))))
    (if (i32.eq (local.get $kind) (i32.const 254)) (then (return (call $report))))
    (if (i32.eq (local.get $kind) (i32.const 255))
      (then
        (i32.store8 (i32.const 0x400) (i32.add (i32.load8_u (i32.const 0x400)) (local.get $flag)))
        (return)))
    (local.set $slot (call $slot (local.get $kind)))
    (i32.store (local.get $slot) (local.get $n))
    (i32.store offset=4 (local.get $slot) (local.get $flag))
    (memory.copy (i32.add (local.get $slot) (i32.const 8)) (local.get $p) (local.get $n)))
  ;; a byte string of records; anything else is nothing to do
  (func $records (param $p i32)
    (local $end i32) (local $n i32)
    (if (i32.ne (i32.shr_u (i32.load8_u (local.get $p)) (i32.const 5)) (i32.const 2)) (then (return)))
    (local.set $end (call $skip (local.get $p)))
    (local.set $p (call $step (local.get $p)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $p) (local.get $end)))
        (local.set $n (i32.load16_u offset=2 (local.get $p)))
        (call $record (local.get $p) (local.get $n))
        (local.set $p (i32.add (local.get $p) (i32.add (local.get $n) (i32.const 4))))
        (br $next))))
  ;; the arguments are the ninth value of the start payload
  (func $arguments (param $p i32) (result i32)
    (local $i i32)
    (local.set $p (call $step (local.get $p)))
    (loop $more
      (local.set $p (call $skip (local.get $p)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $i) (i32.const 17))))
    (call $step (local.get $p)))
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  ;; the turn of the envelope at $in, which moves behind it
  (func $envelope
    (local $kind i32) (local $body i32) (local $slot i32)
    (local.set $kind (i32.load8_u offset=1 (global.get $in)))
    (global.set $sender (call $step (i32.add (global.get $in) (i32.const 2))))
    (global.set $headers (call $step (call $step (global.get $sender))))
    (local.set $body (call $skip (global.get $headers)))
    (global.set $in (call $skip (local.get $body)))
    (local.set $body (call $step (local.get $body)))
    (if (i32.eqz (local.get $kind)) (then (call $records (local.get $body)))
      (else
        (if (i32.eq (local.get $kind) (i32.const 1)) (then (call $records (call $arguments (local.get $body)))))
        (local.set $slot (call $slot (local.get $kind)))
        (call $perform (i32.add (local.get $slot) (i32.const 8)) (i32.load (local.get $slot)) (i32.load offset=4 (local.get $slot))))))
  ;; one envelope a call
  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (global.set $in (i32.const 0x1000))
    (global.set $out (i32.const 0x8000))
    (call $envelope)
    (i32.sub (global.get $out) (i32.const 0x8000))))
