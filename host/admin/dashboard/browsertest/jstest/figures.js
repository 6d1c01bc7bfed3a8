import { backoff, line, nice, shares } from '/dashboard/lib/plot.js';
import { retry, Series } from '/dashboard/lib/series.js';
import { equal, near, ok, test } from './kit.js';

test('rates are changes a second', () => {
  const s = new Series({ gauges: ['held'] });
  equal(s.rate('turns'), null);
  s.push(1000, { turns: 10, held: 5 });
  equal(s.rate('turns'), null);
  s.push(3000, { turns: 30, held: 1 });
  equal(s.rate('turns'), 10);
  s.push(3500, { turns: 30, held: 9 });
  equal(s.rates('turns'), [{ at: 3000, value: 10 }, { at: 3500, value: 0 }]);
  equal(s.values('held').map((v) => v.value), [5, 1, 9]);
  s.push(3500, { turns: 99, held: 0 });
  equal(s.samples.length, 3, 'a time that has been is no news');
});

test('another system, or a long gap, starts over', () => {
  const s = new Series();
  s.push(0, { turns: 100 });
  s.push(1000, { turns: 110 });
  s.push(2000, { turns: 3 });
  equal([s.samples.length, s.rate('turns')], [1, null]);
  s.push(3000, { turns: 5 });
  equal(s.rate('turns'), 2);
  s.push(60_000, { turns: 6 });
  equal(s.rate('turns'), null);
});

test('so many samples are kept', () => {
  const s = new Series({ most: 5 });
  for (let i = 0; i < 20; i++) s.push(i * 1000, { n: i });
  equal(s.samples.length, 5);
});

test('waits between attempts double, and stay bounded', () => {
  equal([0, 1, 2, 6, 100].map((n) => retry(n, 1)), [500, 1000, 2000, 30000, 30000]);
  equal(retry(3, 0), 2000);
});

test('a line goes from left to right, and the largest value is at most at the top', () => {
  const l = line([{ at: 0, value: 0 }, { at: 10, value: 4 }, { at: 20, value: 2 }], 100, 50);
  equal(l.path, 'M0,50L50,10L100,30');
  equal(l.top, 5);
  ok(l.area.endsWith('L100,50L0,50Z'), l.area);
  equal(line([], 100, 50).path, '');
  equal(line([{ at: 1, value: 1 }], 100, 50).path, 'M0,0L100,0');
  ok(!line([{ at: 1, value: NaN }, { at: 2, value: 3 }], 100, 50).path.includes('NaN'), 'what is not known is left out');
});

test('nice', () => {
  equal([0, 0.3, 1, 1.2, 3, 7, 10, 11, 4999].map(nice), [1, 0.5, 1, 2, 5, 10, 10, 20, 5000]);
});

const points = (...delays) => delays.map((d, i) => ({ attempt: i + 1, delay_ns: d }));

test('the present point lies on the curve', () => {
  const box = { width: 420, height: 180 };
  const p = backoff(points(1e9, 2e9, 4e9, 8e9), 3, box);
  equal(p.dots.length, 4);
  equal([p.now.x, p.now.y, p.now.beyond], [p.dots[2].x, p.dots[2].y, false]);
  ok(p.dots[0].y > p.dots[3].y, 'longer delays are higher');
  equal(p.log, false);
  equal(backoff(points(1e9, 2e9), 9, box).now.beyond, true);
  equal(backoff(points(1e9, 2e9), 9, box).now.x, backoff(points(1e9, 2e9), 2, box).now.x);
  equal(backoff(points(1e9), NaN, box).now, null);
  equal(backoff(points(1e9), 0, box).now, null);
  equal(backoff([], 1, box), null);
});

test('delays of several orders are drawn by their logarithm, and none leaves the picture', () => {
  const box = { width: 420, height: 180 };
  for (const delays of [[1e6, 1e7, 1e8, 1e9, 1e10], [0, 1e6, 1e9], [0, 0, 0], [5e9], [9.2e18, 1]]) {
    const p = backoff(points(...delays), 2, box);
    for (const d of p.dots) ok(d.x >= 0 && d.x <= 420 && d.y >= 0 && d.y <= 180, JSON.stringify([delays, d]));
    ok(!p.path.includes('NaN'), p.path);
  }
  const p = backoff(points(1e6, 1e7, 1e8, 1e9, 1e10), 1, box);
  ok(p.log, 'is logarithmic');
  near(p.dots[0].y - p.dots[1].y, p.dots[3].y - p.dots[4].y, 0.2, 'equal factors are equal steps');
});

test('shares add up, and nothing that exists is invisible', () => {
  equal(shares([0, 0]), [0, 0]);
  const s = shares([100000, 1, 0]);
  near(s[0] + s[1] + s[2], 100, 1e-9);
  ok(s[1] > 0.4 && s[2] === 0, String(s));
});
