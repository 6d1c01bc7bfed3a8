// Rates of counters that only grow, from samples taken now and then.

export class Series {
  // most is how many samples are kept; a gap longer than gap (ms) starts over, for nobody
  // knows what has happened in it, and so does a counter that has fallen: that is another
  // system. Gauges may fall.
  constructor({ most = 120, gap = 30_000, gauges = [] } = {}) {
    this.most = most;
    this.gap = gap;
    this.gauges = new Set(gauges);
    this.samples = []; // {at: ms, values}
  }

  // push takes all values at a time, in milliseconds.
  push(at, values) {
    const last = this.samples.at(-1);
    if (last && at <= last.at) return;
    if (last && (at - last.at > this.gap || Object.keys(values).some((k) => !this.gauges.has(k) && values[k] < last.values[k]))) this.samples = [];
    this.samples.push({ at, values });
    if (this.samples.length > this.most) this.samples.shift();
  }

  // rates are the changes a second between neighbouring samples: {at, value}.
  rates(name) {
    const out = [];
    for (let i = 1; i < this.samples.length; i++) {
      const [a, b] = [this.samples[i - 1], this.samples[i]];
      out.push({ at: b.at, value: ((b.values[name] - a.values[name]) * 1000) / (b.at - a.at) });
    }
    return out;
  }

  // rate is the last of them; null before there are two samples.
  rate(name) {
    const n = this.samples.length;
    if (n < 2) return null;
    const [a, b] = [this.samples[n - 2], this.samples[n - 1]];
    return ((b.values[name] - a.values[name]) * 1000) / (b.at - a.at);
  }

  // values are the samples of one name: {at, value}.
  values(name) {
    return this.samples.map((s) => ({ at: s.at, value: s.values[name] }));
  }
}

// retry is how long to wait before attempt n (from 0) to reach the server, in ms: it doubles
// from half a second to half a minute, times 0.5 to 1 so that many pages do not come at once.
// random is in [0, 1).
export function retry(n, random) {
  return Math.min(30_000, 500 * 2 ** Math.min(n, 10)) * (0.5 + random / 2);
}
