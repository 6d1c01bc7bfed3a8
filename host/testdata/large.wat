;; A batching guest that takes messages which are larger than its inbox: it needs the feature large. What it does says the
;; first byte in the byte string that a message is, and it answers with a count of what it has handled or with what it got.
;; Built by build.sh.
(module
  (import "wasmactors" "next" (func $next (param i32) (result i32)))
  (import "wasmactors" "flush" (func $flush (param i32)))
  (import "wasmactors" "fetch" (func $fetch (param i32 i32 i32)))
  (import "wasmactors" "write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  ;; The control block: version 1, inbox of 4 KiB at 0x1000, outbox of 4 KiB at 0x8000, description at 0x100.
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\10\00\00\00\80\00\00\00\10\00\00\00\01\00\00\2a\00\00\00\00\00\00\00")
  (data (i32.const 0x100) "\a4\63abi\01\63sdk\65wat/1\65types\81\65large\65needs\81\65large")

  (global $count (mut i32) (i32.const 0))
  (global $out (mut i32) (i32.const 0))
  (global $room (mut i32) (i32.const 0x10000)) ;; where large payloads go

  (func (export "wasmactors_init") (result i32) (i32.const 16))

  ;; argument reads the argument of the head at p.
  (func $argument (param $p i32) (result i32)
    (local $low i32) (local $n i32) (local $v i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $low))))
    (local.set $n (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24))))
    (loop $more
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (local.set $v (i32.or (i32.shl (local.get $v) (i32.const 8)) (i32.load8_u (local.get $p))))
      (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))

  ;; behind is the address behind the head at p.
  (func $behind (param $p i32) (result i32)
    (local $low i32)
    (local.set $low (i32.and (i32.load8_u (local.get $p)) (i32.const 31)))
    (local.set $p (i32.add (local.get $p) (i32.const 1)))
    (if (i32.lt_u (local.get $low) (i32.const 24)) (then (return (local.get $p))))
    (i32.add (local.get $p) (i32.shl (i32.const 1) (i32.sub (local.get $low) (i32.const 24)))))

  ;; grow makes the memory so large that n bytes fit behind the first page.
  (func $grow (param $n i32)
    (local $pages i32)
    (local.set $pages (i32.add (i32.const 1) (i32.shr_u (i32.add (local.get $n) (i32.const 0xffff)) (i32.const 16))))
    (if (i32.gt_u (local.get $pages) (memory.size))
      (then (if (i32.eq (memory.grow (i32.sub (local.get $pages) (memory.size))) (i32.const -1)) (then unreachable)))))

  ;; head begins the answer: [0, sender, correlation, 1, null, then a payload of n bytes.
  (func $head (param $sender i32) (param $behind i32) (param $n i32)
    (local $size i32)
    (i32.store16 (global.get $out) (i32.const 0x0086))
    (local.set $size (i32.sub (local.get $behind) (local.get $sender)))
    (memory.copy (i32.add (global.get $out) (i32.const 2)) (local.get $sender) (local.get $size))
    (global.set $out (i32.add (global.get $out) (i32.add (local.get $size) (i32.const 2))))
    (i32.store16 (global.get $out) (i32.const 0xf601))
    (global.set $out (i32.add (global.get $out) (i32.const 2)))
    (if (i32.lt_u (local.get $n) (i32.const 24))
      (then
        (i32.store8 (global.get $out) (i32.or (i32.const 0x40) (local.get $n)))
        (global.set $out (i32.add (global.get $out) (i32.const 1))))
      (else ;; the tests send either few bytes or more than 65535
        (i32.store8 (global.get $out) (i32.const 0x5a))
        (i32.store8 offset=1 (global.get $out) (i32.shr_u (local.get $n) (i32.const 24)))
        (i32.store8 offset=2 (global.get $out) (i32.shr_u (local.get $n) (i32.const 16)))
        (i32.store8 offset=3 (global.get $out) (i32.shr_u (local.get $n) (i32.const 8)))
        (i32.store8 offset=4 (global.get $out) (local.get $n))
        (global.set $out (i32.add (global.get $out) (i32.const 5))))))

  ;; turn handles the envelope at p and returns the address behind it.
  (func $turn (param $p i32) (result i32)
    (local $sender i32) (local $behind i32) (local $payload i32) (local $n i32) (local $far i32) (local $op i32) (local $i i32) (local $kind i32)
    (local.set $kind (i32.load8_u offset=1 (local.get $p)))
    (local.set $sender (call $behind (i32.add (local.get $p) (i32.const 2))))
    (local.set $behind (call $behind (call $behind (local.get $sender))))
    (local.set $payload (i32.add (local.get $behind) (i32.const 1))) ;; no headers
    (local.set $n (call $argument (local.get $payload)))
    (local.set $far (i32.lt_u (i32.load8_u (local.get $payload)) (i32.const 0x20))) ;; an integer: the payload is apart
    (local.set $payload (call $behind (local.get $payload)))
    (local.set $p (local.get $payload))
    (if (i32.eqz (local.get $far)) (then (local.set $p (i32.add (local.get $p) (local.get $n)))))
    (if (i32.gt_u (local.get $kind) (i32.const 2)) (then (return (local.get $p))))
    (if (i32.eq (local.get $kind) (i32.const 1)) (then (return (local.get $p)))) ;; neither a message nor an answer
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (if (local.get $far)
      (then
        (call $fetch (i32.const 0x800) (i32.const 5) (i32.const 1))
        (local.set $op (i32.load8_u (i32.const 0x800))))
      (else
        (local.set $op (i32.load8_u offset=1 (local.get $payload)))))
    (block $done
      (if (i32.eq (local.get $op) (i32.const 0x65)) ;; e: echo, what is large from where it was put
        (then
          (if (i32.eqz (local.get $far)) (then
            (call $head (local.get $sender) (local.get $behind) (local.get $n))
            (memory.copy (global.get $out) (local.get $payload) (local.get $n))
            (global.set $out (i32.add (global.get $out) (local.get $n)))
            (return (local.get $p))))
          (call $grow (local.get $n))
          (call $fetch (global.get $room) (i32.const 0) (local.get $n))
          (call $head (local.get $sender) (local.get $behind) (local.get $n))
          (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
          (global.set $out (i32.const 0x8000))
          (call $write (global.get $room) (local.get $n))
          (return (local.get $p))))
      (if (i32.eq (local.get $op) (i32.const 0x72)) ;; r: to and fro, as often as the number behind it says; then it traps
        (then
          (call $grow (local.get $n))
          (call $fetch (global.get $room) (i32.const 0) (local.get $n))
          (local.set $i (i32.load offset=6 (global.get $room)))
          (if (i32.eqz (local.get $i)) (then unreachable))
          (i32.store offset=6 (global.get $room) (i32.sub (local.get $i) (i32.const 1)))
          (call $head (local.get $sender) (local.get $behind) (local.get $n))
          (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
          (global.set $out (i32.const 0x8000))
          (call $write (global.get $room) (local.get $n))
          (return (local.get $p))))
      (if (i32.eq (local.get $op) (i32.const 0x70)) ;; p: in parts of 1000 bytes, through 1000 bytes of memory
        (then
          (call $head (local.get $sender) (local.get $behind) (local.get $n))
          (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
          (global.set $out (i32.const 0x8000))
          (loop $part
            (call $fetch (i32.const 0x4000) (local.get $i) (i32.const 1000))
            (call $write (i32.const 0x4000) (i32.const 1000))
            (local.set $i (i32.add (local.get $i) (i32.const 1000)))
            (br_if $part (i32.lt_u (local.get $i) (i32.sub (local.get $n) (i32.const 1000)))))
          (call $fetch (i32.const 0x4000) (local.get $i) (i32.sub (local.get $n) (local.get $i)))
          (call $write (i32.const 0x4000) (i32.sub (local.get $n) (local.get $i)))
          (return (local.get $p))))
      (if (i32.eq (local.get $op) (i32.const 0x69)) ;; i: over its own rings
        (then
          (call $fetch (i32.const 0x1000) (i32.const 0) (i32.const 4096))
          (call $fetch (i32.const 0x8000) (i32.const 0) (i32.const 4096))
          (return (local.get $p))))
      (if (i32.eq (local.get $op) (i32.const 0x6f)) ;; o: outside of the memory
        (then (call $fetch (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 10)) (i32.const 0) (i32.const 11))))
      (if (i32.eq (local.get $op) (i32.const 0x61)) ;; a: at an address that wraps around
        (then (call $fetch (i32.const -1) (i32.const 0) (i32.const 2))))
      (if (i32.eq (local.get $op) (i32.const 0x6c)) ;; l: more than there is
        (then (call $fetch (i32.const 0x4000) (i32.const 1) (local.get $n))))
      (if (i32.eq (local.get $op) (i32.const 0x77)) ;; w: an offset that wraps around
        (then (call $fetch (i32.const 0x4000) (i32.const -1) (i32.const 2))))
      (if (i32.eq (local.get $op) (i32.const 0x78)) ;; x: writes from outside of the memory
        (then (call $write (i32.const -4) (i32.const 8))))
      (if (i32.eq (local.get $op) (i32.const 0x66)) ;; f: writes more than it may
        (then (loop $flood (call $write (i32.const 0) (i32.const 0x10000)) (br $flood))))
      (if (i32.eq (local.get $op) (i32.const 0x6b)) ;; k: fetches for ever
        (then
          (call $grow (local.get $n))
          (loop $forever (call $fetch (global.get $room) (i32.const 0) (local.get $n)) (br $forever))))
      (if (i32.eq (local.get $op) (i32.const 0x74)) ;; t: fetches half of it, writes half an answer, and traps
        (then
          (call $grow (local.get $n))
          (call $fetch (global.get $room) (i32.const 0) (i32.shr_u (local.get $n) (i32.const 1)))
          (call $head (local.get $sender) (local.get $behind) (local.get $n))
          (call $flush (i32.sub (global.get $out) (i32.const 0x8000)))
          (call $write (global.get $room) (i32.shr_u (local.get $n) (i32.const 1)))
          unreachable)))
    ;; c, and all others: how many messages it has handled
    (call $head (local.get $sender) (local.get $behind) (i32.const 5))
    (i32.store8 (global.get $out) (i32.const 0x1a))
    (i32.store8 offset=1 (global.get $out) (i32.shr_u (global.get $count) (i32.const 24)))
    (i32.store8 offset=2 (global.get $out) (i32.shr_u (global.get $count) (i32.const 16)))
    (i32.store8 offset=3 (global.get $out) (i32.shr_u (global.get $count) (i32.const 8)))
    (i32.store8 offset=4 (global.get $out) (global.get $count))
    (global.set $out (i32.add (global.get $out) (i32.const 5)))
    (local.get $p))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $p i32)
    (local.set $p (i32.const 0x1000))
    (global.set $out (i32.const 0x8000))
    (block $none
      (loop $more
        (br_if $none (i32.eqz (call $next (i32.sub (global.get $out) (i32.const 0x8000)))))
        (local.set $p (call $turn (local.get $p)))
        (i32.store8 (global.get $out) (i32.const 0xf6))
        (global.set $out (i32.add (global.get $out) (i32.const 1)))
        (br $more)))
    (i32.sub (global.get $out) (i32.const 0x8000))))
