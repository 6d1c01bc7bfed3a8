// Where the lines of charts go. Pictures are in pixels from the upper left corner.

// line is the path of values over a width and a height, the oldest at the left; area is the
// same closed at the bottom. Values are {at, value}.
export function line(values, width, height, round = nice) {
  const known = values.filter((v) => Number.isFinite(v.value));
  if (known.length === 0) return { path: '', area: '', top: 0 };
  const [from, to] = [known[0].at, known.at(-1).at];
  const most = round(Math.max(...known.map((v) => v.value), 0));
  const x = (v) => (to === from ? width : ((v.at - from) / (to - from)) * width);
  const y = (v) => height - (most > 0 ? Math.min(v.value / most, 1) : 0) * height;
  const points = known.map((v) => `${tenth(x(v))},${tenth(y(v))}`);
  if (points.length === 1) points.unshift(`0,${tenth(y(known[0]))}`);
  const path = 'M' + points.join('L');
  const first = known.length === 1 ? 0 : tenth(x(known[0]));
  return { path, area: `${path}L${tenth(x(known.at(-1)))},${height}L${first},${height}Z`, top: most };
}

// nice is the least of 1, 2, 5 times a power of ten that is not below x.
export function nice(x) {
  if (!(x > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(x));
  for (const m of [1, 2, 5, 10]) if (m * p >= x * (1 - 1e-12)) return m * p;
  return 10 * p;
}

// niceBytes is the same in powers of two.
export function niceBytes(x) {
  return x > 1024 ? 2 ** Math.ceil(Math.log2(x)) : 1024;
}

// backoff places the delays of a curve: one dot for each attempt, a line through them, ticks,
// and the attempt that is due. Delays that differ by more than two orders are drawn by their
// logarithm. points are {attempt, delay_ns}, in order of attempts.
export function backoff(points, attempt, box) {
  const { width, height, left = 74, right = 12, top = 12, bottom = 24 } = box;
  const all = points.filter((p) => Number.isFinite(p.delay_ns) && p.delay_ns >= 0);
  if (all.length === 0) return null;
  const delays = all.map((p) => p.delay_ns);
  const most = Math.max(...delays);
  const positive = delays.filter((d) => d > 0);
  const least = positive.length > 0 ? Math.min(...positive) : 0;
  const log = least > 0 && most / least > 100;
  const [a0, a1] = [all[0].attempt, all.at(-1).attempt];
  const w = width - left - right;
  const h = height - top - bottom;
  const x = (a) => left + (a1 === a0 ? 0.5 : (Math.min(Math.max(a, a0), a1) - a0) / (a1 - a0)) * w;
  const floor = log ? Math.log10(least) - 0.15 : 0; // a delay of 0 stands on the floor
  const ceiling = log ? Math.log10(most) : most;
  const part = (d) => (log ? (d > 0 ? (Math.log10(d) - floor) / (ceiling - floor) : 0) : ceiling > 0 ? d / ceiling : 0);
  const y = (d) => top + (1 - part(d)) * h;
  const dots = all.map((p) => ({ x: tenth(x(p.attempt)), y: tenth(y(p.delay_ns)), attempt: p.attempt, delay_ns: p.delay_ns }));
  let now = null;
  if (Number.isFinite(attempt) && attempt >= a0) {
    const p = all.findLast((q) => q.attempt <= attempt);
    now = { x: tenth(x(p.attempt)), y: tenth(y(p.delay_ns)), attempt, delay_ns: p.delay_ns, beyond: attempt > a1 };
  }
  const ticks = (log ? [least, Math.sqrt(least * most), most] : [0, most / 2, most]).map((d) => ({ y: tenth(y(d)), delay_ns: d }));
  const step = Math.max(1, Math.ceil((a1 - a0) / 6));
  const steps = [];
  for (let a = a0; a <= a1; a += step) steps.push({ x: tenth(x(a)), attempt: a });
  return { path: 'M' + dots.map((d) => `${d.x},${d.y}`).join('L'), dots, now, ticks, steps, log, left, right: width - right, bottom: height - bottom };
}

// shares are widths in percent that add up to 100, or all 0. Parts that exist get something.
export function shares(parts, least = 0.5) {
  const sum = parts.reduce((n, p) => n + Math.max(0, p), 0);
  if (sum === 0) return parts.map(() => 0);
  const raw = parts.map((p) => (p > 0 ? Math.max(least, (p / sum) * 100) : 0));
  const total = raw.reduce((n, p) => n + p, 0);
  return raw.map((p) => (p * 100) / total);
}

function tenth(x) {
  return Math.round(x * 10) / 10;
}
