#include "suite.h"

static void insertion(u32 *a, int n) {
  for (int i = 1; i < n; i++) {
    u32 x = a[i];
    int j = i;
    for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

static void quick(u32 *a, int n) {
  while (n > 16) {
    u32 x = a[n / 2], y = a[0], z = a[n - 1];
    u32 pivot = x < y ? (y < z ? y : (x < z ? z : x)) : (x < z ? x : (y < z ? z : y));
    int i = 0, j = n - 1;
    for (;;) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i >= j) break;
      u32 t = a[i];
      a[i++] = a[j];
      a[j--] = t;
    }
    if (i <= j) i = j + 1;
    quick(a, i);
    a += i;
    n -= i;
  }
  insertion(a, n);
}

// sorting sorts n thousand numbers.
u32 sorting(int n) {
  u32 *a = (u32 *)heap, r = 1, sum = 0;
  n *= 1000;
  for (int i = 0; i < n; i++) a[i] = xorshift(&r);
  quick(a, n);
  for (int i = 1; i < n; i++)
    if (a[i - 1] > a[i]) __builtin_trap();
  for (int i = 0; i < n; i += 97) sum = mix(sum, a[i]);
  return sum;
}
