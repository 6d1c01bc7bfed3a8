;; Control flow of every kind, for what is put around loops and branches. Each
;; function takes n and gives a number that depends on the way it went.
(module
  (import "test" "twice" (func $twice (param i32) (result i32)))
  (memory (export "memory") 1)
  (type $un (func (param i32) (result i32)))
  (table 13 funcref)
  (elem (i32.const 0) $nested $params $values $table $returns $dead $calls $recur $mutual $around $twice $bulk $traps)

  ;; Loops in loops; branches that leave one, two or all of them.
  (func $nested (param $n i32) (result i32) (local $i i32) (local $j i32) (local $sum i32)
    (block $out
      (loop $outer
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (local.set $j (i32.const 0))
        (block $next
          (loop $inner
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.xor (local.get $i) (local.get $j))))
            (br_if $out (i32.gt_u (i32.and (local.get $sum) (i32.const 0xffff)) (i32.const 65000)))
            (br_if $next (i32.eq (local.get $j) (local.get $i)))
            (br_if $outer (i32.eq (i32.rem_u (local.get $sum) (i32.const 11)) (i32.const 3)))
            (br_if $inner (i32.lt_u (local.get $j) (i32.const 9)))))
        (br_if $outer (i32.lt_u (local.get $i) (local.get $n)))))
    (local.get $sum))

  ;; A loop that takes parameters, one that gives two results.
  (func $params (param $n i32) (result i32)
    (i32.const 1) (local.get $n)
    (loop $l (param i32 i32) (result i32 i32)
      (local.set $n)
      (i32.mul (i32.const 3))
      (i32.add (local.get $n))
      (i32.sub (local.get $n) (i32.const 1))
      (br_if $l (i32.gt_s (local.get $n) (i32.const 0))))
    (i32.add)
    (loop $m (result i32)
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $m (i32.lt_s (local.get $n) (i32.const 5)))
      (local.get $n))
    (i32.add))

  ;; Branches that carry values.
  (func $values (param $n i32) (result i32) (local $i i32)
    (block $b (result i32)
      (loop $l (result i32)
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if 2 (i32.add (local.get $i) (i32.const 1000)) (i32.eq (local.get $i) (i32.const 77)))
        (drop)
        (br_if $b (i32.mul (local.get $i) (i32.const 7)) (i32.ge_u (local.get $i) (local.get $n)))
        (drop)
        (br $l)))
    (i32.add (i32.const 5)))

  ;; A table of jumps in and out of loops.
  (func $table (param $n i32) (result i32) (local $sum i32)
    (loop $top
      (block $three
        (block $two
          (loop $again
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 5)) (local.get $n)))
            (if (i32.le_s (local.get $n) (i32.const 0)) (then (return (local.get $sum))))
            (br_table $again $two $three $top $again (i32.rem_u (local.get $sum) (i32.const 7))))
          (unreachable))
        (local.set $sum (i32.add (local.get $sum) (i32.const 2)))
        (br $top))
      (local.set $sum (i32.add (local.get $sum) (i32.const 3)))
      (br $top))
    (i32.const -1))

  (func $returns (param $n i32) (result i32) (local $i i32)
    (loop $l
      (local.set $i (i32.add (local.get $i) (i32.const 3)))
      (if (i32.gt_u (local.get $i) (i32.const 50)) (then (return (i32.const 50))))
      (if (i32.gt_u (local.get $i) (local.get $n)) (then (br 2 (local.get $i))))
      (br $l))
    (i32.const 0))

  ;; Loops behind a branch, where nothing runs.
  (func $dead (param $n i32) (result i32)
    (block $b
      (br $b)
      (loop $l (br_if $l (i32.const 1)) (br $b))
      (loop (result i32) (unreachable))
      (drop)
      (call $recur (memory.grow)) (drop))
    (loop (result i32) (br 1 (i32.add (local.get $n) (i32.const 1)))))

  ;; Loops with calls, direct and indirect.
  (func $calls (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (call $nested (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call $leaf (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call_indirect (type $un) (local.get $i) (i32.rem_u (local.get $i) (i32.const 6)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $sum))
  (func $leaf (param i32) (result i32) (i32.xor (local.get 0) (i32.const 85)))

  (func $recur (param $n i32) (result i32)
    (if (result i32) (i32.eqz (local.get $n))
      (then (i32.const 1))
      (else (i32.add (local.get $n) (call $recur (i32.sub (local.get $n) (i32.const 1)))))))

  ;; Recursion through the table, with an imported function in it.
  (func $mutual (param $n i32) (result i32) (local $x i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 7))))
    (local.set $x (call_indirect (type $un) (local.get $n) (i32.const 10)))
    (i32.add (local.get $x)
      (call_indirect (type $un) (i32.sub (local.get $n) (i32.const 1)) (i32.const 8))))

  ;; It counts nothing itself, but calls what does, in a loop.
  (func $around (param $n i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (call $recur (local.get $n))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $l (i32.gt_s (local.get $n) (i32.const 0))))
    (local.get $sum))

  (func $bulk (param $n i32) (result i32) (local $i i32)
    (loop $l
      (memory.fill (i32.const 1000) (local.get $i) (i32.mul (local.get $n) (i32.const 100)))
      (memory.copy (i32.const 30000) (i32.const 1000) (i32.mul (local.get $n) (i32.const 100)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
    (i32.add (i32.load (i32.const 30000)) (memory.grow (i32.const 1))))

  ;; A loop without calls that traps when n is spent.
  (func $traps (param $n i32) (result i32) (local $i i32)
    (loop $l
      (drop (i32.div_u (i32.const 1) (local.get $n)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $l))
    (unreachable))

  (func (export "wasmactors_init") (result i32) (i32.const 0))
  (func (export "wasmactors_turn") (param $what i32) (result i32)
    (call_indirect (type $un) (i32.shr_u (local.get $what) (i32.const 4)) (i32.and (local.get $what) (i32.const 15)))))
