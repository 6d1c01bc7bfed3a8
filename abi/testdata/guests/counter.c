// A guest in C that follows docs/abi.md and uses no library. It adds up the numbers
// that it is sent, answers the text "get" with the total, and fails on anything
// else. It asks for its envelopes through next. Built by build.sh.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

__attribute__((import_module("wasmactors"), import_name("next"))) int next(int outbox_length);

enum { MESSAGE = 0, SEND = 0, FAIL = 12, REPLY = 1, NONE = 0xf6 };    // the numbers of the contract
enum { UINT = 0, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, OTHER = 7 }; // major types of CBOR

static u8 inbox[16384], outbox[1 << 20];
static const char description[] = "\xa3\x63" "abi" "\x01\x63" "sdk" "\x63" "c/1" "\x65" "types" "\x81\x67" "counter";
static u32 control[8];
static u64 total;
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

struct head { int major; u64 argument; };

// get reads one head and steps behind it.
static struct head get(void) {
  struct head h = {*in >> 5, *in & 31};
  in++;
  if (h.argument < 24) return h;
  int n = 1 << (h.argument - 24);
  for (h.argument = 0; n > 0; n--) h.argument = h.argument << 8 | *in++;
  return h;
}

// put writes one head in its shortest form.
static void put(int major, u64 n) {
  int log = n < 24 ? -1 : n < 1 << 8 ? 0 : n < 1 << 16 ? 1 : n >> 32 == 0 ? 2 : 3;
  *out++ = major << 5 | (log < 0 ? n : 24 + log);
  if (log >= 0)
    for (int i = (1 << log) - 1; i >= 0; i--) *out++ = n >> (8 * i);
}

static void reply(u64 to, u64 correlation, u64 number) {
  put(ARRAY, 6);
  put(UINT, SEND);
  put(UINT, to);
  put(UINT, correlation);
  put(UINT, REPLY);
  *out++ = NONE; // headers
  u8 *size = out++; // one byte is enough: the payload has 1 to 9
  put(UINT, number);
  *size = BYTES << 5 | (out - size - 1);
}

static void fail(const char *reason, int length) {
  put(ARRAY, 2);
  put(UINT, FAIL);
  put(TEXT, length);
  while (length-- > 0) *out++ = *reason++;
}

// turn handles one envelope and reports whether more may follow.
static int turn(void) {
  get(); // the array
  u64 kind = get().argument;
  get(); // time
  u64 sender = get().argument;
  u64 correlation = get().argument;
  struct head headers = get();
  if (headers.major == MAP)
    for (u64 texts = 2 * headers.argument; texts > 0; texts--) {
      u64 length = get().argument; // not in one expression with in: get moves it
      in += length;
    }
  u64 size = get().argument;
  u8 *end = in + size;
  int more = 1;
  if (kind == MESSAGE && size > 0) {
    struct head h = get();
    if (h.major == UINT) {
      total += h.argument;
    } else if (h.major == TEXT && h.argument == 3 && in[0] == 'g' && in[1] == 'e' && in[2] == 't') {
      if (sender != 0) reply(sender, correlation, total);
    } else {
      fail("not a number", 12);
      more = 0;
    }
  }
  in = end;
  *out++ = NONE; // the end marker
  return more;
}

__attribute__((export_name("wasmactors_turn"))) int turns(int length) {
  in = inbox;
  out = outbox;
  while (next(out - outbox) && turn()) {}
  return out - outbox;
}
