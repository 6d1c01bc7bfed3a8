// The two that meters like least: nothing but calls, and nothing but loops.
#include "suite.h"

u32 fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// sieve counts the primes below n thousand, 4000 at most.
u32 sieve(int n) {
  u32 found = 0;
  n *= 1000;
  for (int i = 0; i < n; i++) heap[i] = 1;
  for (int i = 2; i < n; i++) {
    if (!heap[i]) continue;
    found++;
    for (int j = i + i; j < n; j += i) heap[j] = 0;
  }
  return found;
}
