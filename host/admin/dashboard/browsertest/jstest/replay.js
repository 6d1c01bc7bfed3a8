import { says, stepOf, steps, timeAt } from '/dashboard/lib/replay.js';
import { equal, test } from './kit.js';

const of = (at) => ({ begin: '2026-01-01T00:00:00.123456789Z', end: '2026-01-01T00:00:02.000000001Z', at });

test('the ends of a slider are the ends of the recording', () => {
  const r = of(of().begin);
  equal([stepOf(r), timeAt(r, 0)], [0, r.begin]);
  equal([stepOf(of(r.end)), timeAt(r, steps(r))], [steps(r), r.end]);
});

test('every step is a time of the recording, and leads back', () => {
  const r = of('');
  for (let s = 1; s < steps(r); s += 7) {
    const at = timeAt(r, s);
    equal([at > r.begin, at < r.end, stepOf(of(at))], [true, true, s], at);
  }
});

test('a recording of one turn has two steps', () => {
  const one = { begin: '2026-01-01T00:00:00Z', end: '2026-01-01T00:00:00Z', at: '2026-01-01T00:00:00Z' };
  equal([steps(one), stepOf(one), timeAt(one, 0), timeAt(one, 1)], [1, 1, one.begin, one.end]);
});

test('a step is said as the time since the begin', () => equal([says(0), says(1250), says(61_005)], ['0.000 s', '1.250 s', '1 min 1.005 s']));
