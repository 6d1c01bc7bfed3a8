// What actors have logged, as it comes.

import { actorLink, guest, h, show, text } from '../ui/dom.js';
import { clip, clock, count, duration, plural } from '../lib/format.js';
import { follow } from '../ui/stream.js';
import { Resume } from './crash.js';
import { levels } from './events.js';

export const title = 'Logs';

const most = 1000; // lines on the page

export function mount(root, app) {
  const p = app.route.params;
  const input = (name, label, placeholder) => h('input', { type: 'search', name, placeholder, value: p.get(name) ?? '', 'aria-label': label });
  const path = input('path', 'Only of actors whose path matches', '/user/pool-*');
  const but = input('not-path', 'All but those of actors whose path matches', 'not /user/noisy/**');
  const words = input('text', 'Only lines with this text', 'text');
  path.dataset.search = '';
  const level = h('select', { name: 'level', 'aria-label': 'This level and worse' }, h('option', { value: '' }, 'every level'), levels.map((l) => h('option', { value: l, selected: p.get('level') === l }, `${l} and worse`)));
  const says = h('p', { class: 'help', role: 'status' });
  const list = h('div', { class: 'events logs', role: 'log', 'aria-live': 'off', 'aria-label': 'Log lines', tabindex: '0' });
  let stop = () => {};
  let lost = 0;

  show(root, h('h1', {}, 'Logs'),
    h('form', { class: 'bar', role: 'search', on: { submit: (e) => (e.preventDefault(), begin()) } }, path, but, level, words, h('button', { type: 'submit' }, 'Show')), says, list);
  level.addEventListener('change', () => begin());
  words.addEventListener('input', () => [...list.children].forEach(sift));

  function sift(e) {
    const part = words.value.trim().toLowerCase();
    e.hidden = part !== '' && !e.textContent.toLowerCase().includes(part);
  }

  function begin() {
    stop();
    lost = 0;
    const q = new URLSearchParams([path, but, level, words].map((f) => [f.name, f.value.trim()]).filter(([, v]) => v));
    history.replaceState(null, '', q.size > 0 ? `#/logs?${q}` : '#/logs');
    show(list);
    text(says, 'Asking…');
    const seen = new Resume();
    stop = follow('events', () => ({ follow: true, kind: 'log', path: path.value.trim(), 'not-path': but.value.trim(), level: level.value, ...seen.params() }), {
      got(events) {
        const fresh = events.filter((e) => seen.take(e)).slice(-most).reverse().map(line);
        fresh.forEach(sift);
        list.prepend(...fresh);
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
    text(says, `Following; ${plural(list.children.length, 'line')}, the newest first${list.children.length === most ? ', at most so many are shown' : ''}${lost > 0 ? `; ${count(lost)} were dropped: too many at once` : ''}.`);
  }

  begin();
  return { unmount: () => stop(), search: () => path.focus() };
}

function line(e) {
  return h('div', { class: `event log-${levels.includes(e.level) ? e.level : 'info'}` }, h('span', { class: 'kind' }, guest(e.level)), h('time', { datetime: e.time }, clock(e.time)),
    h('a', { class: 'who path', href: actorLink(e.actor) }, guest(e.actor)), h('span', { class: 'why' }, guest(clip(e.text, 4000)), e.trace_id ? h('span', { class: 'help' }, ' trace ', guest(e.trace_id)) : null));
}
