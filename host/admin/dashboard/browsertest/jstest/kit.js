// Tests of what is pure, run in the browser that the page is for.

const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

// all runs every test: {name, problem} each.
export async function all() {
  const results = [];
  for (const t of tests) {
    try {
      await t.run();
      results.push({ name: t.name, problem: '' });
    } catch (e) {
      results.push({ name: t.name, problem: String(e.stack ?? e) });
    }
  }
  return results;
}

export function equal(got, want, about = '') {
  const [a, b] = [text(got), text(want)];
  if (a !== b) throw new Error(`${about ? about + ': ' : ''}got ${a}, want ${b}`);
}

export function near(got, want, by = 1e-9, about = '') {
  if (!(Math.abs(got - want) <= by)) throw new Error(`${about ? about + ': ' : ''}got ${got}, want ${want}`);
}

export function ok(x, about) {
  if (!x) throw new Error(`not so: ${about}`);
}

export function throws(f, part) {
  try {
    f();
  } catch (e) {
    if (String(e.message).includes(part)) return;
    throw new Error(`threw ${e.message}, not ${part}`);
  }
  throw new Error(`did not throw ${part}`);
}

function text(v) {
  return JSON.stringify(v, (_, x) => (typeof x === 'bigint' ? `${x}n` : x === undefined ? 'undefined' : Number.isNaN(x) ? 'NaN' : x));
}

// random is a generator with a seed (mulberry32): a failure can be had again.
export function random(seed) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { next, below: (n) => Math.floor(next() * n) };
}
