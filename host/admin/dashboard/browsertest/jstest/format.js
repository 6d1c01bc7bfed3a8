import { bytes, clip, clock, count, countdown, duration, exact, last, parentOf, plural, rate, visible } from '/dashboard/lib/format.js';
import { equal, ok, test } from './kit.js';

const table = (name, f, cases) => test(name, () => cases.forEach(([from, want]) => equal(f(from), want, `${name}(${from})`)));

table('exact', exact, [[0, '0'], [999, '999'], [1000, '1,000'], [-1234567, '-1,234,567'], [18446744073709551615n, '18,446,744,073,709,551,615']]);
table('count', count, [[0, '0'], [undefined, '0'], [9999, '9,999'], [10000, '10k'], [12345, '12.3k'], [999949, '1M'], [999400, '999k'], [1e6, '1M'], [1234567, '1.23M'], [5e9, '5G'], [1.8e19, '18E'], [-20000, '-20k'], [NaN, '–']]);
table('bytes', bytes, [[0, '0 B'], [1023, '1023 B'], [1024, '1 KiB'], [1536, '1.5 KiB'], [1048575, '1 MiB'], [64 << 20, '64 MiB'], [3 * 2 ** 40, '3 TiB'], [-2048, '-2 KiB']]);
table('rate', rate, [[null, '–'], [0, '0/s'], [0.001, '<0.01/s'], [0.25, '0.25/s'], [3, '3/s'], [99.95, '100/s'], [1234, '1.23k/s'], [2.5e6, '2.5M/s'], [Infinity, '–']]);
table('duration', duration, [
  [0, '0 ns'], [850, '850 ns'], [1500, '1.5 µs'], [2e6, '2 ms'], [999.6e6, '1 s'], [1.25e9, '1.25 s'], [59.6e9, '1 min'], [125e9, '2 min 5 s'], [3599.7e9, '1 h'],
  [11520e9, '3 h 12 min'], [86400e9, '1 d'], [100 * 3600e9, '4 d 4 h'], [-5e6, '-5 ms'],
]);
table('countdown', countdown, [[0, 'now'], [-1, 'now'], [undefined, 'now'], [1, '0.1 s'], [1.2e9, '1.2 s'], [9.99e9, '10.0 s'], [10.2e9, '11 s'], [59e9, '59 s'], [61e9, '1:01 min'], [3661e9, '1:01:01 h']]);
table('plural', (n) => plural(n, 'actor'), [[0, '0 actors'], [1, '1 actor'], [12345, '12.3k actors']]);
table('last', last, [['/', '/'], ['/user', 'user'], ['/user/a/b', 'b']]);
table('parentOf', parentOf, [['/', ''], ['/user', '/'], ['/user/a/b', '/user/a'], ['', '']]);

test('a countdown shows 0 only at its end', () => {
  for (let ns = 1; ns < 2e10; ns = Math.ceil(ns * 1.37)) ok(countdown(ns) !== '0.0 s' && countdown(ns) !== 'now', String(ns));
});

test('clock', () => {
  ok(/^\d\d:\d\d:\d\d\.123$/.test(clock('2026-01-02T03:04:05.123456789Z')), clock('2026-01-02T03:04:05.123456789Z'));
  equal(clock('never'), '–');
});

test('what is invisible, or turns the text around, is shown by number', () => {
  equal(visible('a\u202eb'), 'a⟨202E⟩b');
  equal(visible('\u0000\u200b\u2066\ufeff\u{e0041}'), '⟨0000⟩⟨200B⟩⟨2066⟩⟨FEFF⟩⟨E0041⟩');
  equal(visible('line\n\ttab, äöü 漢字 👩 <b>&amp;'), 'line\n\ttab, äöü 漢字 👩 <b>&amp;');
  equal(visible(undefined), '');
});

test('clip never halves a character', () => {
  equal(clip('abc', 3), 'abc');
  equal(clip('abcd', 3), 'ab…');
  equal(clip('👩👩👩', 2), '👩…');
  equal(clip(null, 2), '');
});
