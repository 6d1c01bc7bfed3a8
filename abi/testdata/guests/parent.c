// A guest in C that follows docs/abi.md and uses no library. Whoever sends it a message
// gets the ref of a child that it spawns, of its own type. Built by build.sh.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { MESSAGE = 0, START = 1, SEND = 0, SPAWN = 3, REPLY = 1, NONE = 0xf6 }; // the numbers of the contract
enum { UINT = 0, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, OTHER = 7 };        // major types of CBOR

static u8 inbox[16384], outbox[4096];
static const char description[] = "\xa3\x63" "abi" "\x01\x63" "sdk" "\x63" "c/1" "\x65" "types" "\x81\x66" "parent";
static u32 control[8];
static u64 self, spawned, refkey[2];
static u8 *in, *out;

__attribute__((export_name("wasmactors_init"))) u32 *init(void) {
  control[0] = 1;
  control[1] = (u32)inbox;
  control[2] = sizeof inbox;
  control[3] = (u32)outbox;
  control[4] = sizeof outbox;
  control[5] = (u32)description;
  control[6] = sizeof description - 1;
  return control;
}

#define ROUND \
  a += b, b = b << 13 | b >> 51, b ^= a, a = a << 32 | a >> 32, \
  c += d, d = d << 16 | d >> 48, d ^= c, \
  a += d, d = d << 21 | d >> 43, d ^= a, \
  c += b, b = b << 17 | b >> 47, b ^= c, c = c << 32 | c >> 32

// key: the two halves of "refkey", each with its lowest byte first
static u64 child_ref(const u64 key[2], u64 self, u64 n) {
  u64 a = key[0] ^ 0x736f6d6570736575, b = key[1] ^ 0x646f72616e646f6d;
  u64 c = key[0] ^ 0x6c7967656e657261, d = key[1] ^ 0x7465646279746573;
  d ^= n;
  ROUND; ROUND;
  a ^= n;
  d ^= 0x0800000000000000; // the length
  ROUND; ROUND;
  a ^= 0x0800000000000000;
  c ^= 255;
  ROUND; ROUND; ROUND; ROUND;
  u64 serial = (a ^ b ^ c ^ d) & 0x3fffffffffffff;
  return (self >> 54 << 54) | (serial ? serial : 1);
}

struct head { int major; u64 argument; };

// get reads one head and steps behind it.
static struct head get(void) {
  struct head h = {*in >> 5, *in & 31};
  in++;
  if (h.argument < 24 || h.major == OTHER) return h;
  int n = 1 << (h.argument - 24);
  for (h.argument = 0; n > 0; n--) h.argument = h.argument << 8 | *in++;
  return h;
}

// skip steps over a head and what belongs to it; of maps there are none with more inside.
static void skip(void) {
  struct head h = get();
  if (h.major == BYTES || h.major == TEXT) in += h.argument;
  if (h.major == MAP)
    for (u64 texts = 2 * h.argument; texts > 0; texts--) skip();
}

// put writes one head in its shortest form.
static void put(int major, u64 n) {
  int log = n < 24 ? -1 : n < 1 << 8 ? 0 : n < 1 << 16 ? 1 : n >> 32 == 0 ? 2 : 3;
  *out++ = major << 5 | (log < 0 ? n : 24 + log);
  if (log >= 0)
    for (int i = (1 << log) - 1; i >= 0; i--) *out++ = n >> (8 * i);
}

static int is(const u8 *text, u64 length, const char *what) {
  for (; length > 0 && *what == *text; length--) what++, text++;
  return length == 0 && *what == 0;
}

// started reads the start payload.
static void started(void) {
  for (u64 pairs = get().argument; pairs > 0; pairs--) {
    u64 length = get().argument;
    const u8 *key = in;
    in += length;
    if (is(key, length, "self")) self = get().argument;
    else if (is(key, length, "spawned")) spawned = get().argument;
    else if (is(key, length, "refkey")) {
      get();
      for (int i = 0; i < 16; i++) refkey[i / 8] = refkey[i / 8] >> 8 | (u64)*in++ << 56;
    } else skip();
  }
}

static void send(u64 to, u64 correlation, int flags, u64 number) {
  put(ARRAY, 6);
  put(UINT, SEND);
  put(UINT, to);
  put(UINT, correlation);
  put(UINT, flags);
  *out++ = NONE; // headers
  u8 *size = out++; // one byte is enough: the payload has 1 to 9
  put(UINT, number);
  *size = BYTES << 5 | (out - size - 1);
}

static u64 spawn(void) {
  u64 ref = child_ref(refkey, self, spawned++);
  put(ARRAY, 6);
  put(UINT, SPAWN);
  put(UINT, ref);
  put(TEXT, 6);
  for (const char *c = "parent"; *c; c++) *out++ = *c;
  *out++ = NONE; // the host chooses the name
  put(BYTES, 1);
  *out++ = NONE; // arguments
  *out++ = NONE; // options
  return ref;
}

// The module imports no next, so there is one envelope a call.
__attribute__((export_name("wasmactors_turn"))) int turn(int length) {
  (void)length;
  in = inbox;
  out = outbox;
  get(); // the array
  u64 kind = get().argument;
  get(); // time
  u64 sender = get().argument;
  u64 correlation = get().argument;
  skip(); // headers
  get(); // the payload's length
  if (kind == START) started();
  if (kind == MESSAGE && sender != 0) send(sender, correlation, REPLY, spawn());
  return out - outbox;
}
