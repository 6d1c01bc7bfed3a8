import { backoff, line, nice, shares } from '/dashboard/lib/plot.js';
import { retry, Series } from '/dashboard/lib/series.js';
import { quantile, since } from '/dashboard/lib/quantile.js';
import { rates, ticks } from '/dashboard/lib/axis.js';
import { graph } from '/dashboard/lib/graph.js';
import { equal, near, ok, random, test } from './kit.js';

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

test('a quantile lies in its bucket', () => {
  const bounds = [10, 20, 50];
  equal(quantile(bounds, [0, 0, 0, 0], 0.5), null);
  equal(quantile(bounds, [10, 0, 0, 0], 0.5), { value: 5, above: false });
  equal(quantile(bounds, [5, 5, 0, 0], 0.9), { value: 18, above: false });
  equal(quantile(bounds, [0, 0, 4, 0], 1), { value: 50, above: false });
  equal(quantile(bounds, [1, 0, 0, 9], 0.99), { value: 50, above: true });
  const r = random(7);
  for (let i = 0; i < 200; i++) {
    const buckets = bounds.concat(0).map(() => r.below(5));
    const qs = [0, 0.1, 0.5, 0.9, 1].map((q) => quantile(bounds, buckets, q)?.value ?? 0);
    ok(qs.every((q, i) => i === 0 || q >= qs[i - 1]), JSON.stringify([buckets, qs]));
  }
  equal(since([3, 4], [1, 4]), [2, 0]);
  equal([since([3, 4], [5, 4]), since([3], [1, 2])], [null, null], 'another system');
  equal(since([3, 4], undefined), [3, 4]);
});

test('ticks are round times of day, few, and in order', () => {
  const at = Date.UTC(2026, 0, 2, 15, 3, 20);
  equal(ticks(at, at + 120_000, 4, 0).map((t) => t.label), ['15:03:30', '15:04:00', '15:04:30', '15:05:00']);
  equal(ticks(at, at + 3_600_000, 4, 0).map((t) => t.label), ['15:15', '15:30', '15:45', '16:00']);
  equal(ticks(at, at + 86_400_000, 4, 3_600_000).map((t) => t.label), ['18:00', '00:00', '06:00', '12:00']);
  equal(ticks(at, at, 4, 0), []);
  for (const span of [1000, 7777, 60_000, 1e6, 5e7, 86_400_000, 1e9]) {
    const list = ticks(at, at + span, 4, 0);
    ok(list.length <= 5 && list.every((t, i) => t.part >= 0 && t.part <= 1 && (i === 0 || t.at > list[i - 1].at)), JSON.stringify([span, list]));
  }
});

test('rates of a history start over with another system', () => {
  equal(rates([{ at: 0, n: 1 }, { at: 1000, n: 11 }, { at: 2000, n: 2 }, { at: 4000, n: 4 }], 'n'), [{ at: 1000, value: 10 }, { at: 4000, value: 1 }]);
  equal(rates([{ at: 0, n: 1 }], 'n'), []);
});

test('a graph has senders to the left, and nothing leaves the picture', () => {
  const g = graph([{ from: 'outside', to: '/user/shop', count: 9 }, { from: '/user/shop', to: '/user/db', count: 5 }, { from: '/user/shop', to: '/user/db', count: 4 }, { from: '/user/db', to: '/user/shop', count: 1 }, { from: '/user/db', to: '/user/db', count: 1 }], { width: 900 });
  const node = Object.fromEntries(g.nodes.map((n) => [n.name, n]));
  equal([node.outside.level, node['/user/shop'].level, node['/user/db'].level], [0, 1, 2]);
  equal([g.arrows.length, g.arrows.find((a) => a.from === '/user/shop').count, g.left], [4, 9, 0], 'kinds are one arrow');
  const r = random(3);
  for (let i = 0; i < 30; i++) {
    const edges = Array.from({ length: 200 }, () => ({ from: `/user/${r.below(60)}`, to: `/user/${r.below(60)}`, count: 1 + r.below(1000) }));
    const g = graph(edges, { width: 1000 });
    ok(g.nodes.length <= 24 && g.arrows.length <= 60 && g.left > 0, String([g.nodes.length, g.arrows.length, g.left]));
    for (const n of g.nodes) ok(n.x >= 0 && n.x + n.width <= 1000 && n.y >= 12 && n.y <= g.height - 12, JSON.stringify([n, g.height]));
    ok(g.arrows.every((a) => !a.path.includes('NaN') && a.weight >= 1 && a.weight <= 6), 'arrows');
  }
  equal(graph([], { width: 10 }).nodes, []);
});
