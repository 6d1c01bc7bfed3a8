// The tree of actors, or, when something is looked for or sorted, a list. Children are loaded
// by the page as they come into view.

import { actorLink, attr, badge, h, show, text } from '../ui/dom.js';
import { bytes, count, exact, last, plural, visible } from '../lib/format.js';
import { empty, format, params, parse, states, toggleState } from '../lib/filter.js';
import { Flat } from '../lib/flat.js';
import { pageSize, Tree } from '../lib/tree.js';
import { stack } from '../ui/chart.js';
import { dueAt, setWait } from '../ui/ticker.js';
import { column, Rows } from '../ui/rows.js';
import { bulk } from '../ui/verbs.js';
import { get, mayChange } from '../ui/api.js';

export const title = 'Actors';

const root = '/user';

export function mount(place, app) {
  const wants = app.route.params;
  let typed = wants.get('q') ?? '';
  let filter = parse(typed);
  let [sort, desc] = [wants.get('sort') ?? '', wants.get('desc') === '1'];
  let model = null;
  let view = [0, 40]; // the rows that are on the screen
  let loading = null;
  let timer = 0;

  const field = h('input', { type: 'search', name: 'q', value: typed, placeholder: 'state:delayed type:shop/* /user/pool/** text', 'aria-label': 'Find actors', 'aria-describedby': 'found', autocapitalize: 'none', spellcheck: 'false', data: { search: '' } });
  const found = h('p', { class: 'help', id: 'found', role: 'status' });
  const chips = states.map((s) => h('button', { type: 'button', class: 'chip', 'aria-pressed': 'false', data: { state: s }, on: { click: () => go({ q: toggleState(typed, s) }) } }, badge(s)));
  const clear = h('button', { type: 'button', on: { click: () => go({ q: '', sort: '', desc: false }) } }, 'Show the tree');
  const many = h('details', { class: 'bulk' }, h('summary', {}, 'Act on all that match…'));
  many.append(bulk(select, () => `all that match “${typed}”`, () => app.refresh()));

  const rows = new Rows({
    label: 'Actors', columns: columns(), model: { size: () => 0, at: () => ({}), indexOf: () => -1 },
    wanted: (first, end) => {
      view = [first, end];
      soon();
    },
    opened: (item) => (location.hash = actorLink(item.path)),
    toggle: (item, open) => {
      if (open ? model.expand(item.path) : model.collapse(item.path)) {
        rows.update();
        remember();
      }
    },
    sorted: (name) => go({ sort: name, desc: (sort || 'path') === name ? !desc : name !== 'path' && name !== 'type' && name !== 'state' }),
  });
  show(place, h('h1', {}, 'Actors'),
    h('form', { class: 'bar', role: 'search', on: { submit: (e) => (e.preventDefault(), go({ q: field.value })) } }, field, h('button', { type: 'submit' }, 'Find'), clear),
    h('div', { class: 'chips', role: 'group', 'aria-label': 'Filter by state' }, chips),
    found, mayChange() ? many : null, rows.element);

  // go changes what is looked for, in the address too.
  function go({ q = typed, sort: s = sort, desc: d = desc }) {
    typed = q;
    filter = parse(typed);
    [sort, desc] = [s, d];
    const p = new URLSearchParams();
    if (typed) p.set('q', typed);
    if (sort) p.set('sort', sort);
    if (sort && desc) p.set('desc', '1');
    history.replaceState(null, '', p.size > 0 ? `#/actors?${p}` : '#/actors');
    begin();
    app.refresh();
  }

  const flat = () => !empty(filter) || sort !== '';

  function select() {
    return { paths: filter.paths, types: filter.types, states: filter.states, ...(filter.search ? { paths: [...filter.paths], search: filter.search } : {}) };
  }

  function begin() {
    loading?.abort();
    loading = null;
    if (field.value !== typed) field.value = typed;
    chips.forEach((c) => attr(c, 'aria-pressed', String(filter.states.includes(c.dataset.state))));
    clear.hidden = !flat();
    many.hidden = empty(filter) || filter.search !== '' || filter.problems.length > 0;
    rows.element.classList.toggle('flat', flat());
    rows.order(sort || 'path', desc);
    model = flat() ? new Flat() : new Tree({ path: root, type: '', state: 'running', children: 1 });
    if (!flat()) model.root.open = true;
    says();
    rows.show(model, !flat());
  }

  function says() {
    if (filter.problems.length > 0) text(found, filter.problems.join('; '));
    else if (flat()) text(found, `${plural(model.total, 'actor')} found`);
    else text(found, app.system ? `${plural(app.system.actors, 'actor')} in all; ${exact(model.size())} in the open part of the tree` : '');
    found.classList.toggle('problem', filter.problems.length > 0);
  }

  // soon loads what has come into view, once scrolling rests for a moment.
  function soon() {
    if (timer || missing().length === 0) return;
    timer = setTimeout(async () => {
      timer = 0;
      try {
        await load();
      } catch (problem) {
        if (problem.status === undefined && problem.name !== 'AbortError') throw problem;
      }
    }, 40);
  }

  const missing = () => (model ? model.needs(...view) : []);

  // load fetches the pages that the view lacks. Opening a node can make more of them come
  // into view, so it looks again.
  async function load(signal) {
    if (loading) return loading.done;
    const mine = (loading = new AbortController());
    signal?.addEventListener('abort', () => mine.abort());
    const of = model;
    mine.done = (async () => {
      try {
        for (let round = 0; round < 4 && of === model; round++) {
          const pages = missing().slice(0, 6);
          if (pages.length === 0) break;
          await Promise.all(pages.map((p) => (flat() ? loadFlat(of, p, mine.signal) : loadTree(of, p, mine.signal))));
          if (of !== model) return;
          of.trim(...view);
          rows.update();
          says();
        }
      } finally {
        if (loading === mine) loading = null;
      }
    })();
    return mine.done;
  }

  async function loadFlat(of, number, signal) {
    if (filter.problems.length > 0) return of.setPage(0, 0, []);
    const q = params(filter);
    q.set('sort', sort || 'path');
    if (desc) q.set('desc', 'true');
    q.set('offset', number * pageSize);
    q.set('limit', pageSize);
    const page = await get('actors', q, signal);
    of.setPage(number, page.total, page.actors.map(stamped));
  }

  async function loadTree(of, { path, number }, signal) {
    try {
      const node = await get('tree', { under: path, depth: 1, offset: number * pageSize, limit: pageSize, sort: 'path' }, signal);
      of.setPage(path, number, node.children, (node.nodes ?? []).map(stamped));
      of.setRow(stamped(node));
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      of.collapse(path); // it has stopped meanwhile
    }
  }

  // What was open is open again when somebody comes back.
  function remember() {
    app.opened = new Set();
    const walk = (n) => n.opened.forEach((k, p) => (app.opened.add(p), walk(k)));
    if (model instanceof Tree) walk(model.root);
  }

  begin();
  let first = true;
  return {
    async refresh(signal) {
      if (loading) await loading.done.catch(() => {});
      model.fresh();
      await load(signal);
      if (first && model instanceof Tree && app.opened?.size > 0) {
        for (const p of [...app.opened].sort()) {
          if (model.expand(p)) {
            rows.update();
            await load(signal);
          }
        }
      }
      first = false;
    },
    update: says,
    search: () => field.focus(),
    unmount() {
      clearTimeout(timer);
      loading?.abort();
      rows.destroy();
    },
  };
}

// stamped notes when a wait of a row ends, by this page's clock.
function stamped(row) {
  delete row.nodes;
  row.due = dueAt(row);
  return row;
}

function columns() {
  return [
    {
      name: 'path', title: 'Actor', sort: 'path',
      make(cell) {
        cell.twisty = h('span', { class: 'twisty', 'aria-hidden': 'true' });
        cell.link = h('a', { class: 'path', tabindex: '-1' }, h('bdi'));
        cell.append(cell.twisty, cell.link);
      },
      update(cell, { row, level, open }, tree) {
        const indent = tree ? String(Math.min(level - 1, 12)) : '0';
        if (cell.style.getPropertyValue('--level') !== indent) cell.style.setProperty('--level', indent);
        text(cell.twisty, tree && row.children > 0 ? (open ? '▾' : '▸') : '');
        attr(cell.link, 'href', actorLink(row.path));
        attr(cell.link, 'title', visible(row.path));
        text(cell.link.firstChild, visible(tree && row.path !== root ? last(row.path) : row.path));
      },
      clear(cell) {
        text(cell.twisty, '');
        text(cell.link.firstChild, '…');
        attr(cell.link, 'href', null);
      },
    },
    {
      name: 'state', title: 'State', sort: 'state',
      make(cell) {
        cell.badge = badge('');
        cell.due = h('span', { class: 'due' });
        cell.append(cell.badge, cell.due);
      },
      update(cell, { row }) {
        attr(cell.badge, 'class', `state state-${row.state}`);
        text(cell.badge.lastChild, row.state);
        setWait(cell.due, row.due);
        attr(cell, 'title', row.failure ? visible(row.failure) : null);
      },
      clear(cell) {
        attr(cell.badge, 'class', 'state');
        text(cell.badge.lastChild, '');
        setWait(cell.due, null);
      },
    },
    column('type', 'Type', (r) => visible(r.type), { sort: 'type' }),
    {
      name: 'below', title: 'Below',
      make(cell) {
        cell.number = h('span', { class: 'number' });
        cell.bar = stack('');
        cell.trouble = h('span', { class: 'trouble' });
        cell.append(cell.number, cell.bar.element, cell.trouble);
      },
      update(cell, { row }) {
        const below = row.below;
        const some = below && row.children > 0;
        cell.bar.element.hidden = !some;
        if (!some) {
          text(cell.number, '');
          text(cell.trouble, '');
          return;
        }
        const parts = states.map((s) => ({ name: s, value: (below.states?.[s] ?? 0) - (s === row.state ? 1 : 0) })).filter((p) => p.value > 0);
        text(cell.number, count(below.actors - 1));
        cell.bar.update(parts, parts.map((p) => `${exact(p.value)} ${p.name}`).join(', '));
        const bad = parts.filter((p) => p.name === 'delayed' || p.name === 'suspended' || p.name === 'starved').map((p) => `${count(p.value)} ${p.name}`);
        if (below.mailbox - row.mailbox > 0) bad.push(`${count(below.mailbox - row.mailbox)} waiting`);
        text(cell.trouble, bad.join(', '));
      },
      clear(cell) {
        text(cell.number, '');
        text(cell.trouble, '');
        cell.bar.element.hidden = true;
      },
    },
    column('mailbox', 'Waiting', (r) => count(r.mailbox), { sort: 'mailbox' }),
    column('turns', 'Turns', (r) => count(r.turns), { sort: 'turns' }),
    column('restarts', 'Restarts', (r) => count(r.restarts), { sort: 'restarts' }),
    column('held', 'Memory', (r) => bytes(r.held), { sort: 'held' }),
  ];
}

// link is the address of a list.
export function listLink(filter) {
  return `#/actors?q=${encodeURIComponent(format(filter))}`;
}
