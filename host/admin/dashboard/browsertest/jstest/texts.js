import { empty, format, params, parse, states, toggleState } from '/dashboard/lib/filter.js';
import { parse as parseJSON, pretty, splice } from '/dashboard/lib/json.js';
import { Lines, Messages } from '/dashboard/lib/lines.js';
import { equal, ok, random, test, throws } from './kit.js';

test('what is typed becomes a query', () => {
  const cases = [
    ['', { states: [], types: [], paths: [], search: '', problems: [] }],
    ['state:delayed,suspended foo', { states: ['delayed', 'suspended'], types: [], paths: [], search: 'foo', problems: [] }],
    ['STATE:Delayed type:shop/* path:/user/x/**', { states: ['delayed'], types: ['shop/*'], paths: ['/user/x/**'], search: '', problems: [] }],
    ['/user/pool-*', { states: [], types: [], paths: ['/user/pool-*'], search: '', problems: [] }],
    ['/user/pool', { states: [], types: [], paths: [], search: '/user/pool', problems: [] }],
    ['type:"a b" x y', { states: [], types: ['a b'], paths: [], search: 'x y', problems: [] }],
    ['foo:bar', { states: [], types: [], paths: [], search: 'foo:bar', problems: [] }],
    ['path:user', { states: [], types: [], paths: [], search: '', problems: ['a path begins with a slash, user does not'] }],
    ['state:', { states: [], types: [], paths: [], search: '', problems: [] }],
    ['type:"never closed', { states: [], types: ['never closed'], paths: [], search: '', problems: [] }],
  ];
  for (const [text, want] of cases) equal(parse(text), want, text);
  ok(parse('state:dead').problems[0].includes('no state is called dead'), 'says what is wrong');
  ok(empty(parse('  ')) && !empty(parse('x')), 'empty');
});

test('format is parsed to the same query', () => {
  const r = random(3);
  for (let i = 0; i < 500; i++) {
    const some = (list) => list.filter(() => r.below(3) === 0);
    const f = { states: some(states), types: some(['shop/*', 'a b', 'native', 'x,y']), paths: some(['/user/**', '/user/pool-?', '/user/a b']), search: some(['foo', 'bar', '/user/x']).join(' '), problems: [] };
    equal(parse(format(f)), f, format(f));
  }
});

test('a state is added and taken away', () => {
  equal(toggleState('foo', 'delayed'), 'state:delayed foo');
  equal(toggleState('state:delayed foo', 'delayed'), 'foo');
  equal(params(parse('state:delayed,paused type:x y')).toString(), 'state=delayed&state=paused&type=x&search=y');
});

test('large integers stay exact', () => {
  equal(pretty(parseJSON('{"a":18446744073709551615,"b":1.5,"c":-9223372036854775808}')), '{"a": 18446744073709551615, "b": 1.5, "c": -9223372036854775808}');
  equal(splice({ to: '/user/a' }, 'message', ' {"n":18446744073709551615} '), '{"to":"/user/a","message":{"n":18446744073709551615}}');
  equal(splice({}, 'message', '1'), '{"message":1}');
  throws(() => splice({}, 'message', '{},"to":"/user/b"'), '');
});

test('JSON is laid out for people', () => {
  equal(pretty({ a: [1, 2, 3], b: { c: null } }), '{"a": [1, 2, 3], "b": {"c": null}}');
  equal(pretty({ a: 'x'.repeat(40), b: 'y'.repeat(40) }), `{\n  "a": "${'x'.repeat(40)}",\n  "b": "${'y'.repeat(40)}"\n}`);
  equal(pretty([]), '[]');
  equal(pretty('<b>'), '"<b>"');
  ok(pretty('z'.repeat(30000)).endsWith('10002 more characters'), 'is bounded');
  let deep = 1;
  for (let i = 0; i < 100; i++) deep = [deep, 'x'.repeat(80)];
  ok(pretty(deep).includes('…'), 'depth is bounded');
  const r = random(4);
  const any = (d) => (d === 0 || r.below(3) === 0 ? [1, 'text', null, true, 2.5, ''][r.below(6)] : r.below(2) ? Array.from({ length: r.below(5) }, () => any(d - 1)) : Object.fromEntries(Array.from({ length: r.below(5) }, (_, i) => [`k${i}`, any(d - 1)])));
  for (let i = 0; i < 300; i++) {
    const v = any(5);
    equal(JSON.parse(pretty(v)), v);
  }
});

test('bytes in any pieces are the same lines', () => {
  const text = 'one\n{"a":"ä漢👩"}\n\nlast\n';
  const all = new TextEncoder().encode(text);
  const r = random(5);
  for (let i = 0; i < 200; i++) {
    const lines = new Lines(1000);
    const out = [];
    for (let at = 0; at < all.length;) {
      const n = 1 + r.below(7);
      out.push(...lines.push(all.slice(at, at + n)));
      at += n;
    }
    equal(out, ['one', '{"a":"ä漢👩"}', '', 'last']);
  }
});

test('the events of a stream, in any pieces', () => {
  const all = new TextEncoder().encode(': hello\nid: 7\ndata: {"a":1}\n\nid: 8\nevent: x\ndata: two\ndata: lines\r\n\r\ndata:bare\n\n\ndata: not yet over\n');
  const r = random(6);
  for (let i = 0; i < 100; i++) {
    const m = new Messages(1000);
    const out = [];
    for (let at = 0; at < all.length;) {
      const n = 1 + r.below(9);
      out.push(...m.push(all.slice(at, at + n)));
      at += n;
    }
    equal(out, [{ id: '7', data: '{"a":1}' }, { id: '8', data: 'two\nlines' }, { id: '8', data: 'bare' }]);
  }
});

test('a line without end takes no memory', () => {
  const lines = new Lines(100);
  const push = (s) => lines.push(new TextEncoder().encode(s));
  for (let i = 0; i < 50; i++) equal(push('x'.repeat(60)), []);
  ok(lines.rest.length <= 100, 'is forgotten');
  equal(push('x\nnext\n'), ['next']);
  equal(push('y'.repeat(200) + '\nz\n'), ['z']);
});
