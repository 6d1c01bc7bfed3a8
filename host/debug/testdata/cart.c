// A guest in C whose module has DWARF. It counts its turns: each adds an item, and the fourth one is refused by a trap.
typedef unsigned char u8;
typedef unsigned int u32;

static u8 inbox[16384], outbox[16384];
static const char description[] = "\xa3\x63" "abi" "\x01\x63" "sdk" "\x63" "c/1" "\x65" "types" "\x81\x64" "cart";
static u32 control[8];
static volatile u32 items[64];
static u32 turns;

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

static inline __attribute__((always_inline)) u32 checked(u32 n) {
  if (n > 3)
    __builtin_trap();
  return n;
}

__attribute__((noinline)) static void add(u32 n) {
  for (u32 k = 0; k < 100; k++)
    items[k & 63] += k;
  items[0] = checked(n);
}

__attribute__((export_name("wasmactors_turn"))) int turn(int length) {
  turns++;
  add(turns);
  outbox[0] = 0xf6; // the end of the turn
  return 1;
}
