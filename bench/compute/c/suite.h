// What the programs share: no library is linked.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NULL ((void *)0)

// heap is where programs put what they work on; each begins at its start.
#define HEAP (4 << 20)
extern u8 heap[HEAP];

static inline u32 xorshift(u32 *r) {
  u32 x = *r;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *r = x;
}

static inline u32 mix(u32 sum, u32 v) { return (sum ^ v) * 16777619u; }

u32 sorting(int n), sha(int n), parse_json(int n), match(int n), matrix(int n), nbody(int n), deflate(int n), interpret(int n);
u32 fib(int n), sieve(int n);
