;; Needs a known amount of everything that has a limit: the message, a small number, says of what. It traps if it
;; does not get it. Built by build.sh.
(module
  (import "wasmactors" "flush" (func $flush (param i32)))
  (memory (export "memory") 2)
  (table $t 10 funcref)
  (global $a (mut i32) (i32.const 0))
  (global $b (mut i32) (i32.const 0))
  (global $c (mut i32) (i32.const 0))
  ;; the control block: version 1, inbox at 0x1000, outbox at 0x8000, 16 KiB each, description at 0x180
  (data (i32.const 16) "\01\00\00\00\00\10\00\00\00\40\00\00\00\80\00\00\00\40\00\00\80\01\00\00\1d\00\00\00\00\00\00\00")
  (data (i32.const 0x180) "\a3\63abi\01\63sdk\65wat/1\65types\81\65needs")
  (func (export "wasmactors_init") (result i32) (i32.const 16))
  ;; some 3 million units of fuel, while it is initialised
  (func (export "_initialize") (call $work (i32.const 1000000)))

  (func $work (param $n i32)
    (loop $l
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $l (local.get $n))))
  (func $deep (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (i32.add (i32.const 1) (call $deep (i32.sub (local.get $n) (i32.const 1)))))

  (func (export "wasmactors_turn") (param $len i32) (result i32)
    (local $what i32)
    ;; only a message (kind 0) sets it off; start and stop pass
    (if (i32.load8_u (i32.const 0x1001)) (then (return (i32.const 0))))
    (local.set $what (i32.load8_u offset=0xfff (local.get $len))) ;; the last byte of the inbox
    ;; 1: three pages more, and uses them
    (if (i32.eq (local.get $what) (i32.const 1))
      (then (i32.store (i32.shl (memory.grow (i32.const 3)) (i32.const 16)) (i32.const 7))))
    ;; 2: a table of 510 entries
    (if (i32.eq (local.get $what) (i32.const 2))
      (then (if (i32.lt_s (table.grow $t (ref.null func) (i32.const 500)) (i32.const 0)) (then (unreachable)))))
    ;; 3: a thousand nested calls
    (if (i32.eq (local.get $what) (i32.const 3)) (then (drop (call $deep (i32.const 1000)))))
    ;; 4: some ten million units of fuel, ten milliseconds or so
    (if (i32.eq (local.get $what) (i32.const 4)) (then (call $work (i32.const 5000000))))
    ;; 5: 16 KiB of outbox
    (if (i32.eq (local.get $what) (i32.const 5)) (then (call $flush (i32.const 0x4000))))
    ;; 6: all the time there is
    (if (i32.eq (local.get $what) (i32.const 6)) (then (loop $l (br $l))))
    (i32.const 0)))
