import { heights, offset, range, reveal, scrollFor, tallest } from '/dashboard/lib/geometry.js';
import { equal, near, ok, random, test } from './kit.js';

test('a short list is as high as its rows', () => {
  equal(heights(10, 32), { full: 320, shown: 320 });
  equal(range(0, 200, 10, 32, 0), { first: 0, end: 7, top: 0 });
  equal(range(33, 200, 10, 32, 0), { first: 1, end: 8, top: 32 });
  equal(range(0, 200, 0, 32), { first: 0, end: 0, top: 0 });
});

test('a list that is too high for a browser is squeezed, and both its ends can be reached', () => {
  const [total, row, view] = [1_000_000, 32, 600];
  equal(heights(total, row).shown, tallest);
  equal(range(0, view, total, row, 0).first, 0);
  const end = range(tallest - view, view, total, row, 0);
  equal(end.end, total);
  near(end.top + (total - end.first) * row, tallest, 1e-6, 'the last row ends where the scroller does');
});

test('whatever is shown covers the view, and little more', () => {
  const r = random(1);
  for (let i = 0; i < 2000; i++) {
    const total = 1 + r.below(r.below(2) ? 50 : 2_000_000);
    const row = 20 + r.below(40);
    const view = 100 + r.below(1500);
    const top = r.next() * Math.max(0, heights(total, row).shown - view);
    const spare = r.below(10);
    const { first, end, top: y } = range(top, view, total, row, spare);
    ok(first >= 0 && end <= total && first <= end, `${first} ${end} of ${total}`);
    ok(first === 0 || y <= top + 1e-3, `begins at ${y}, below ${top}`);
    ok(end === total || y + (end - first) * row >= top + view - 1e-3, 'ends too early');
    ok(end - first <= view / row + 2 + 2 * spare, `${end - first} rows`);
  }
});

test('scrollFor is the inverse of offset', () => {
  const r = random(2);
  for (let i = 0; i < 1000; i++) {
    const [total, row, view] = [1 + r.below(3_000_000), 32, 700];
    const at = r.next() * Math.max(0, total * row - view);
    near(offset(scrollFor(at, view, total, row), view, total, row), at, 1e-3 + at * 1e-9);
  }
});

test('a row is revealed with the least movement', () => {
  equal(reveal(0, 100, 320, 32), 0);
  equal(reveal(5, 100, 320, 32), 100);
  equal(reveal(20, 0, 320, 32), 352);
});
