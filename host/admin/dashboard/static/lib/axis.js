// A time axis: where its ticks are and what they say.

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].map((s) => s * 1000);

// ticks are times of the day at round steps between two times, at most so many: {at, part,
// label}, where part is how far along it is, from 0 to 1. offset is what local time is ahead of
// universal time, in ms.
export function ticks(from, to, most, offset) {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const step = steps.find((s) => span / s <= most) ?? 86_400_000 * Math.ceil(span / most / 86_400_000);
  const out = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) {
    const t = new Date(at + offset);
    const pad = (n) => String(n).padStart(2, '0');
    const label = `${pad(t.getUTCHours())}:${pad(t.getUTCMinutes())}${step < 60_000 ? `:${pad(t.getUTCSeconds())}` : ''}`;
    out.push({ at, part: (at - from) / span, label });
  }
  return out;
}

// rates are the changes a second of a counter between moments, {at, value}; a counter that has
// fallen is that of another system and starts over.
export function rates(moments, name) {
  const out = [];
  for (let i = 1; i < moments.length; i++) {
    const [a, b] = [moments[i - 1], moments[i]];
    if (b.at > a.at && b[name] >= a[name]) out.push({ at: b.at, value: ((b[name] - a[name]) * 1000) / (b.at - a.at) });
  }
  return out;
}
