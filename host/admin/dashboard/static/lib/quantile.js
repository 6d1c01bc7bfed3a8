// Quantiles of histograms: buckets that count durations, of which the last has no bound.

// since is what has been counted between two looks; null if before is of another system.
export function since(now, before) {
  if (!before) return now;
  if (now.length !== before.length) return null;
  const out = now.map((n, i) => n - before[i]);
  return out.some((n) => n < 0) ? null : out;
}

export function total(buckets) {
  return buckets.reduce((n, b) => n + b, 0);
}

// quantile is the value below which the part q of what was counted lies, taken to be spread
// evenly within its bucket; null if nothing was counted. above says that it lies in the last
// bucket: the value is then its lower bound.
export function quantile(bounds, buckets, q) {
  const all = total(buckets);
  if (all === 0) return null;
  const rank = q * all;
  let before = 0;
  for (let i = 0; i < buckets.length; i++) {
    if (buckets[i] === 0 || before + buckets[i] < rank) {
      before += buckets[i];
      continue;
    }
    const low = i === 0 ? 0 : bounds[i - 1];
    if (i >= bounds.length) return { value: low, above: true };
    return { value: low + (bounds[i] - low) * Math.min(1, Math.max(0, (rank - before) / buckets[i])), above: false };
  }
  return { value: bounds.at(-1), above: true };
}
