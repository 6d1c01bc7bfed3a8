// A recursive parser of JSON (RFC 8259) that builds a tree.
#include "suite.h"

typedef struct node {
  int kind; // the first byte of the text
  double number;
  const char *text;
  int length;
  struct node *child, *next;
} node;

static const char *at;
static u8 *top;

static node *value(void);

static void space(void) {
  while (*at == ' ' || *at == '\n') at++;
}

static node *make(int kind) {
  node *x = (node *)top;
  top += sizeof(node);
  x->kind = kind, x->number = 0, x->text = at, x->length = 0, x->child = x->next = NULL;
  return x;
}

static node *string(void) {
  node *x = make('"');
  char *to = (char *)top;
  x->text = to;
  for (at++; *at != '"'; at++) {
    if (*at == 0) __builtin_trap();
    char c = *at;
    if (c == '\\') {
      c = *++at;
      if (c == 'n') c = '\n';
      else if (c == 't') c = '\t';
    }
    *to++ = c;
  }
  at++;
  x->length = to - (char *)top;
  top += (x->length + 7) & ~7;
  return x;
}

static node *number(void) {
  node *x = make('0');
  double sign = 1, v = 0, scale = 1;
  if (*at == '-') sign = -1, at++;
  for (; *at >= '0' && *at <= '9'; at++) v = v * 10 + (*at - '0');
  if (*at == '.')
    for (at++; *at >= '0' && *at <= '9'; at++) v += (*at - '0') * (scale /= 10);
  x->number = sign * v;
  return x;
}

static node *list(char end) {
  node *x = make(*at), **last = &x->child;
  at++;
  for (space(); *at != end; space()) {
    node *key = NULL;
    if (end == '}') {
      key = string();
      space();
      if (*at++ != ':') __builtin_trap();
    }
    node *v = value();
    if (key) key->child = v, v = key;
    *last = v, last = &v->next;
    space();
    if (*at == ',') at++;
    else if (*at != end) __builtin_trap();
  }
  at++;
  return x;
}

static node *word(const char *w) {
  node *x = make(*w);
  for (; *w; w++)
    if (*at++ != *w) __builtin_trap();
  return x;
}

static node *value(void) {
  space();
  switch (*at) {
  case '{': return list('}');
  case '[': return list(']');
  case '"': return string();
  case 't': return word("true");
  case 'f': return word("false");
  case 'n': return word("null");
  }
  if (*at == '-' || *at >= '0' && *at <= '9') return number();
  __builtin_trap();
}

static u32 sum_of(node *x, u32 sum) {
  for (; x; x = x->next) {
    sum = mix(sum, x->kind);
    sum = mix(sum, (u32)(int)(x->number * 100));
    for (int i = 0; i < x->length; i++) sum = mix(sum, x->text[i]);
    sum = sum_of(x->child, sum);
  }
  return sum;
}

static const char text[] =
    "[{\"id\": 1, \"name\": \"first \\\"order\\\"\\n\", \"price\": 12.75, \"tags\": [\"a\", \"bc\", \"def\"], \"extra\": {\"deep\": [[1, 2], {\"x\": null}], \"ok\": true}},\n"
    " {\"id\": 2, \"name\": \"a second one with a longer name\", \"price\": -0.5, \"tags\": [], \"extra\": {}},\n"
    " {\"id\": 345678, \"name\": \"third\", \"price\": 1234567.125, \"tags\": [[[[[\"nested\"]]]]], \"extra\": {\"a\": {\"b\": {\"c\": {\"d\": false}}}}}]";

// parse_json parses a text n times.
u32 parse_json(int n) {
  u32 sum = 0;
  while (n-- > 0) {
    at = text, top = heap;
    sum = sum_of(value(), sum);
  }
  return sum;
}
