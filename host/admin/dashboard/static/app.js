// The page: what is on it, where it leads, when it asks the server.

import { attr, h, show, text } from './ui/dom.js';
import { duration, visible } from './lib/format.js';
import { Series } from './lib/series.js';
import { get, isReplay, login, logout, serves, session, whenDenied } from './ui/api.js';
import { failed, region } from './ui/dialog.js';
import { help, shortcuts } from './ui/keys.js';
import { configure, interval, isPaused, onChange, pause, Poller } from './ui/live.js';
import { replayBar } from './ui/replay.js';
import { load, nextTheme, save, theme } from './ui/settings.js';
import * as actor from './views/actor.js';
import * as actors from './views/actors.js';
import * as crash from './views/crash.js';
import * as dead from './views/dead.js';
import * as events from './views/events.js';
import * as flow from './views/flow.js';
import * as logs from './views/logs.js';
import * as overview from './views/overview.js';
import * as supervision from './views/supervision.js';

// The places that the navigation leads to, in the order of their keys.
const places = [['', overview], ['actors', actors], ['supervision', supervision], ['crashes', crash], ['dead-letters', dead], ['events', events], ['logs', logs], ['flow', flow]];
const views = new Map([...places, ['actor', actor]]);
const ofRecordings = ['', 'actors', 'actor']; // the other views show what a recording does not have
const there = (name) => views.has(name) && (!isReplay() || ofRecordings.includes(name));

// app is what views know of the page.
const app = {
  system: null, // what the server has said last
  series: new Series({ gauges: ['mailbox', 'held', 'actors'] }),
  types: new Map(), // name -> {at, turns, rate}
  route: { name: '', params: new URLSearchParams() },
  leaving: [], // functions of a view's parts, called when it is left
  refresh: () => poller.now(),
  typeRate: (name) => app.types.get(name)?.rate ?? null,
};

let view = null;
let known = false; // what the server shows
const main = h('main', { id: 'main', tabindex: '-1' });
const links = places.map(([name, v], i) => h('a', { href: `#/${name}`, 'aria-keyshortcuts': String(i + 1) }, v.title));
const name = h('span', { class: 'system-name' }, 'wasmactors');
const status = h('button', { type: 'button', class: 'status', title: 'Refresh now, or go on', on: { click: () => (isPaused() ? pause(false) : poller.now()) } }, h('i', { class: 'dot', 'aria-hidden': 'true' }), h('span', { role: 'status' }, 'connecting'));
const pauser = h('button', { type: 'button', class: 'quiet', 'aria-pressed': 'false', on: { click: () => pause(!isPaused()) } }, 'Pause');
const every = h('select', { class: 'every', 'aria-label': 'How often to refresh', on: { change: () => (save('every', every.value), configure({ every: Number(every.value) }), poller.now()) } },
  [1000, 2000, 5000, 10000].map((ms) => h('option', { value: ms }, `every ${ms / 1000} s`)));
const themer = h('button', { type: 'button', class: 'quiet', on: { click: () => label(nextTheme()) } });
const leave = h('button', { type: 'button', class: 'quiet', on: { click: () => logout().catch(() => {}).finally(() => ask('')) } }, 'Log out');
const access = h('span', { class: 'access' });
const header = h('header', { class: 'top' },
  h('button', { type: 'button', class: 'skip', on: { click: () => main.focus() } }, 'Skip to the content'),
  h('div', { class: 'brand' }, name, access), status,
  h('div', { class: 'tools' }, every, pauser, themer, h('button', { type: 'button', class: 'quiet', 'aria-label': 'Keyboard shortcuts', 'aria-keyshortcuts': '?', on: { click: () => help(keys) } }, '?'), leave));
const replay = replayBar(() => {
  app.series.samples = [];
  poller.now();
});
const nav = h('nav', { class: 'places', 'aria-label': 'Views' }, links);

function label(t) {
  text(themer, { auto: 'Auto', dark: 'Dark', light: 'Light' }[t]);
  attr(themer, 'aria-label', `Theme: ${t}`);
}

const poller = new Poller(refresh, (r) => {
  header.dataset.state = r.state;
  let says = isReplay() ? 'a recording' : 'live';
  if (r.state === 'asleep') says = { hidden: 'asleep', idle: 'asleep: nobody has touched the page for a while', paused: 'paused' }[r.why];
  if (r.state === 'retrying') says = `${r.problem.status === 0 ? 'not connected' : visible(r.problem.message)}, trying again in ${duration(r.wait * 1e6)}`;
  text(status.lastChild, says);
});

// refresh asks for the system and for what the view shows, at the same time.
async function refresh(signal) {
  if (!known) {
    const about = await get('server', {}, signal);
    if (signal.aborted) return;
    known = true;
    serves(about);
    places.forEach(([p], i) => (links[i].hidden = !there(p)));
    replay.element.hidden = true;
    route();
  }
  performance.mark('refresh');
  const of = view;
  const [system] = await Promise.all([get('system', {}, signal), of?.refresh?.(signal), isReplay() ? replay.refresh(signal) : null]);
  if (signal.aborted) return;
  const drawing = performance.now();
  take(system);
  if (of === view) view?.update?.();
  performance.measure('refresh-drawn', { start: drawing, end: performance.now() });
  performance.measure('refreshed', 'refresh');
  performance.clearMarks('refresh');
  if (performance.getEntriesByType('measure').length > 400) performance.clearMeasures();
}

function take(s) {
  const at = Date.parse(s.now);
  if (app.system && app.system.started !== s.started) app.types.clear();
  app.system = s;
  app.series.push(at, { turns: s.turns, crashes: s.crashes, restarts: s.restarts, dead_letters: s.dead_letters, fuel: s.fuel, held: s.held, mailbox: s.mailbox ?? 0, actors: s.actors });
  const before = app.types;
  app.types = new Map((s.types ?? []).map((t) => {
    const was = before.get(t.name);
    const rate = was && at > was.at && t.turns >= was.turns ? ((t.turns - was.turns) * 1000) / (at - was.at) : (was?.rate ?? null);
    return [t.name, { at, turns: t.turns, rate }];
  }));
  const called = s.bundle || s.name;
  text(name, visible(called));
  document.title = `${visible(called)} · ${views.get(app.route.name)?.title ?? ''}`;
}

// route shows the view that the address names.
function route() {
  if (!known) return;
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const of = there(path) ? views.get(path) : overview;
  app.route = { name: there(path) ? path : '', params: new URLSearchParams(query) };
  view?.unmount?.();
  for (const f of app.leaving) f();
  app.leaving = [];
  places.forEach(([p], i) => attr(links[i], 'aria-current', p === app.route.name ? 'page' : null));
  show(main);
  main.scrollTop = 0;
  scrollTo(0, 0);
  view = of.mount(main, app);
  document.title = `${name.textContent} · ${of.title}`;
  poller.now();
}

// ask shows the question for a token instead of everything else.
function ask(says) {
  poller.stop();
  view?.unmount?.();
  for (const f of app.leaving) f();
  [view, app.leaving, app.system] = [null, [], null];
  for (const d of document.querySelectorAll('dialog')) d.close();
  const out = h('div', {}, says ? h('p', { class: 'problem', role: 'alert' }, says) : null);
  const field = h('input', { type: 'password', name: 'token', autocomplete: 'current-password', required: true, autofocus: true, 'aria-label': 'Token' });
  show(document.body, h('main', { class: 'login' }, h('form', { class: 'card', on: { submit: async (e) => {
    e.preventDefault();
    try {
      await login(field.value.trim());
      begin();
    } catch (problem) {
      failed(out, problem.status === 401 ? { message: 'The server does not know this token.' } : problem);
      field.select();
    }
  } } }, h('h1', {}, 'wasmactors'), h('p', {}, 'This page is for whoever has a token of the admin endpoint. With one that only reads there are no buttons.'), h('label', {}, 'Token', field), out, h('button', { type: 'submit', class: 'strong' }, 'Log in'))), region);
  field.focus();
}

function begin() {
  text(access, session.access === 'full' ? '' : 'read only');
  show(document.body, header, nav, replay.element, main, region);
  app.series.samples = [];
  known = false;
  poller.start();
}

const go = (i) => () => links[i].hidden || (location.hash = links[i].getAttribute('href'));
const keys = [
  ...places.map(([, v], i) => ({ key: String(i + 1), says: v.title, run: go(i) })),
  { key: '/', says: 'Find or filter in this view', run: () => (view?.search ? view.search() : document.querySelector('main [data-search]')?.focus()) },
  { key: 'r', says: 'Refresh now', run: () => poller.now() },
  { key: 'p', says: 'Pause, or go on', run: () => pause(!isPaused()) },
  { key: 't', says: 'Theme: the system’s, dark, light', run: () => label(nextTheme()) },
  { key: 'm', says: 'To the main part', run: () => main.focus() },
  { key: '?', says: 'This list', run: () => help(keys) },
];

addEventListener('hashchange', () => session.key && document.body.contains(main) && main.id && header.isConnected && route());
onChange(() => {
  attr(pauser, 'aria-pressed', String(isPaused()));
  text(pauser, isPaused() ? 'Go on' : 'Pause');
});
whenDenied(() => header.isConnected && ask('The session has ended: a token is needed again.'));
shortcuts(keys, () => header.isConnected);
every.value = load('every', String(interval()));
if (every.value === '') every.value = String(interval());
configure({ every: Number(every.value) });
label(theme());

// A link may bring the token behind the hash, which no server sees: #token=...
const brought = /^#token=(.+)$/.exec(location.hash);
if (brought) {
  history.replaceState(null, '', '#/');
  login(decodeURIComponent(brought[1])).then(begin, (problem) => ask(problem.text()));
} else if (session.key) {
  begin();
} else {
  ask('');
}
