// Where in a recording a slider is: a step is a millisecond since its begin. The two ends are the recording's own times, which are
// finer than that.

const from = (r) => Math.floor(Date.parse(r.begin));

// steps is how many there are.
export function steps(r) {
  return Math.max(Math.ceil(Date.parse(r.end)) - from(r), 1);
}

// stepOf is the step of the time that is shown.
export function stepOf(r) {
  if (r.at === r.end) return steps(r);
  return r.at === r.begin ? 0 : Math.min(Math.max(Math.floor(Date.parse(r.at)) - from(r), 0), steps(r));
}

// timeAt is the time of a step, as the server takes it.
export function timeAt(r, step) {
  if (step <= 0) return r.begin;
  return step >= steps(r) ? r.end : new Date(from(r) + step).toISOString();
}

// says is a step in words: the time since the begin.
export function says(step) {
  const s = step / 1000;
  const minutes = Math.floor(s / 60);
  return minutes > 0 ? `${minutes} min ${(s - minutes * 60).toFixed(3)} s` : `${s.toFixed(3)} s`;
}
