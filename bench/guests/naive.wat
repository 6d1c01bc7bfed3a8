;; The guest that a host without an ABI would write: one export a message, one host call an answer.
;; Built by bench/guests/build.sh.
(module
  (import "env" "send" (func $send (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "buffer") (result i32) (i32.const 1024))
  ;; Answers with the bytes that it got.
  (func (export "receive") (param $from i32) (param $ptr i32) (param $len i32)
    (call $send (local.get $from) (local.get $ptr) (local.get $len)))
  ;; Does nothing: what a call into a guest costs.
  (func (export "nop") (param $x i32) (result i32) (local.get $x))
  (func (export "spin") (loop $l (br $l)))
  (func (export "crash") (unreachable)))
