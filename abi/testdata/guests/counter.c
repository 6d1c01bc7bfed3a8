// A guest in C that follows docs/abi.md and uses no library: it adds up the
// numbers that it is sent, answers the total to "get", and fails on anything else.
// Built by build.sh.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

__attribute__((import_module("wasmactors"), import_name("next"))) int next(int outbox_len);

static u8 inbox[16384], outbox[16384];
static const char description[] = "\xa3\x63" "abi" "\x01\x63" "sdk" "\x63" "c/1" "\x65" "types" "\x81\x67" "counter";
static u32 control[8];
static u64 total;
static u8 *out;

__attribute__((export_name("wasmactors_init"))) u32 *init(void) {
  u32 block[8] = {1, (u32)inbox, sizeof inbox, (u32)outbox, sizeof outbox, (u32)description, sizeof description - 1, 0};
  for (int i = 0; i < 8; i++) control[i] = block[i];
  return control;
}

// head reads one head: its major type and its argument.
static u8 *head(u8 *p, int *major, u64 *arg) {
  *major = *p >> 5;
  *arg = *p & 31;
  p++;
  if (*arg < 24) return p;
  int n = 1 << (*arg - 24);
  for (*arg = 0; n > 0; n--) *arg = *arg << 8 | *p++;
  return p;
}

static void put(int major, u64 arg) {
  if (arg < 24) {
    *out++ = major << 5 | arg;
    return;
  }
  int n = arg < 256 ? 0 : arg < 65536 ? 1 : arg >> 32 == 0 ? 2 : 3;
  *out++ = major << 5 | (24 + n);
  for (int i = (1 << n) - 1; i >= 0; i--) *out++ = arg >> (8 * i);
}

static u8 *handle(u8 *p) {
  int major;
  u64 kind, time, sender, correlation, n, arg;
  p = head(p, &major, &arg); // the array
  p = head(p, &major, &kind);
  p = head(p, &major, &time);
  p = head(p, &major, &sender);
  p = head(p, &major, &correlation);
  u8 *headers = p;
  p = head(p, &major, &arg);
  if (major == 5) // a map of texts
    for (u64 i = 2 * arg; i > 0; i--) {
      p = head(p, &major, &n);
      p += n;
    }
  (void)headers;
  p = head(p, &major, &n);
  u8 *payload = p, *end = p + n;
  if (kind != 0) return end;
  head(payload, &major, &arg);
  if (major == 0) {
    total += arg;
  } else if (major == 3 && arg == 3 && payload[1] == 'g' && payload[2] == 'e' && payload[3] == 't') {
    if (sender == 0) return end;
    put(4, 6);
    put(0, 0); // send
    put(0, sender);
    put(0, correlation);
    put(0, 1); // a reply
    *out++ = 0xf6;
    u8 *length = out++;
    put(0, total);
    *length = 2 << 5 | (out - length - 1); // at most 9 bytes
  } else {
    put(4, 2);
    put(0, 12); // fail
    put(3, 12);
    for (const char *s = "not a number"; *s; s++) *out++ = *s;
  }
  return end;
}

__attribute__((export_name("wasmactors_turn"))) int turn(int len) {
  u8 *in = inbox;
  out = outbox;
  while (next(out - outbox)) {
    u8 *before = out;
    in = handle(in);
    int failed = out > before && before[1] == 12;
    *out++ = 0xf6;
    if (failed) break;
  }
  return out - outbox;
}
