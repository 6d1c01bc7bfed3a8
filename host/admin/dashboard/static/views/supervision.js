// Supervision: who waits for a restart or a decision, who was restarted most, who decides, how
// many restarts the window still allows, and where on the backoff curve an actor is.

import { actorLink, attr, badge, facts, guest, h, path, show, text, card } from '../ui/dom.js';
import { count, duration, exact, plural, visible } from '../lib/format.js';
import { curve } from '../ui/chart.js';
import { failed } from '../ui/dialog.js';
import { dueAt, setWait, wait } from '../ui/ticker.js';
import { buttons } from '../ui/verbs.js';
import { get, mayChange } from '../ui/api.js';

export const title = 'Supervision';

const most = 100;

export function mount(root, app) {
  let selected = app.route.params.get('path');
  const trouble = table('Waiting for a restart or a decision', 'No actor waits.', pick);
  const often = table('Restarted most', 'No actor was restarted.', pick);
  const side = h('div', { class: 'side' });
  show(root, h('h1', {}, 'Supervision'), h('div', { class: 'columns' }, h('div', { class: 'stacked grow' }, trouble.element, often.element), side));
  const detail = supervised(side, () => app.refresh());

  function pick(p) {
    selected = p;
    history.replaceState(null, '', `#/supervision?path=${encodeURIComponent(p)}`);
    app.refresh();
  }

  return {
    async refresh(signal) {
      const [waiting, restarted] = await Promise.all([
        get('actors', { state: ['delayed', 'suspended', 'starved', 'paused'], sort: 'path', limit: most }, signal),
        get('actors', { sort: 'restarts', desc: true, limit: 20 }, signal),
      ]);
      const busy = restarted.actors.filter((a) => a.restarts > 0);
      selected ??= waiting.actors[0]?.path ?? busy[0]?.path;
      trouble.update(waiting.actors, waiting.total, selected);
      often.update(busy, busy.length, selected);
      if (!selected) {
        show(side, card('Nothing to decide', {}, h('p', {}, 'No actor has been restarted, and none waits.')));
        return;
      }
      try {
        detail.update(await get('actor', { path: selected }, signal));
      } catch (problem) {
        if (problem.status !== 404 && problem.status !== 410) throw problem;
        failed(side, { message: `${visible(selected)} has stopped.` });
        selected = null;
      }
    },
    unmount() {},
  };
}

// table lists actors with their waits.
function table(heading, none, pick) {
  const body = h('tbody');
  const empty = h('p', { class: 'none' }, none);
  const more = h('p', { class: 'help' });
  const scroll = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': heading },
    h('table', {}, h('thead', {}, h('tr', {}, ['Actor', 'State', 'Waiting', 'Restarts'].map((x) => h('th', { scope: 'col' }, x)))), body));
  return {
    element: card(heading, {}, scroll, empty, more),
    update(actors, total, selected) {
      scroll.hidden = actors.length === 0;
      empty.hidden = actors.length > 0;
      text(more, total > actors.length ? `… and ${plural(total - actors.length, 'more', 'more')}` : '');
      while (body.children.length > actors.length) body.lastChild.remove();
      actors.forEach((a, i) => {
        const tr = body.children[i] ?? body.appendChild(line(pick));
        tr.path = a.path;
        text(tr.name, visible(a.path));
        attr(tr.name.parentElement, 'aria-pressed', String(a.path === selected));
        attr(tr.badge, 'class', `state state-${a.state}`);
        text(tr.badge.lastChild, a.state);
        setWait(tr.due, dueAt(a));
        text(tr.cells[2], count(a.mailbox));
        text(tr.cells[3], count(a.restarts));
      });
    },
  };
}

function line(pick) {
  const tr = h('tr');
  tr.name = h('bdi');
  tr.badge = badge('');
  tr.due = h('span', { class: 'due' });
  tr.append(h('td', {}, h('button', { type: 'button', class: 'pick', on: { click: () => pick(tr.path) } }, tr.name)), h('td', {}, tr.badge, ' ', tr.due), h('td', { class: 'number' }), h('td', { class: 'number' }));
  return tr;
}

// supervised shows the supervision of one actor in an element, with buttons if there may be any.
function supervised(side, done) {
  let of = null;
  let head;
  let verbs;
  const body = h('div', { class: 'supervision' });
  return {
    update(d) {
      if (of !== d.ref || !body.isConnected) {
        of = d.ref;
        head = h('p', { class: 'lead' });
        verbs = mayChange() ? buttons(d, done) : null;
        show(side, card('How it is supervised', {}, head, body, verbs?.element));
      }
      verbs?.update(d);
      show(head, path(d.path), ' ', badge(d.state), dueAt(d) ? [' ', wait(dueAt(d))] : null);
      supervision(body, d);
    },
  };
}

// supervision is what can be said of who decides about an actor, and how.
export function supervision(root, d) {
  const s = d.strategy;
  const r = d.record;
  const due = s?.backoff && r && (d.state === 'delayed' || r.failures > 0) ? r.failures : NaN;
  const held = root.contains(document.activeElement);
  if (held) return; // somebody reads it with the keyboard
  show(root,
    h('div', { class: 'decides' }, h('span', {}, 'Decided about by '), d.supervisor ? h('a', { class: 'path', href: actorLink(d.supervisor) }, guest(d.supervisor)) : 'nobody'),
    s ? facts([
      ['Strategy', s.kind],
      ['Restarts in the window', windowOf(s, r)],
      ['Above the limit', s.exceeded],
      r ? ['Failures', `${exact(r.failures)} since the count was reset, ${exact(r.total)} in all`] : null,
      d.lifetime ? ['Lifetime', d.lifetime] : null,
      s.backoff ? ['Messages during the delay', s.backoff.meanwhile] : null,
      s.backoff?.max_failures ? ['Gives up after', `${plural(s.backoff.max_failures, 'failure')}: ${s.backoff.give_up}`] : null,
      r?.last_delay_ns ? ['Last delay', duration(r.last_delay_ns)] : null,
      r?.left ? ['Left for an operator', 'yes: decide about it'] : null,
    ]) : h('p', { class: 'none' }, d.busy ? 'Its supervisor is in a turn that lasts.' : 'Nothing is known of a strategy.'),
    meter(s, r),
    s?.backoff ? [h('h3', {}, 'Backoff'), curve(s.backoff.curve ?? [], due)] : s ? h('p', { class: 'none' }, 'Restarts are not delayed.') : null,
    d.failure ? h('p', { class: 'reason' }, guest(d.failure)) : null);
}

function windowOf(s, r) {
  const n = r ? exact(r.restarts_in_window) : '?';
  const within = s.within_ns > 0 ? ` within ${duration(s.within_ns)}${s.sliding ? ', sliding' : ''}` : ' in its life';
  return `${n} of ${s.max_restarts < 0 ? 'any number' : exact(s.max_restarts)}${s.max_restarts < 0 ? '' : within}${s.shared ? ', shared with its siblings' : ''}`;
}

// meter shows how much of the window is used.
function meter(s, r) {
  if (!s || !r || s.max_restarts < 0) return null;
  const part = s.max_restarts === 0 ? 1 : Math.min(1, r.restarts_in_window / s.max_restarts);
  return h('div', { class: `meter${part >= 1 ? ' full' : ''}`, role: 'meter', 'aria-label': 'Restarts in the window', 'aria-valuemin': 0, 'aria-valuemax': s.max_restarts, 'aria-valuenow': r.restarts_in_window }, h('i', { style: { width: `${part * 100}%` } }));
}
