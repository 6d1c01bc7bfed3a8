// The C programs of the compute suite. A turn runs one of them: the low eight
// bits of its argument say which, the rest how much work it does. The result is a
// checksum of all that it has computed.
#include "suite.h"

u8 heap[HEAP] __attribute__((aligned(16)));

static u32 (*const programs[])(int) = {sorting, sha, parse_json, match, matrix, nbody, deflate, interpret, fib, sieve};

__attribute__((export_name("wasmactors_init"))) int start(void) { return 0; }

__attribute__((export_name("wasmactors_turn"))) int turn(int what) { return programs[what & 0xff](what >> 8); }

// What the compiler may call by itself.
void *memset(void *to, int v, unsigned long n) {
  for (u8 *p = to; n--;) *p++ = v;
  return to;
}

void *memcpy(void *to, const void *from, unsigned long n) {
  const u8 *q = from;
  for (u8 *p = to; n--;) *p++ = *q++;
  return to;
}
