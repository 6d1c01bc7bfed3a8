// Reports of failures: why, where in the guest, what was decided, which message it was.

import { actorLink, guest, h, show, text } from '../ui/dom.js';
import { bytes, clock, duration, plural } from '../lib/format.js';
import { pretty } from '../lib/json.js';
import { follow } from '../ui/stream.js';

// crashFeed follows failures into an element, the newest first, at most so many; the result
// stops it. brief leaves out all but the line.
export function crashFeed(root, { most, brief = false, path, changed = () => {} }) {
  const none = h('p', { class: 'none' }, 'None, as far as events are kept.');
  show(root, none);
  const seen = new Resume();
  return follow('events', () => ({ follow: true, kind: ['failed', 'escalated'], path, ...seen.params() }), {
    got(events) {
      events = events.filter((e) => (e.event === 'failed' || e.event === 'escalated') && seen.take(e));
      if (events.length === 0) return;
      none.remove();
      root.prepend(...events.slice(-most).reverse().map((e) => (brief ? brieflyOf(e) : report(e))));
      while (root.children.length > most) root.lastChild.remove();
      changed();
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

export function mount(root, app) {
  const feed = h('div', { class: 'feed' });
  const says = h('p', { class: 'help', role: 'status' });
  const field = h('input', { type: 'search', name: 'path', placeholder: '/user/pool-*', value: app.route.params.get('path') ?? '', 'aria-label': 'Only of actors whose path matches', data: { search: '' } });
  let stop = () => {};
  function begin() {
    stop();
    stop = crashFeed(feed, { most: 200, path: field.value.trim(), changed: () => text(says, `${plural(feed.querySelectorAll('.report').length, 'report')}, the newest first; at most 200 are shown.`) });
  }
  show(root, h('h1', {}, 'Crashes'),
    h('form', { class: 'bar', on: { submit: (e) => (e.preventDefault(), begin()) } }, field, h('button', { type: 'submit' }, 'Show'),
      h('button', { type: 'button', on: { click: () => feed.querySelectorAll('details').forEach((d) => (d.open = true)) } }, 'Open all')),
    says, feed);
  begin();
  return { unmount: () => stop() };
}
