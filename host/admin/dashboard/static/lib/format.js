// Numbers, sizes, times and texts as people read them. Nothing here touches the page.

const units = ['', 'k', 'M', 'G', 'T', 'P', 'E'];

// scaled gives three significant digits of x, which is at least 1 and below 1000 or so.
function scaled(x) {
  if (x >= 100) return x.toFixed(0);
  if (x >= 10) return x.toFixed(1).replace(/\.0$/, '');
  return x.toFixed(2).replace(/\.?0+$/, '');
}

function stepped(x, base, names) {
  let i = 0;
  while (i < names.length - 1 && Number(scaled(x)) >= base) {
    x /= base;
    i++;
  }
  return scaled(x) + names[i];
}

// exact groups the digits of an integer: 1234567 is 1,234,567.
export function exact(n) {
  const [digits, sign] = [String(n).replace(/^-/, ''), String(n).startsWith('-') ? '-' : ''];
  return sign + digits.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// count is exact below 10,000 and has three digits and a unit above.
export function count(n) {
  n = Number(n ?? 0);
  if (!Number.isFinite(n)) return '–';
  if (n < 0) return '-' + count(-n);
  return n < 10000 ? exact(Math.round(n)) : stepped(n, 1000, units);
}

// bytes uses the binary units that limits are written in.
export function bytes(n) {
  n = Number(n ?? 0);
  if (!Number.isFinite(n)) return '–';
  if (n < 0) return '-' + bytes(-n);
  return n < 1024 ? `${Math.round(n)} B` : stepped(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
}

// rate is a number of things a second.
export function rate(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  if (x <= 0) return '0/s';
  if (x < 0.01) return '<0.01/s';
  return (x < 1000 ? scaled(x) : stepped(x, 1000, units)) + '/s';
}

const second = 1e9;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

// duration tells nanoseconds in at most two units.
export function duration(ns) {
  ns = Number(ns ?? 0);
  if (!Number.isFinite(ns)) return '–';
  if (ns < 0) return '-' + duration(-ns);
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return `${scaled(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${scaled(ns / 1e6)} ms`;
  if (ns < minute - second / 2) return `${scaled(ns / second)} s`;
  const two = (big, name, small, less) => {
    let whole = Math.floor(ns / big);
    let rest = Math.round((ns - whole * big) / small);
    if (rest * small >= big) [whole, rest] = [whole + 1, 0];
    return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${less}`;
  };
  if (ns < hour - second / 2) return two(minute, 'min', second, 's');
  if (ns < day - minute / 2) return two(hour, 'h', minute, 'min');
  return two(day, 'd', hour, 'h');
}

// countdown tells how much of a wait is left. It is never 0 before its end, and its width
// changes seldom.
export function countdown(ns) {
  if (!(ns > 0)) return 'now';
  if (ns < 10 * second) return `${(Math.ceil(ns / (second / 10)) / 10).toFixed(1)} s`;
  const s = Math.ceil(ns / second);
  if (s < 60) return `${s} s`;
  const pad = (n) => String(n).padStart(2, '0');
  if (s < 3600) return `${Math.floor(s / 60)}:${pad(s % 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)}:${pad(Math.floor((s % 3600) / 60))}:${pad(s % 60)} h`;
  return duration(ns);
}

// clock is the time of day of an RFC 3339 text, to the millisecond, where the reader is.
export function clock(text) {
  const t = new Date(text);
  if (Number.isNaN(t.getTime())) return '–';
  const pad = (n, w = 2) => String(n).padStart(w, '0');
  return `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}.${pad(t.getMilliseconds(), 3)}`;
}

// between is the time from one RFC 3339 text to another, in nanoseconds; NaN if one is none.
export function between(from, to) {
  return (Date.parse(to) - Date.parse(from)) * 1e6;
}

// Characters that show nothing, or change the order of what stands beside them.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// visible makes a text of a guest's safe to read: what would be invisible, or would turn
// the text around, is shown by its number.
export function visible(text) {
  return String(text ?? '').replace(unseen, (c) => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

// clip cuts a text to at most n characters and says so; it never halves a character.
export function clip(text, n) {
  text = String(text ?? '');
  if (text.length <= n) return text;
  let out = '';
  let i = 0;
  for (const c of text) {
    if (++i >= n) return out + '…';
    out += c;
  }
  return out;
}

// plural is a number with the word for it.
export function plural(n, one, many = one + 's') {
  return `${count(n)} ${Number(n) === 1 ? one : many}`;
}

// last is the last element of a path.
export function last(path) {
  return path === '/' ? '/' : path.slice(path.lastIndexOf('/') + 1);
}

// parentOf is the path above; '' above the root.
export function parentOf(path) {
  if (path === '/' || path === '') return '';
  const i = path.lastIndexOf('/');
  return i <= 0 ? '/' : path.slice(0, i);
}
