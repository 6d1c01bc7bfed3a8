// The system as a whole: rates, states, types, and what has failed lately.

import { actorLink, attr, badge, card, facts, guest, h, show, text } from '../ui/dom.js';
import { bytes, count, duration, exact, last, plural, rate, between } from '../lib/format.js';
import { states } from '../lib/filter.js';
import { niceBytes } from '../lib/plot.js';
import { spark, stack } from '../ui/chart.js';
import { download, get } from '../ui/api.js';
import { failed } from '../ui/dialog.js';
import { crashFeed } from './crash.js';

export const title = 'Overview';

const most = 200; // types that are listed

export function mount(root, app) {
  const charts = {
    turns: spark('Turns', rate),
    mailbox: spark('Waiting messages', count, { kind: 'gauge' }),
    restarts: spark('Restarts', rate, { kind: 'bad' }),
    crashes: spark('Crashes', rate, { kind: 'bad' }),
    dead_letters: spark('Dead letters', rate, { kind: 'bad' }),
    fuel: spark('Fuel', rate),
    held: spark('Memory as accounted', bytes, { kind: 'gauge', round: niceBytes }),
    actors: spark('Actors', count, { kind: 'gauge' }),
  };
  const bar = stack('Actors by state');
  const legend = h('ul', { class: 'legend' });
  const about = h('div');
  const types = typeTable();
  const failures = h('div', { class: 'feed' });
  const flow = flowCard();
  show(root,
    h('h1', {}, 'Overview'),
    h('div', { class: 'charts' }, Object.values(charts).map((c) => c.element)),
    card('Actors by state', {}, bar.element, legend),
    h('div', { class: 'columns' },
      card('Types', { class: 'grow' }, types.element),
      h('div', { class: 'stacked' },
        card('Failures of late', { actions: h('a', { href: '#/crashes' }, 'all') }, failures),
        card('System', {}, about))),
    flow.element);
  const stopFeed = crashFeed(failures, { most: 6, brief: true });

  function update() {
    const s = app.system;
    if (!s) return;
    for (const name of ['turns', 'restarts', 'crashes', 'dead_letters', 'fuel']) charts[name].update(app.series.rates(name), app.series.rate(name), `${count(s[name])} in all`);
    for (const name of ['mailbox', 'held', 'actors']) charts[name].update(app.series.values(name), app.series.values(name).at(-1)?.value);
    const parts = states.map((name) => ({ name, value: s.states?.[name] ?? 0 }));
    bar.update(parts, parts.filter((p) => p.value > 0).map((p) => `${exact(p.value)} ${p.name}`).join(', '));
    while (legend.children.length < parts.length) legend.append(h('li', {}, h('a', {}, badge(parts[legend.children.length].name), ' ', h('b'))));
    parts.forEach((p, i) => {
      const a = legend.children[i].firstChild;
      attr(a, 'href', `#/actors?q=state:${p.name}`);
      text(a.lastChild, exact(p.value));
      attr(legend.children[i], 'class', p.value === 0 ? 'zero' : null);
    });
    types.update(s.types ?? [], app);
    show(about, facts([
      ['Bundle', guest(s.bundle || s.name || '–')],
      s.dir ? ['Folder', guest(s.dir)] : null,
      ['Process', String(s.pid ?? '–')],
      ['Up for', duration(between(s.started, s.now))],
      ['Ready', s.ended ? guest(`ended: ${s.ended}`) : s.ready ? 'yes' : 'not yet'],
      ['Memory as accounted', `${bytes(s.held)}${s.held_limit ? ` of ${bytes(s.held_limit)}` : ''}`],
      ['Goroutines', exact(s.goroutines ?? 0)],
      s.workers ? ['Workers', exact(s.workers)] : null,
    ]));
  }
  update();
  return { update, unmount: stopFeed };
}

// typeTable lists the types, sorted by a heading's press. A row leads to the actors of its type.
function typeTable() {
  const columns = [
    ['name', 'Type'], ['actors', 'Actors'], ['asleep', 'Asleep'], ['mailbox', 'Waiting'], ['rate', 'Turns'], ['crashes', 'Crashes'], ['restarts', 'Restarts'], ['fuel', 'Fuel'], ['held', 'Memory'],
  ];
  let sort = 'actors';
  let seen = [];
  let app;
  const heads = columns.map(([name, label]) => h('th', { scope: 'col', class: `col-${name}` }, h('button', { type: 'button', class: 'sort', on: { click: () => {
    sort = name;
    paint();
  } } }, label)));
  const body = h('tbody');
  const more = h('p', { class: 'help' });
  const element = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Types' }, h('table', { class: 'types' }, h('thead', {}, h('tr', {}, heads)), body), more);
  function paint() {
    const rows = seen.map((t) => ({ ...t, rate: app.typeRate(t.name) })).sort((a, b) => (sort === 'name' ? 0 : (b[sort] ?? -1) - (a[sort] ?? -1)) || (a.name < b.name ? -1 : 1));
    columns.forEach(([name], i) => attr(heads[i], 'aria-sort', name === sort ? (name === 'name' ? 'ascending' : 'descending') : null));
    const shown = rows.slice(0, most);
    while (body.children.length > shown.length) body.lastChild.remove();
    shown.forEach((t, i) => {
      const tr = body.children[i] ?? body.appendChild(h('tr', {}, columns.map(([name]) => h('td', { class: `col-${name}` }))));
      const cells = tr.children;
      if (tr.dataset.type !== t.name) {
        tr.dataset.type = t.name;
        show(cells[0], h('a', { href: `#/actors?q=${encodeURIComponent(`type:"${t.name}"`)}` }, guest(t.name)));
      }
      const values = [count(t.actors), count(t.asleep), count(t.mailbox), rate(t.rate), count(t.crashes), count(t.restarts), count(t.fuel), bytes(t.held)];
      values.forEach((v, j) => text(cells[j + 1], v));
    });
    text(more, rows.length > most ? `… and ${plural(rows.length - most, 'more type')}` : '');
  }
  return {
    element,
    update(list, of) {
      [seen, app] = [list, of];
      paint();
    },
  };
}

// flowCard samples on demand who sends what to whom.
function flowCard() {
  const out = h('div', { 'aria-live': 'polite' }, h('p', { class: 'help' }, 'Who sends what to whom is sampled only when somebody asks.'));
  const go = h('button', { type: 'button', on: { click: async () => {
    go.disabled = true;
    show(out, h('p', {}, 'Sampling for two seconds…'));
    try {
      const flow = await get('flow', { seconds: 2 });
      const edges = [...(flow.edges ?? [])].sort((a, b) => b.count - a.count).slice(0, 50);
      const top = edges[0]?.count ?? 1;
      const estimate = flow.one_in > 1 ? `One turn in ${count(flow.one_in)} was looked at: the numbers are estimates.` : '';
      show(out, estimate ? h('p', { class: 'help' }, estimate) : null, edges.length === 0 ? h('p', {}, 'No messages were seen.') : h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Flow' }, h('table', { class: 'flow' },
        h('thead', {}, h('tr', {}, ['From', 'To', 'Kind', 'Messages', 'Bytes'].map((x) => h('th', { scope: 'col' }, x)))),
        h('tbody', {}, edges.map((e) => h('tr', {}, h('td', {}, end(e.from)), h('td', {}, end(e.to)), h('td', {}, guest(e.kind)),
          h('td', { class: 'bar-cell' }, h('i', { 'aria-hidden': 'true', style: { width: `${(e.count / top) * 100}%` } }), count(e.count)), h('td', {}, bytes(e.bytes))))))));
    } catch (e) {
      failed(out, e);
    }
    go.disabled = false;
  } } }, 'Sample the flow');
  const profile = h('button', { type: 'button', on: { click: async () => {
    profile.disabled = true;
    show(out, h('p', {}, 'Counting fuel for five seconds…'));
    try {
      await download('profile', { seconds: 5 }, 'fuel.pprof');
      show(out, h('p', {}, 'Open the file with: go tool pprof -http=: fuel.pprof'));
    } catch (e) {
      failed(out, e);
    }
    profile.disabled = false;
  } } }, 'Fuel profile (5 s)');
  return { element: card('Flow and fuel', { actions: h('span', { class: 'verbs' }, go, profile) }, out) };
}

function end(p) {
  return p?.startsWith('/') && p !== '/temp' ? h('a', { href: actorLink(p), title: p }, guest(last(p))) : guest(p && p !== '/temp' ? p : 'outside');
}
