import { Flat } from '/dashboard/lib/flat.js';
import { pageSize, Tree } from '/dashboard/lib/tree.js';
import { equal, ok, random, test } from './kit.js';

const row = (path, children = 0) => ({ path, children, state: 'running' });

function small() {
  const t = new Tree(row('/user', 3));
  t.root.open = true;
  t.setPage('/user', 0, 3, [row('/user/a', 2), row('/user/b'), row('/user/c', 1)]);
  return t;
}

const paths = (t) => Array.from({ length: t.size() }, (_, i) => t.at(i).path);

test('a tree lists what is open', () => {
  const t = small();
  equal(paths(t), ['/user', '/user/a', '/user/b', '/user/c']);
  ok(t.expand('/user/a'), 'a can be opened');
  ok(!t.expand('/user/b'), 'b has nothing below it');
  equal(paths(t), ['/user', '/user/a', null, null, '/user/b', '/user/c']);
  equal(t.needs(0, 10), [{ path: '/user/a', number: 0 }]);
  t.setPage('/user/a', 0, 2, [row('/user/a/x'), row('/user/a/y')]);
  ok(t.expand('/user/c'), 'c can be opened');
  t.setPage('/user/c', 0, 1, [row('/user/c/z')]);
  equal(paths(t), ['/user', '/user/a', '/user/a/x', '/user/a/y', '/user/b', '/user/c', '/user/c/z']);
  equal(t.at(6).level, 3);
  equal(t.indexOf('/user/c/z'), 6);
  equal(t.indexOf('/user/nobody'), -1);
  ok(t.collapse('/user/a'), 'a is closed');
  equal(paths(t), ['/user', '/user/a', '/user/b', '/user/c', '/user/c/z']);
});

test('10^5 children are loaded by the page, as they come into view', () => {
  const t = new Tree(row('/user', 100_000));
  t.root.open = true;
  equal(t.size(), 100_001);
  equal(t.needs(0, 40), [{ path: '/user', number: 0 }]);
  equal(t.needs(99_990, 100_001), [{ path: '/user', number: 499 }]);
  equal(t.needs(pageSize - 5, pageSize + 5), [{ path: '/user', number: 0 }, { path: '/user', number: 1 }]);
  for (let n = 0; n < 500; n++) {
    t.setPage('/user', n, 100_000, Array.from({ length: pageSize }, (_, i) => row(`/user/${n}-${i}`)));
    t.trim(n * pageSize, n * pageSize + 40);
  }
  ok(t.root.pages.size <= 40, `${t.root.pages.size} pages are kept`);
  equal(t.at(99_999).path, '/user/499-198');
});

test('a refresh asks again for what is in view, and shows it as it was meanwhile', () => {
  const t = small();
  equal(t.needs(0, 4), []);
  t.fresh();
  equal(t.needs(0, 4), [{ path: '/user', number: 0 }]);
  equal(paths(t).length, 4);
  t.setPage('/user', 0, 3, [row('/user/a', 2), row('/user/b'), row('/user/c', 1)]);
  equal(t.needs(0, 4), []);
});

test('a refresh far down asks for what stands above it, too', () => {
  const t = new Tree(row('/user', 2));
  t.root.open = true;
  t.setPage('/user', 0, 2, [row('/user/a'), row('/user/crowd', 1000)]);
  t.expand('/user/crowd');
  for (let n = 0; n < 5; n++) t.setPage('/user/crowd', n, 1000, Array.from({ length: pageSize }, (_, i) => row(`/user/crowd/${n}-${i}`)));
  equal(t.needs(900, 940), []);
  t.fresh();
  equal(t.needs(900, 940), [{ path: '/user/crowd', number: 4 }, { path: '/user', number: 0 }]);
  t.setPage('/user', 0, 1, [row('/user/crowd', 1000)]);
  equal(t.size(), 1002);
  equal(t.at(901).path, '/user/crowd/4-99');
});

test('open children move with their rows, and are closed when they have gone', () => {
  const t = small();
  t.expand('/user/c');
  t.setPage('/user/c', 0, 1, [row('/user/c/z')]);
  t.setPage('/user', 0, 4, [row('/user/a', 2), row('/user/aa'), row('/user/b'), row('/user/c', 1)]);
  equal(paths(t), ['/user', '/user/a', '/user/aa', '/user/b', '/user/c', '/user/c/z']);
  t.setPage('/user', 0, 2, [row('/user/a', 2), row('/user/b')]);
  equal(paths(t), ['/user', '/user/a', '/user/b']);
});

test('a path that begins as another one is not below it', () => {
  const t = new Tree(row('/user', 2));
  t.root.open = true;
  t.setPage('/user', 0, 2, [row('/user/a', 1), row('/user/ab', 1)]);
  t.expand('/user/a');
  t.expand('/user/ab');
  t.setPage('/user/ab', 0, 1, [row('/user/ab/c')]);
  equal(t.indexOf('/user/ab/c'), 4);
  equal(t.indexOf('/user/ab'), 3);
});

// A tree as nested lists says row by row what Tree must say.
test('any tree, opened and closed at random, is what a plain walk of it says', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const r = random(seed);
    let wide = 2; // nodes with several pages of children
    const make = (path, depth) => {
      const n = depth > 3 ? 0 : r.below(wide > 0 && r.below(5) === 0 ? (wide--, 450) : 5);
      return { path, kids: Array.from({ length: n }, (_, i) => make(`${path}/${String(i).padStart(3, '0')}`, depth + (n > 5 ? 3 : 1) + r.below(2))) };
    };
    const model = make('/user', 0);
    const open = new Set(['/user']);
    const t = new Tree(row('/user', model.kids.length));
    t.root.open = true;
    const all = new Map();
    const index = (n) => (all.set(n.path, n), n.kids.forEach(index));
    index(model);
    const load = () => {
      for (let round = 0; round < 20; round++) {
        const needs = t.needs(0, t.size());
        if (needs.length === 0) return;
        for (const { path, number } of needs) {
          const kids = all.get(path).kids;
          t.setPage(path, number, kids.length, kids.slice(number * pageSize, (number + 1) * pageSize).map((k) => row(k.path, k.kids.length)));
        }
      }
      ok(false, 'loading never ends');
    };
    const walk = (n, level, out) => {
      out.push([n.path, level]);
      if (open.has(n.path)) n.kids.forEach((k) => walk(k, level + 1, out));
      return out;
    };
    load();
    for (let step = 0; step < 12; step++) {
      const shown = walk(model, 1, []);
      const [path] = shown[r.below(shown.length)];
      if (path !== '/user' && open.has(path)) {
        t.collapse(path);
        for (const p of [...open]) if (p === path || p.startsWith(path + '/')) open.delete(p);
      } else if (path !== '/user' && t.expand(path)) {
        open.add(path);
      }
      load();
      const want = walk(model, 1, []);
      equal(t.size(), want.length, `seed ${seed}: rows`);
      want.forEach(([p, level], i) => {
        const got = t.at(i);
        if (got.path !== p || got.level !== level) equal([got.path, got.level], [p, level], `seed ${seed}: row ${i}`);
      });
      const i = r.below(want.length);
      equal(t.indexOf(want[i][0]), i, `seed ${seed}: indexOf ${want[i][0]}`);
    }
  }
});

test('a list is loaded by the page', () => {
  const f = new Flat();
  equal(f.needs(0, 40), [0]);
  f.setPage(0, 450, Array.from({ length: pageSize }, (_, i) => row(`/user/${i}`)));
  equal(f.needs(0, 40), []);
  equal(f.needs(190, 450), [1, 2]);
  f.fresh();
  equal(f.needs(0, 40), [0]);
  f.setPage(0, 0, []);
  equal(f.size(), 0);
  f.fresh();
  equal(f.needs(0, 40), [0]);
  f.setPage(0, 100_000, Array.from({ length: pageSize }, (_, i) => row(`/user/${i}`)));
  equal(f.needs(99_990, 100_000), [499]);
  equal(f.indexOf('/user/7'), 7);
  equal(f.indexOf('/user/x'), -1);
});
