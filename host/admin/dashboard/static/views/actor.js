// One actor: its figures, what is held for it, how it is supervised, what it gets and sends.

import { actorLink, attr, badge, card, facts, guest, h, path, show, text } from '../ui/dom.js';
import { between, bytes, clock, count, duration, exact, last, parentOf, plural, rate, visible } from '../lib/format.js';
import { pretty } from '../lib/json.js';
import { Series } from '../lib/series.js';
import { bars, spark } from '../ui/chart.js';
import { dueAt, setWait } from '../ui/ticker.js';
import { follow } from '../ui/stream.js';
import { buttons } from '../ui/verbs.js';
import { get, isReplay, mayChange } from '../ui/api.js';
import { stackOf, Resume } from './crash.js';
import { line } from './events.js';
import { supervision } from './supervision.js';

export const title = 'Actor';

const [mostTraced, mostEvents, mostChildren] = [200, 50, 50];

export function mount(root, app) {
  const of = app.route.params.get('path') ?? '';
  const series = new Series({ gauges: ['mailbox'] });
  const state = badge('running');
  const due = h('span', { class: 'due' });
  const trail = h('nav', { class: 'trail', 'aria-label': 'Path' }, crumbs(of));
  const problem = h('div');
  const verbs = h('div');
  const turns = spark('Turns', rate);
  const mailbox = spark('Waiting messages', count, { kind: 'gauge' });
  const figures = h('div');
  const parts = h('div');
  const limits = h('div');
  const sup = h('div', { class: 'supervision' });
  const failure = h('div');
  const children = h('div');
  const failureCard = card('Last failure', { actions: isReplay() ? null : h('a', { href: `#/crashes?path=${encodeURIComponent(of)}` }, 'all reports') }, failure);
  const childrenCard = card('Children', { actions: h('a', { href: `#/actors?q=${encodeURIComponent(`path:"${of}/**"`)}` }, 'all below') }, children);
  const page = h('div', { class: 'actor' },
    verbs, isReplay() ? null : h('div', { class: 'charts' }, turns.element, mailbox.element),
    h('div', { class: 'cards' },
      card('Figures', {}, figures), isReplay() ? null : card('Supervision', {}, sup), failureCard,
      isReplay() ? null : card('Host memory', {}, parts), card('Limits', {}, limits), childrenCard),
    traceCard(of, app), isReplay() ? null : eventsCard(of, app));
  show(root, h('h1', { class: 'actor-name' }, guest(last(of)), ' ', state, ' ', due), trail, problem, page);
  let actions = null;

  function update(d) {
    show(problem);
    page.classList.remove('gone');
    attr(state, 'class', `state state-${d.state}`);
    text(state.lastChild, d.state + (d.paused && d.state !== 'paused' ? ', paused' : ''));
    setWait(due, dueAt(d));
    if (mayChange()) {
      if (actions) actions.update(d);
      else show(verbs, (actions = buttons(d, () => app.refresh())).element);
    }
    series.push(Date.parse(app.system?.now ?? '') || Date.now(), { turns: d.turns, mailbox: d.mailbox });
    turns.update(series.rates('turns'), series.rate('turns'), `${count(d.turns)} in all`);
    mailbox.update(series.values('mailbox'), d.mailbox, d.oldest_ns > 0 ? `oldest ${duration(d.oldest_ns)}` : '');
    const c = d.counts;
    show(figures, facts([
      ['Type', h('a', { href: `#/actors?q=${encodeURIComponent(`type:"${d.type}"`)}` }, guest(d.type))],
      ['Incarnation', d.state === 'delayed' ? `${exact(d.incarnation)} has ended` : alive(d, app) ? `${exact(d.incarnation)}, for ${alive(d, app)}` : 'none at the moment'],
      ['Turns', exact(d.turns)], ['Fuel', exact(d.fuel)],
      ['Crashes', exact(d.crashes)], ['Restarts', exact(d.restarts)],
      ['Waiting', `${plural(d.mailbox, 'message')}, ${bytes(d.mailbox_bytes)}`],
      c ? ['Timers, asks, stash', `${c.timers}, ${c.asks}, ${c.stash}`] : null,
      c ? ['Watches, watched by', `${c.watches}, ${c.watchers}`] : null,
      ['Ref', h('code', {}, d.ref)],
    ]), d.busy ? h('p', { class: 'help' }, 'The actor is busy; some details are missing.') : null);
    const held = Object.entries(d.held_parts ?? {}).map(([name, value]) => ({ name, value }));
    show(parts, h('p', { class: 'lead' }, bytes(d.held), d.limits?.held ? ` of ${bytes(d.limits.held)}` : ''), bars(held, bytes));
    show(limits, facts(limitsOf(d.limits ?? {})), capabilities(d.capabilities));
    supervision(sup, d);
    failureCard.hidden = !d.last_failure;
    if (d.last_failure && failure.dataset.at !== d.last_failure.at) {
      failure.dataset.at = d.last_failure.at;
      show(failure, h('p', {}, h('b', {}, guest(d.last_failure.kind)), ' at ', h('time', { datetime: d.last_failure.at }, clock(d.last_failure.at)), `, turn ${exact(d.last_failure.turn ?? 0)}`), stackOf(d.last_failure));
    }
  }

  async function kids(d, signal) {
    childrenCard.hidden = !d.children;
    if (!d.children) return;
    const node = await get('tree', { under: of, depth: 1, limit: mostChildren, sort: 'path' }, signal);
    show(children, h('ul', { class: 'children' }, (node.nodes ?? []).map((k) => h('li', {}, path(k.path, last(k.path)), ' ', badge(k.state), k.below?.actors > 1 ? h('span', { class: 'help' }, ` and ${count(k.below.actors - 1)} below`) : null))),
      d.children > mostChildren ? h('p', { class: 'help' }, `… and ${plural(d.children - mostChildren, 'more', 'more')}`) : null);
  }

  return {
    async refresh(signal) {
      let d;
      try {
        d = await get('actor', { path: of }, signal);
      } catch (e) {
        if (e.status !== 404 && e.status !== 410) throw e;
        page.classList.add('gone');
        show(problem, h('p', { class: 'problem', role: 'alert' }, visible(of), ': ', e.text()));
        setWait(due, null);
        attr(state, 'class', 'state');
        text(state.lastChild, 'not there');
        return;
      }
      update(d);
      if (!children.contains(document.activeElement)) await kids(d, signal);
    },
    unmount() {
      for (const f of app.leaving) f();
      app.leaving = [];
    },
  };
}

function alive(d, app) {
  const since = Date.parse(d.since);
  return since > 0 ? duration(between(d.since, isReplay() ? (app.system?.now ?? d.since) : new Date().toISOString())) : '';
}

// crumbs links to every actor above.
function crumbs(p) {
  const out = [guest(last(p), { 'aria-current': 'page' })];
  for (let up = parentOf(p); up && up !== '/'; up = parentOf(up)) out.unshift(h('a', { href: actorLink(up) }, guest(last(up))));
  return out.flatMap((x) => [h('span', { class: 'slash', 'aria-hidden': 'true' }, '/'), x]);
}

function limitsOf(l) {
  const some = (name, value, f) => (value ? [name, f(value)] : null);
  return [
    some('Mailbox', l.mailbox, (v) => plural(v, 'message')), some('Mailbox in bytes', l.mailbox_bytes, bytes), some('Fuel of a turn', l.fuel, count),
    some('Deadline of a turn', l.deadline_ns, duration), some('Memory', l.memory, bytes), some('Held in all', l.held, bytes), some('Outbox of a turn', l.outbox, bytes), some('A message', l.message, bytes),
    some('Children', l.children, exact), some('Timers', l.timers, exact), some('Asks', l.asks, exact), some('Watches', l.watches, exact), some('Stash', l.stash, exact),
    some('Open replies', l.replies, exact), some('Actors of the tree', l.tree_actors, exact), some('Memory of the tree', l.tree_memory, bytes),
  ];
}

function capabilities(c) {
  const list = Object.entries(c ?? {}).filter(([, v]) => v?.length > 0);
  if (list.length === 0) return null;
  return [h('h3', {}, 'May'), facts(list.map(([what, v]) => [what, v.slice(0, 20).flatMap((x, i) => [i > 0 ? ', ' : '', guest(x)])]))];
}

// traceCard shows messages in and out, while somebody wants to see them.
function traceCard(of, app) {
  const out = h('div', { class: 'trace', role: 'log', 'aria-live': 'off', 'aria-label': 'Messages' });
  const says = h('p', { class: 'help', role: 'status' }, isReplay() ? 'Those behind the time that is shown, to the end of the recording.' : 'Messages are looked at only while this runs.');
  let stop = null;
  const end = (why) => {
    stop?.();
    stop = null;
    text(go, 'Trace messages');
    attr(go, 'aria-pressed', 'false');
    text(says, why);
  };
  const go = h('button', { type: 'button', 'aria-pressed': 'false', data: { trace: '' }, on: { click: () => {
    if (stop) return end('Stopped.');
    show(out);
    text(go, 'Stop tracing');
    attr(go, 'aria-pressed', 'true');
    text(says, 'Tracing…');
    let lost = 0;
    stop = follow('trace', () => ({ path: of }), {
      again: false,
      got(records) {
        out.prepend(...records.slice(-mostTraced).reverse().map(traced));
        while (out.children.length > mostTraced) out.lastChild.remove();
        text(says, `Tracing; the newest of ${plural(out.children.length, 'message')} first${lost > 0 ? `; ${count(lost)} were dropped: too many messages` : ''}.`);
      },
      report(r) {
        if (r.state === 'dropped') lost += r.dropped;
        if (r.state === 'ended') end(`Ended: ${visible(r.reason || 'the server has closed it')}.`);
        if (r.state === 'refused' || r.state === 'retrying') end(r.problem.text());
        if (r.state === 'asleep') end('Stopped, for nobody looked.');
      },
    });
  } } }, 'Trace messages');
  app.leaving.push(() => stop?.());
  return card('Messages in and out', { actions: go }, says, out);
}

function traced(r) {
  const payload = r.payload === undefined ? null : pretty(r.payload);
  const short = payload !== null && payload.length <= 76;
  return h('div', { class: `traced traced-${r.direction}` },
    h('span', { class: 'arrow', title: r.direction === 'in' ? 'got' : 'sent' }, r.direction === 'in' ? '→' : '←', h('span', { class: 'unseen' }, r.direction)), h('time', { datetime: r.time }, clock(r.time)), h('span', { class: 'kind' }, guest(r.kind)),
    r.peer?.startsWith('/user/') ? h('a', { class: 'who path', href: actorLink(r.peer) }, guest(r.peer)) : guest(r.peer || 'outside', { class: 'who' }),
    h('span', { class: 'why' }, r.failed ? h('span', { class: 'problem' }, guest(r.failed), ' ') : null,
      payload === null ? `${bytes(r.size)}${r.cut ? ', cut off' : ''}` : short ? h('code', {}, guest(payload)) : h('details', {}, h('summary', {}, bytes(r.size)), h('pre', { tabindex: '0' }, guest(payload)))));
}

// eventsCard follows the actor's events once it is opened.
function eventsCard(of, app) {
  const list = h('div', { class: 'events' });
  const says = h('p', { class: 'help' });
  let stop = null;
  const seen = new Resume();
  const box = h('details', { class: 'card', on: { toggle: () => {
    if (!box.open) {
      stop?.();
      stop = null;
    } else if (!stop) {
      stop = follow('events', () => ({ follow: true, path: of, ...seen.params() }), {
        got(events) {
          list.prepend(...events.filter((e) => seen.take(e)).slice(-mostEvents).reverse().map(line));
          while (list.children.length > mostEvents) list.lastChild.remove();
        },
        report: (r) => text(says, r.problem ? r.problem.text() : r.state === 'asleep' ? 'Not following while nobody looks.' : ''),
      });
    }
  } } }, h('summary', {}, h('h2', {}, 'Events')), says, list);
  app.leaving.push(() => stop?.());
  return box;
}
