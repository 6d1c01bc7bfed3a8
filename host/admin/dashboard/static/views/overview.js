// The system as a whole: rates, states, types, and what has failed lately.

import { attr, badge, card, facts, guest, h, show, text } from '../ui/dom.js';
import { bytes, count, duration, exact, plural, rate, between } from '../lib/format.js';
import { states } from '../lib/filter.js';
import { niceBytes } from '../lib/plot.js';
import { quantile, since, total } from '../lib/quantile.js';
import { rates } from '../lib/axis.js';
import { spark, stack } from '../ui/chart.js';
import { download, get, isReplay } from '../ui/api.js';
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
  const fuel = fuelCard();
  const times = timesTable();
  const p = app.route.params;
  let past = null; // what was asked for: {seconds, asked, moments}
  const range = h('select', { name: 'range', 'aria-label': 'What the charts show', on: { change: () => {
    window.history.replaceState(null, '', range.value ? `#/?range=${range.value}` : '#/');
    past = null;
    app.refresh();
  } } }, ranges.map(([value, label]) => h('option', { value, selected: (p.get('range') ?? '') === value }, label)));
  if (isReplay()) show(root, h('h1', {}, 'Overview'), card('Actors by state', {}, bar.element, legend), h('div', { class: 'columns' }, card('Types', { class: 'grow' }, types.element), card('System', {}, about)));
  else show(root,
    h('div', { class: 'bar heading' }, h('h1', {}, 'Overview'), range),
    h('div', { class: 'charts' }, Object.values(charts).map((c) => c.element)),
    card('Actors by state', {}, bar.element, legend),
    h('div', { class: 'columns' },
      card('Types', { class: 'grow' }, types.element),
      h('div', { class: 'stacked' },
        card('Recent failures', { actions: h('a', { href: '#/crashes' }, 'all') }, failures),
        card('System', {}, about))),
    card('Times', {}, times.element),
    fuel.element);
  const stopFeed = isReplay() ? null : crashFeed(failures, { most: 6 });

  function update() {
    const s = app.system;
    if (!s) return;
    const m = range.value && past ? past.moments : null;
    for (const name of ['turns', 'restarts', 'crashes', 'dead_letters', 'fuel']) charts[name].update(m ? rates(m, name) : app.series.rates(name), app.series.rate(name), `${count(s[name])} in all`);
    for (const name of ['mailbox', 'held', 'actors']) charts[name].update(m ? m.map((x) => ({ at: x.at, value: x[name] })) : app.series.values(name), app.series.values(name).at(-1)?.value);
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
  return {
    update,
    async refresh(signal) {
      if (isReplay()) return;
      const seconds = range.value;
      const [l, got] = await Promise.all([get('latencies', {}, signal), seconds && !(past?.seconds === seconds && performance.now() - past.asked < 10_000) ? get('history', { seconds }, signal) : null]);
      times.update(l);
      if (got && seconds === range.value) {
        const moments = (got.points ?? []).map((x) => ({ ...x, at: Date.parse(x.at) }));
        for (const x of moments) for (const name of Object.keys(x)) x[name] = Number(x[name]);
        past = { seconds, asked: performance.now(), moments };
      }
    },
    unmount: () => stopFeed?.(),
  };
}

// ranges are what the charts can show: the last minutes, as this page has seen them, or what the server has kept.
const ranges = [['', 'live'], ['3600', 'last hour'], ['21600', 'last 6 hours'], ['86400', 'last 24 hours']];

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

// fuelCard samples on demand where fuel goes.
function fuelCard() {
  const out = h('div', { 'aria-live': 'polite' }, h('p', { class: 'help' }, 'Fuel is counted by actor, type and function of the guest only when you ask.'));
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
  return { element: card('Fuel', { actions: profile }, out) };
}

const kindsOfTimes = { request: 'Requests from outside', service: 'Requests of services', turn: 'Turns (a sample)' };
const mostTimes = 50; // rows
const recent = 60_000; // quantiles are of about so many ms

// timesTable shows how long requests and turns have taken lately. looks are what the server has counted at times.
function timesTable() {
  const looks = [];
  const body = h('tbody');
  const help = h('p', { class: 'help' });
  const heads = ['Name', 'A second', 'Median', '90 %', '99 %'];
  const element = h('div', {}, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Times' },
    h('table', { class: 'types times' }, h('thead', {}, h('tr', {}, heads.map((x, i) => h('th', { scope: 'col', class: i === 0 ? 'col-name' : null }, x)))), body)), help);
  return {
    element,
    update(l) {
      const at = Date.parse(l.now);
      const bounds = (l.bounds_ns ?? []).map(Number);
      const now = new Map((l.series ?? []).map((s) => [`${s.kind} ${s.name}`, s.buckets.map(Number)]));
      while (looks.length > 1 && looks[1].at <= at - recent) looks.shift();
      if (looks.length > 0 && at < looks.at(-1).at) looks.length = 0;
      const before = looks[0];
      if (!looks.length || at > looks.at(-1).at) looks.push({ at, series: now });
      const rows = [];
      for (const s of l.series ?? []) {
        const key = `${s.kind} ${s.name}`;
        // Before there are two looks it is all since the start.
        const counts = before && before.at < at ? since(now.get(key), before.series.get(key) ?? now.get(key).map(() => 0)) : now.get(key);
        if (!counts || total(counts) === 0) continue;
        rows.push({ ...s, counts, a: before && before.at < at ? (total(counts) * 1000) / (at - before.at) : null });
      }
      const order = Object.keys(kindsOfTimes);
      rows.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || total(b.counts) - total(a.counts) || (a.name < b.name ? -1 : 1));
      let kind = '';
      show(body, rows.slice(0, mostTimes).flatMap((r) => {
        const head = r.kind === kind ? [] : [h('tr', { class: 'group' }, h('th', { scope: 'colgroup', colspan: heads.length, class: 'col-name' }, kindsOfTimes[r.kind] ?? guest(r.kind)))];
        kind = r.kind;
        return [...head, h('tr', {}, h('td', { class: 'col-name' }, guest(r.name)), h('td', {}, r.kind === 'turn' ? '' : rate(r.a)), [0.5, 0.9, 0.99].map((q) => h('td', {}, timeOf(quantile(bounds, r.counts, q)))))];
      }));
      text(help, rows.length === 0 ? 'Nothing was timed in the last minute.'
        : `Of ${before && before.at < at ? `the last ${duration((at - before.at) * 1e6)}` : 'all since the start'}, at most 2.5 times off${rows.length > mostTimes ? `; ${plural(rows.length - mostTimes, 'more row')} left out` : ''}.`);
    },
  };
}

function timeOf(q) {
  if (!q) return '–';
  return `${q.above ? '> ' : ''}${duration(q.value)}`;
}
