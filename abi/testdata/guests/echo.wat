;; The simple guest of docs/abi.md, section 3: without next, one envelope a call. It answers every message with the
;; message's own payload and ignores all other envelopes. Built by build.sh.
(module
  (memory (export "memory") 1)
  ;; The control block: version 1, inbox of 16 KiB at 0x1000, outbox of 32 KiB at 0x8000, description at 0x100.
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\80\00\00\00\01\00\00\1c\00\00\00\00\00\00\00")
  (data (i32.const 0x100) "\a3\63abi\01\63sdk\65wat/1\65types\81\64echo")

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

  ;; headers is the address behind the headers at p: null, or a map of texts.
  (func $headers (param $p i32) (result i32)
    (local $texts i32)
    (if (i32.ne (i32.load8_u (local.get $p)) (i32.const 0xf6))
      (then (local.set $texts (i32.shl (call $argument (local.get $p)) (i32.const 1)))))
    (local.set $p (call $behind (local.get $p)))
    (block $done
      (loop $text
        (br_if $done (i32.eqz (local.get $texts)))
        (local.set $texts (i32.sub (local.get $texts) (i32.const 1)))
        (local.set $p (i32.add (call $behind (local.get $p)) (call $argument (local.get $p))))
        (br $text)))
    (local.get $p))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $sender i32) (local $headers i32) (local $payload i32) (local $out i32)
    ;; 0x1000 is the head of the array, 0x1001 the kind, 0x1002 the time
    (if (i32.load8_u (i32.const 0x1001)) (then (return (i32.const 0)))) ;; not a message
    (local.set $sender (call $behind (i32.const 0x1002)))
    (if (i32.eqz (i32.load8_u (local.get $sender))) (then (return (i32.const 0)))) ;; from nobody
    (local.set $headers (call $behind (call $behind (local.get $sender))))
    (local.set $payload (call $headers (local.get $headers)))
    ;; send: [0, sender, correlation, 1, null, payload]
    (i32.store16 (i32.const 0x8000) (i32.const 0x0086))
    (local.set $out (i32.const 0x8002))
    (memory.copy (local.get $out) (local.get $sender) (i32.sub (local.get $headers) (local.get $sender)))
    (local.set $out (i32.add (local.get $out) (i32.sub (local.get $headers) (local.get $sender))))
    (i32.store16 (local.get $out) (i32.const 0xf601))
    (local.set $out (i32.add (local.get $out) (i32.const 2)))
    (local.set $len (i32.sub (i32.add (i32.const 0x1000) (local.get $len)) (local.get $payload)))
    (memory.copy (local.get $out) (local.get $payload) (local.get $len))
    (i32.sub (i32.add (local.get $out) (local.get $len)) (i32.const 0x8000))))
