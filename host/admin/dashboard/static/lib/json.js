// JSON that people read. Integers beyond 2^53 stay what they are: actors count in 64 bits.

// parse is JSON.parse, but large integers become BigInt where the browser can tell.
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    if (typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')) return BigInt(context.source);
    return value;
  });
}

// pretty prints a value: short arrays and objects in one line, others indented. Depth and
// length are bounded; what is left out is said.
export function pretty(value, { width = 76, most = 20_000 } = {}) {
  const text = print(value, '', width, 0);
  return text.length > most ? `${text.slice(0, most)}\n… ${text.length - most} more characters` : text;
}

function print(v, indent, width, depth) {
  if (v === null || typeof v !== 'object') return scalar(v);
  if (depth > 40) return '…';
  const flat = compact(v, width - indent.length);
  if (flat !== null) return flat;
  const inner = indent + '  ';
  const items = Array.isArray(v)
    ? v.map((x) => inner + print(x, inner, width, depth + 1))
    : Object.entries(v).map(([k, x]) => `${inner}${JSON.stringify(k)}: ${print(x, inner, width, depth + 1)}`);
  const [open, close] = Array.isArray(v) ? '[]' : '{}';
  return items.length === 0 ? open + close : `${open}\n${items.join(',\n')}\n${indent}${close}`;
}

// compact is a value in one line of at most so many characters, or null.
function compact(v, room) {
  if (room < 2) return null;
  if (v === null || typeof v !== 'object') {
    const s = scalar(v);
    return s.length <= room ? s : null;
  }
  const list = Array.isArray(v);
  let out = list ? '[' : '{';
  let first = true;
  for (const [k, x] of Object.entries(v)) {
    const key = list ? '' : `${JSON.stringify(k)}: `;
    const s = compact(x, room - out.length - key.length - 3);
    if (s === null) return null;
    out += (first ? '' : ', ') + key + s;
    first = false;
  }
  out += list ? ']' : '}';
  return out.length <= room ? out : null;
}

function scalar(v) {
  if (typeof v === 'bigint') return String(v);
  return JSON.stringify(v) ?? 'null';
}

// splice is an object's text with a value that stays the text it is: what a person has typed
// goes to the server digit by digit. It throws what JSON.parse says of a text that is none.
export function splice(object, key, text) {
  JSON.parse(text);
  const rest = JSON.stringify(object).slice(1, -1);
  return `{${rest}${rest ? ',' : ''}${JSON.stringify(key)}:${text.trim()}}`;
}
