// A backtracking matcher after Kernighan and Pike, with classes: c . [x-y] * + ? ^ $
#include "suite.h"

static int here(const char *re, const char *s);

// one says whether c matches the item at re.
static int one(const char *re, char c) {
  if (c == 0) return 0;
  if (*re == '.') return c != '\n';
  if (*re != '[') return *re == c;
  for (re++; *re != ']'; re++) {
    if (re[1] == '-') {
      if (c >= re[0] && c <= re[2]) return 1;
      re += 2;
    } else if (*re == c)
      return 1;
  }
  return 0;
}

static const char *item_end(const char *re) {
  if (*re == '[')
    while (*re != ']') re++;
  return re + 1;
}

static int many(const char *re, const char *rest, const char *s, int least) {
  const char *t = s;
  while (one(re, *t)) t++;
  for (; t - s >= least; t--) {
    int n = here(rest, t);
    if (n >= 0) return n + (t - s);
  }
  return -1;
}

// here matches at the beginning of s and returns the length, or -1.
static int here(const char *re, const char *s) {
  int done = 0;
  for (;;) {
    if (*re == 0) return done;
    if (*re == '$' && re[1] == 0) return *s == 0 || *s == '\n' ? done : -1;
    const char *end = item_end(re);
    int n;
    switch (*end) {
    case '*': n = many(re, end + 1, s, 0); return n < 0 ? -1 : n + done;
    case '+': n = many(re, end + 1, s, 1); return n < 0 ? -1 : n + done;
    case '?':
      if (one(re, *s) && (n = here(end + 1, s + 1)) >= 0) return n + 1 + done;
      re = end + 1;
      continue;
    }
    if (!one(re, *s)) return -1;
    re = end, s++, done++;
  }
}

static const char *const patterns[] = {
    "[a-z0-9._]+@[a-z0-9-]+[.][a-z.]+",
    "[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+",
    "[Ww]arn[a-z]*: .*timeout$",
    "nei?ther.*nor",
};

static const char log[] =
    "2024-05-01 10.20.30.40 GET /index.html 200 \"user.name@mail.example.com\"\n"
    "2024-05-01 192.168.1.1 POST /login 401 Warning: the upstream has hit a timeout\n"
    "nothing of interest is to be found here, neither at the beginning nor at the end\n"
    "2024-05-02 1.2.3 an address that is not one, nobody@nowhere, ERROR 7\n";

// match searches the log n times with each pattern.
u32 match(int n) {
  u32 sum = 0;
  while (n-- > 0)
    for (int p = 0; p < 4; p++)
      for (const char *s = log; *s; s++) {
        int length = here(patterns[p], s);
        if (length > 0) {
          sum = mix(sum, (s - log) << 8 | length);
          s += length - 1;
        }
      }
  return sum;
}
