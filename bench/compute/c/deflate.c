// LZ77 with hash chains and a byte code in the manner of LZ4, and back.
#include "suite.h"

#define HASHES 4096
#define CHAIN 16

static int head[HASHES];

static u32 hash(const u8 *p) { return ((p[0] << 16 | p[1] << 8 | p[2]) * 2654435761u) >> 20; }

static u8 *literals(u8 *to, const u8 *from, int n) {
  while (n > 0) {
    int m = n < 127 ? n : 127;
    *to++ = m;
    for (n -= m; m--;) *to++ = *from++;
  }
  return to;
}

static int pack(u8 *to, const u8 *text, int n, int *prev) {
  u8 *begin = to;
  int plain = 0, i = 0;
  for (int h = 0; h < HASHES; h++) head[h] = -1;
  while (i + 3 < n) {
    u32 h = hash(text + i);
    int best = 0, where = 0, tries = CHAIN;
    for (int j = head[h]; j >= 0 && i - j < 65536 && tries-- > 0; j = prev[j]) {
      int m = 0;
      while (m < 130 && i + m < n && text[j + m] == text[i + m]) m++;
      if (m > best) best = m, where = j;
    }
    if (best < 4) best = 0;
    int from = i, end = i + (best ? best : 1);
    for (; i < end; i++) {
      if (i + 3 >= n) continue;
      u32 h = hash(text + i);
      prev[i] = head[h], head[h] = i;
    }
    if (best) {
      to = literals(to, text + plain, from - plain);
      *to++ = 0x80 | (best - 4), *to++ = (from - where) & 0xff, *to++ = (from - where) >> 8;
      plain = i;
    }
  }
  return literals(to, text + plain, n - plain) - begin;
}

static int unpack(u8 *to, const u8 *from, int n) {
  u8 *begin = to;
  for (const u8 *end = from + n; from < end;) {
    int m = *from++;
    const u8 *p = from;
    if (m & 0x80) m = (m & 0x7f) + 4, p = to - (from[0] | from[1] << 8), from += 2;
    else from += m;
    while (m--) *to++ = *p++;
  }
  return to - begin;
}

// deflate compresses n KiB of text, 256 at most, and reads it back.
u32 deflate(int n) {
  static const char words[][12] = {"actor ", "message ", "the ", "turn ", "a ", "supervisor ", "restarts ", "and ", "fuel\n", "isolated "};
  u32 r = 3, sum = 0;
  int size = n << 10, i = 0;
  u8 *text = heap, *packed = text + 2 * size, *back = packed + 2 * size;
  int *prev = (int *)(back + 2 * size);
  while (i < size) {
    for (const char *w = words[xorshift(&r) % 10]; *w && i < size; w++) text[i++] = *w;
    if (xorshift(&r) % 8 == 0 && i < size) text[i++] = xorshift(&r);
  }
  int length = pack(packed, text, size, prev);
  for (i = 0; i < length; i++) sum = mix(sum, packed[i]);
  if (unpack(back, packed, length) != size) __builtin_trap();
  for (i = 0; i < size; i++)
    if (back[i] != text[i]) __builtin_trap();
  return sum;
}
