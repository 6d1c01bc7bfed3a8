#include "suite.h"

// matrix multiplies matrices of n by n, n at most 400.
u32 matrix(int n) {
  double *a = (double *)heap, *b = a + n * n, *c = b + n * n;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      a[i * n + j] = i * j % 7 + 0.5;
      b[i * n + j] = (i + j) % 5 - 1.25;
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double s = 0;
      for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
  u32 sum = 0;
  for (int i = 0; i < n * n; i++) sum = mix(sum, (int)(c[i] * 8));
  return sum;
}
