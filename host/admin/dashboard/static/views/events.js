// What happens, as it happens, through a filter.

import { actorLink, attr, guest, h, show, text } from '../ui/dom.js';
import { bytes, clip, clock, count, duration, plural } from '../lib/format.js';
import { follow } from '../ui/stream.js';
import { oneLine, report as crashReport, Resume } from './crash.js';

export const title = 'Events';

export const kinds = ['started', 'failed', 'restarted', 'resumed', 'stopped', 'dead_letter', 'log', 'unhandled', 'escalated', 'refused', 'suppressed_dead_letter', 'terminated'];
export const levels = ['debug', 'info', 'warn', 'error'];

const most = 500; // lines on the page

export function mount(root, app) {
  const p = app.route.params;
  const chosen = new Set(p.getAll('kind').filter((k) => kinds.includes(k)));
  const left = new Set(p.getAll('not-kind').filter((k) => kinds.includes(k))); // left out
  const field = h('input', { type: 'search', name: 'path', value: p.get('path') ?? '', placeholder: '/user/pool-*', 'aria-label': 'Only of actors whose path matches', data: { search: '' } });
  const but = h('input', { type: 'search', name: 'not-path', value: p.get('not-path') ?? '', placeholder: 'not /user/noisy/**', 'aria-label': 'All but those of actors whose path matches' });
  const level = h('select', { name: 'level', 'aria-label': 'Log lines of this level and worse' }, h('option', { value: '' }, 'every level'), levels.map((l) => h('option', { value: l, selected: p.get('level') === l }, `${l} and worse`)));
  // A chip is pressed for "only these", pressed again for "all but these", and again for neither.
  const chips = kinds.map((k) => h('button', { type: 'button', class: 'chip', data: { kind: k }, on: { click: (e) => {
    if (chosen.delete(k)) left.add(k);
    else if (!left.delete(k)) chosen.add(k);
    press(e.currentTarget, k);
    begin();
  } } }, k.replaceAll('_', ' ')));
  function press(chip, k) {
    attr(chip, 'aria-pressed', left.has(k) ? 'mixed' : String(chosen.has(k)));
    text(chip, `${left.has(k) ? 'not ' : ''}${k.replaceAll('_', ' ')}`);
  }
  chips.forEach((c, i) => press(c, kinds[i]));
  const says = h('p', { class: 'help', role: 'status' });
  const list = h('div', { class: 'events', role: 'log', 'aria-live': 'off', 'aria-label': 'Events', tabindex: '0' });
  let stop = () => {};
  let lost = 0;

  show(root, h('h1', {}, 'Events'),
    h('form', { class: 'bar', role: 'search', on: { submit: (e) => (e.preventDefault(), begin()) } }, field, but, level, h('button', { type: 'submit' }, 'Show')),
    h('div', { class: 'chips', role: 'group', 'aria-label': 'Kinds of events: press once for only these, twice for all but these' }, chips),
    says, list);
  level.addEventListener('change', begin);

  function begin() {
    stop();
    lost = 0;
    const q = new URLSearchParams();
    if (field.value.trim()) q.set('path', field.value.trim());
    if (level.value) q.set('level', level.value);
    if (but.value.trim()) q.set('not-path', but.value.trim());
    for (const k of chosen) q.append('kind', k);
    for (const k of left) q.append('not-kind', k);
    history.replaceState(null, '', q.size > 0 ? `#/events?${q}` : '#/events');
    show(list);
    text(says, 'Asking…');
    const seen = new Resume();
    stop = follow('events', () => ({ follow: true, path: field.value.trim(), level: level.value, kind: [...chosen], 'not-kind': [...left], 'not-path': but.value.trim(), ...seen.params() }), {
      got(events) {
        const fresh = events.filter((e) => seen.take(e)).slice(-most);
        list.prepend(...fresh.reverse().map(line));
        while (list.children.length > most) list.lastChild.remove();
        tell();
      },
      report(r) {
        if (r.state === 'dropped') lost += r.dropped;
        if (r.state === 'open' || r.state === 'dropped') tell();
        if (r.state === 'retrying') text(says, `${r.problem.text()}; trying again in ${duration(r.wait * 1e6)}`);
        if (r.state === 'refused') text(says, r.problem.text());
        if (r.state === 'asleep') text(says, 'Not following while nobody looks.');
        says.classList.toggle('problem', r.state === 'refused' || r.state === 'retrying');
      },
    });
  }

  function tell() {
    says.classList.remove('problem');
    text(says, `Following; ${plural(list.children.length, 'event')}, the newest first${list.children.length === most ? ', the most that are shown' : ''}${lost > 0 ? `; ${count(lost)} were dropped: too many events` : ''}.`);
  }

  begin();
  return { unmount: () => stop(), search: () => field.focus() };
}

// line is an event in a line; failures can be opened.
export function line(e) {
  if (e.event === 'failed' || e.event === 'escalated') {
    const r = crashReport(e);
    r.classList.add('event', `event-${e.event}`);
    r.firstChild.prepend(kind(e));
    return r;
  }
  return h('div', { class: `event event-${e.event}` }, kind(e), h('time', { datetime: e.time }, clock(e.time)),
    e.actor ? h('a', { class: 'who path', href: actorLink(e.actor) }, guest(e.actor)) : h('span', { class: 'who' }),
    h('span', { class: 'why' }, content(e)));
}

function kind(e) {
  return h('span', { class: 'kind' }, e.event === 'log' ? `log ${e.level}` : e.event.replaceAll('_', ' '));
}

function content(e) {
  switch (e.event) {
    case 'log': return guest(clip(e.text, 4000));
    case 'dead_letter':
    case 'suppressed_dead_letter':
    case 'unhandled': return [guest(e.reason), ': from ', guest(e.from || 'outside'), ' to ', guest(e.to), `, ${bytes(e.bytes)}`, e.key ? [', raise ', guest(e.key)] : null];
    case 'refused': return [guest([e.refused?.what, e.refused?.type, e.refused?.name].filter(Boolean).join(' ')), ': ', guest(e.refused?.reason), e.key ? [', see ', guest(e.key)] : null];
    case 'restarted': return [`incarnation ${e.incarnation}`, e.failure ? [' after ', guest(oneLine(e))] : null];
    case 'started': return [guest(e.type), e.incarnation > 1 ? `, incarnation ${e.incarnation}` : ''];
    default: return guest(e.note ?? '');
  }
}
