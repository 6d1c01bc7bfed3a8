// Reports of failures: why, where in the guest, what was decided, which message it was.

import { actorLink, card, guest, h, show, text } from '../ui/dom.js';
import { bytes, clock, count, duration, plural, visible } from '../lib/format.js';
import { get } from '../ui/api.js';
import { pretty } from '../lib/json.js';
import { follow } from '../ui/stream.js';

// crashFeed follows failures into an element, a line each, the newest first, at most so many; the
// result stops it.
export function crashFeed(root, { most, path }) {
  const none = h('p', { class: 'none' }, 'None, as far as events are kept.');
  show(root, none);
  const seen = new Resume();
  return follow('events', () => ({ follow: true, kind: ['failed', 'escalated'], path, ...seen.params() }), {
    got(events) {
      events = events.filter((e) => (e.event === 'failed' || e.event === 'escalated') && seen.take(e));
      if (events.length === 0) return;
      none.remove();
      root.prepend(...events.slice(-most).reverse().map(brieflyOf));
      while (root.children.length > most) root.lastChild.remove();
    },
    report: (r) => r.state === 'refused' && show(root, h('p', { class: 'problem' }, r.problem.text())),
  });
}

// Resume remembers where a stream was, so that it goes on there.
export class Resume {
  take(e) {
    if (this.after !== undefined && e.number <= this.after) return false;
    this.after = e.number;
    return true;
  }

  params() {
    return { after: this.after };
  }
}

function decided(e) {
  if (!e.directive) return e.event;
  return e.delay_ms > 0 ? `${e.directive} in ${duration(e.delay_ms * 1e6)}` : e.directive;
}

function brieflyOf(e) {
  return h('a', { class: 'line', href: actorLink(e.actor) },
    h('time', { datetime: e.time }, clock(e.time)), guest(e.actor, { class: 'who' }), h('span', { class: 'why' }, guest(oneLine(e))), h('span', { class: 'did' }, decided(e)));
}

export function oneLine(e) {
  const f = e.failure ?? {};
  return [f.kind, f.reason && f.reason !== f.kind ? f.reason : '', f.message].filter(Boolean).join(': ').split('\n')[0];
}

// report is one failure in full; closed, until somebody wants to know.
export function report(e, { open = false } = {}) {
  const body = h('div', { class: 'report-body' });
  const element = h('details', { class: 'report' },
    h('summary', {}, h('time', { datetime: e.time }, clock(e.time)), guest(e.actor, { class: 'who' }), h('span', { class: 'why' }, guest(oneLine(e))), h('span', { class: 'did' }, decided(e))), body);
  const fill = () => body.childElementCount === 0 && show(body, inFull(e));
  element.addEventListener('toggle', fill);
  if (open) {
    element.open = true;
    fill();
  }
  return element;
}

function inFull(e) {
  const f = e.failure ?? {};
  return [
    e.id ? h('p', { class: 'help' }, h('a', { href: reportLink(e.id) }, 'Report ', guest(e.id)), e.trace_id ? [', trace ', guest(e.trace_id)] : null) : null,
    h('p', {}, h('a', { href: actorLink(e.actor) }, guest(e.actor)), ' of type ', guest(e.type), `, incarnation ${e.incarnation}, turn ${f.turn ?? '–'}`,
      e.failures ? `, ${plural(e.failures, 'failure')} since the count was reset` : ''),
    e.note ? h('p', {}, guest(e.note)) : null,
    h('dl', { class: 'facts' }, h('div', {}, h('dt', {}, 'Kind'), h('dd', {}, guest(f.kind))), h('div', {}, h('dt', {}, 'Decided'), h('dd', {}, decided(e))),
      e.memory ? h('div', {}, h('dt', {}, 'Memory of the guest'), h('dd', {}, bytes(e.memory))) : null,
      e.waiting !== undefined ? h('div', {}, h('dt', {}, 'Messages behind it'), h('dd', {}, String(e.waiting))) : null),
    stackOf(f),
    e.message ? [h('h3', {}, 'The message whose turn failed'),
      h('p', {}, guest(e.message.kind), `, ${bytes(e.message.bytes)}`, e.message.redelivered ? `, delivered again ${plural(e.message.redelivered, 'time')}` : ''),
      e.message.payload !== undefined ? h('pre', { tabindex: '0' }, guest(pretty(e.message.payload))) : null] : null,
  ];
}

// stackOf shows a failure's texts and stacks, the innermost frame first.
export function stackOf(f) {
  return [
    f.reason ? h('p', { class: 'reason' }, guest(f.reason)) : null,
    f.message ? h('pre', { class: 'message', tabindex: '0' }, guest(f.message)) : null,
    f.stack?.length ? [h('h3', {}, 'Stack'), h('ol', { class: 'frames' }, f.stack.map((s) => h('li', {}, guest(s))))] : null,
    f.guest_stack ? [h('h3', {}, 'Stack as the guest tells it'), h('pre', { tabindex: '0' }, guest(f.guest_stack))] : null,
  ];
}

export const title = 'Crashes';

const mostReports = 200; // on the page

export function reportLink(id) {
  return `#/crashes?id=${encodeURIComponent(id)}`;
}

// stored is a kept report: a line, and the whole when it is opened.
function stored(c, { open = false } = {}) {
  const body = h('div', { class: 'report-body' });
  const says = [c.kind, c.reason].filter(Boolean).join(': ');
  const did = c.delay_ns > 0 ? `${c.decided} in ${duration(c.delay_ns)}` : c.decided || 'failed';
  const element = h('details', { class: 'report', data: { id: c.id } },
    h('summary', {}, h('time', { datetime: c.time }, clock(c.time)), guest(c.path, { class: 'who' }), h('span', { class: 'why' }, guest(says)), h('span', { class: 'did' }, did)), body);
  const fill = async () => {
    if (!element.open || body.childElementCount > 0) return;
    try {
      const r = await get('crashes/report', { id: c.id });
      show(body, inFull(r.report));
    } catch (e) {
      show(body, h('p', { class: 'problem' }, e.text()));
    }
  };
  element.addEventListener('toggle', fill);
  if (open) element.open = true;
  return element;
}

export function mount(root, app) {
  const p = app.route.params;
  const input = (name, label, placeholder) => h('input', { type: 'search', name, placeholder, value: p.get(name) ?? '', 'aria-label': label });
  const fields = [input('path', 'Only of actors whose path matches', '/user/pool-*'), input('type', 'Only of types that match', 'type'), input('cause', 'Only of causes that match', '*out of memory*'), input('id', 'The report with this id', 'id, as in X-Crash-Report')];
  fields[0].dataset.search = '';
  const filters = () => Object.fromEntries(fields.map((f) => [f.name, f.value.trim()]));
  const one = h('div');
  const says = h('p', { class: 'help', role: 'status' });
  const causes = h('tbody');
  const causesCard = card('Causes', {}, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Causes' }, h('table', { class: 'causes' },
    h('thead', {}, h('tr', {}, ['Reports', 'Type', 'Cause', 'First', 'Last'].map((x) => h('th', { scope: 'col' }, x)))), causes)));
  const feed = h('div', { class: 'feed' });
  let asked = '';

  function submit() {
    const q = new URLSearchParams(Object.entries(filters()).filter(([, v]) => v));
    const to = q.size > 0 ? `#/crashes?${q}` : '#/crashes';
    if (location.hash === to) app.refresh();
    else location.hash = to;
  }

  show(root, h('h1', {}, 'Crashes'),
    h('form', { class: 'bar', role: 'search', on: { submit: (e) => (e.preventDefault(), submit()) } }, fields, h('button', { type: 'submit' }, 'Show')),
    one, says, causesCard, feed);

  // found shows the report that the address names.
  async function found(id, signal) {
    if (!id || asked === id) return;
    asked = id;
    try {
      const r = await get('crashes/report', { id }, signal);
      show(one, stored(r.crash, { open: true }));
    } catch (e) {
      if (e.name === 'AbortError') asked = '';
      else show(one, h('p', { class: 'problem', role: 'alert' }, visible(e.text?.() ?? String(e))));
    }
  }

  return {
    async refresh(signal) {
      const { path, type, cause, id } = filters();
      await found(p.get('id') && id, signal);
      const page = await get('crashes', { path, type, cause, limit: mostReports }, signal);
      const kept = new Map([...feed.children].map((e) => [e.dataset.id, e]));
      const list = (page.crashes ?? []).map((c) => kept.get(c.id) ?? stored(c));
      if (list.length !== feed.children.length || list.some((e, i) => feed.children[i] !== e)) arrange(feed, list);
      show(causes, (page.causes ?? []).slice(0, 50).map((c) => h('tr', {}, h('td', { class: 'number' }, count(c.ever)), h('td', {}, guest(c.type)),
        h('td', { class: 'why' }, h('a', { href: `#/crashes?${new URLSearchParams({ type: c.type, cause: c.cause })}` }, guest(c.cause))),
        h('td', {}, h('time', { datetime: c.first }, clock(c.first))), h('td', {}, h('a', { href: reportLink(c.id) }, h('time', { datetime: c.last }, clock(c.last)))))));
      causesCard.hidden = !page.causes?.length;
      text(says, page.total === 0 ? `None is kept${page.ever > 0 ? ` that matches; ${plural(page.ever, 'crash', 'crashes')} since the start` : ''}.`
        : `${plural(list.length, 'report')} of ${count(page.total)} that are kept, the newest first; ${plural(page.ever, 'crash', 'crashes')} since the start${page.lost > 0 ? `, ${count(page.lost)} came too fast to be kept` : ''}.`);
    },
    search: () => fields[0].focus(),
    unmount() {},
  };
}

// arrange makes a list the children of an element. Those that stay are not moved: they keep the focus.
function arrange(e, list) {
  const stay = new Set(list);
  for (const c of [...e.children]) if (!stay.has(c)) c.remove();
  list.forEach((c, i) => e.children[i] !== c && e.insertBefore(c, e.children[i] ?? null));
}
