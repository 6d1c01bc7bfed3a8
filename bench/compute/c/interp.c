#include "suite.h"

enum { PUSH, LOAD, STORE, ADD, MUL, MOD, LESS, JUMP_UNLESS, JUMP, HALT };

// interpret runs a stack machine's loop n thousand times: a sum of products.
u32 interpret(int n) {
  int *code = (int *)heap, stack[16], vars[4], *sp = stack;
  const int program[] = {
      PUSH, 0, STORE, 0, PUSH, 1, STORE, 1,
      LOAD, 0, PUSH, n * 1000, LESS, 0, JUMP_UNLESS, 44,
      LOAD, 1, PUSH, 31, MUL, 0, LOAD, 0, ADD, 0, PUSH, 1000003, MOD, 0, STORE, 1,
      LOAD, 0, PUSH, 1, ADD, 0, STORE, 0, JUMP, 8, HALT, 0,
      LOAD, 1, HALT, 0};
  for (unsigned i = 0; i < sizeof program / sizeof *program; i++) code[i] = program[i];
  for (int *pc = code;;) {
    int op = pc[0], arg = pc[1];
    pc += 2;
    switch (op) {
    case PUSH: *sp++ = arg; break;
    case LOAD: *sp++ = vars[arg & 3]; break;
    case STORE: vars[arg & 3] = *--sp; break;
    case ADD: sp--, sp[-1] += *sp; break;
    case MUL: sp--, sp[-1] *= *sp; break;
    case MOD: sp--, sp[-1] %= *sp; break;
    case LESS: sp--, sp[-1] = sp[-1] < *sp; break;
    case JUMP_UNLESS:
      if (!*--sp) pc = code + arg;
      break;
    case JUMP: pc = code + arg; break;
    case HALT: return stack[0];
    default: __builtin_trap();
    }
  }
}
