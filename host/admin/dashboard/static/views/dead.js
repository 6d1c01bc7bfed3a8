// Messages that nobody got, and how to deliver them again.

import { actorLink, attr, guest, h, show, text } from '../ui/dom.js';
import { bytes, clock, count, plural } from '../lib/format.js';
import { pretty } from '../lib/json.js';
import { failed, notice, open } from '../ui/dialog.js';
import { get, mayChange, post } from '../ui/api.js';

export const title = 'Dead letters';

const size = 100; // a page

export function mount(root, app) {
  const chosen = new Set();
  let offset = null; // of the page; null: the newest
  let page = { total: 0, letters: [] };
  const to = h('input', { type: 'search', name: 'to', value: app.route.params.get('to') ?? '', placeholder: '/user/pool-*', 'aria-label': 'Only those to actors whose path matches', data: { search: '' } });
  const says = h('p', { class: 'help', role: 'status' });
  const body = h('tbody');
  const all = h('input', { type: 'checkbox', 'aria-label': 'Choose all on this page', on: { change: () => {
    for (const l of page.letters) if (l.whole) all.checked ? chosen.add(l.id) : chosen.delete(l.id);
    paint();
  } } });
  const again = h('button', { type: 'button', class: 'strong', on: { click: () => redeliver([...chosen]) } }, 'Deliver again…');
  const older = h('button', { type: 'button', on: { click: () => turn(-size) } }, 'Older');
  const newer = h('button', { type: 'button', on: { click: () => turn(size) } }, 'Newer');
  const may = mayChange();
  const heads = ['Time', 'To', 'From', 'Reason', 'Size'];
  const table = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Dead letters' },
    h('table', { class: 'dead' }, h('thead', {}, h('tr', {}, may ? h('th', { scope: 'col' }, all) : null, heads.map((x) => h('th', { scope: 'col' }, x)))), body));
  show(root, h('h1', {}, 'Dead letters'),
    h('form', { class: 'bar', role: 'search', on: { submit: (e) => (e.preventDefault(), (offset = null), app.refresh()) } }, to, h('button', { type: 'submit' }, 'Show'), may ? again : null),
    says, table, h('div', { class: 'bar' }, older, newer));

  function turn(by) {
    offset = Math.max(0, (offset ?? Math.max(0, page.total - size)) + by);
    if (offset + size >= page.total) offset = null;
    app.refresh();
  }

  function paint() {
    const rows = [...page.letters].reverse(); // the newest first
    text(says, page.total === 0 ? 'There are none.' : `${plural(page.total, 'dead letter')} ${page.total === 1 ? 'is' : 'are'} kept${page.ever > page.total ? `, of ${count(page.ever)} since the start` : ''}; the newest first.`);
    table.hidden = rows.length === 0;
    const known = new Map([...body.children].map((tr) => [tr.letter, tr]));
    show(body, rows.map((l) => {
      const tr = known.get(l.id) ?? row(l);
      if (tr.box) tr.box.checked = chosen.has(l.id);
      return tr;
    }));
    attr(again, 'disabled', chosen.size === 0);
    text(again, chosen.size > 0 ? `Deliver ${count(chosen.size)} again…` : 'Deliver again…');
    older.hidden = page.total <= size || page.offset === 0;
    newer.hidden = offset === null;
  }

  function row(l) {
    const tr = h('tr');
    tr.letter = l.id;
    tr.box = may ? h('input', { type: 'checkbox', disabled: !l.whole, 'aria-label': `Choose the letter to ${l.to}`, on: { change: () => {
      tr.box.checked ? chosen.add(l.id) : chosen.delete(l.id);
      paint();
    } } }) : null;
    const content = l.payload === undefined ? guest(l.reason)
      : h('details', {}, h('summary', {}, guest(l.reason)), h('pre', { tabindex: '0' }, guest(pretty(l.payload))));
    tr.append(...[tr.box ? h('td', {}, tr.box) : null,
      h('td', {}, h('time', { datetime: l.time }, clock(l.time))),
      h('td', {}, link(l.to)), h('td', {}, link(l.from)),
      h('td', { class: 'why' }, content, l.key ? h('div', { class: 'help' }, 'raise ', guest(l.key)) : null, l.whole ? null : h('div', { class: 'help' }, 'not kept whole')),
      h('td', { class: 'number' }, bytes(l.size))].filter(Boolean));
    return tr;
  }

  // redeliver asks what would happen, and does it.
  async function redeliver(ids) {
    const did = await open(`Deliver ${plural(ids.length, 'dead letter')} again`, (close) => {
      const would = h('div', { class: 'outcome', 'aria-live': 'polite' }, 'Asking what that would do…');
      const yes = h('button', { type: 'submit', class: 'strong', disabled: true }, 'Deliver again');
      const outcome = (o) => h('ul', { class: 'changes' }, (o.changed ?? []).slice(0, 50).map((c) => h('li', {}, guest(c.path), ' ', c.error ? h('span', { class: 'problem' }, guest(c.error)) : h('span', { class: 'did' }, guest(c.did)))));
      post('dead-letters/redeliver', { ids, dry_run: true }).then((o) => {
        show(would, outcome(o));
        yes.disabled = o.done === 0;
        if (!yes.disabled) yes.focus();
      }, (e) => failed(would, e));
      return h('form', { on: { submit: async (e) => {
        e.preventDefault();
        yes.disabled = true;
        try {
          const o = await post('dead-letters/redeliver', { ids });
          notice(`${plural(o.done, 'letter')} delivered again${o.failed > 0 ? `, ${count(o.failed)} not` : ''}`, o.failed > 0);
          close(true);
        } catch (problem) {
          failed(would, problem);
        }
      } } }, h('p', {}, 'They go to their recipients as if they were sent now.'), would,
      h('div', { class: 'choices' }, h('button', { type: 'button', on: { click: () => close() } }, 'Cancel'), yes));
    });
    if (!did) return;
    chosen.clear();
    app.refresh();
  }

  return {
    async refresh(signal) {
      let at = offset;
      if (at === null) at = Math.max(0, page.total - size);
      let got = await get('dead-letters', { to: to.value.trim(), offset: at, limit: size }, signal);
      if (offset === null && got.total > at + size) { // more have come than fit: the last page
        at = got.total - size;
        got = await get('dead-letters', { to: to.value.trim(), offset: at, limit: size }, signal);
      } else if (at > 0 && got.letters.length === 0) {
        offset = null;
        at = Math.max(0, got.total - size);
        got = await get('dead-letters', { to: to.value.trim(), offset: at, limit: size }, signal);
      }
      page = { letters: [], ...got, offset: at };
      page.letters ??= [];
      const here = new Set(page.letters.map((l) => l.id));
      for (const id of chosen) if (!here.has(id)) chosen.delete(id);
      paint();
    },
    search: () => to.focus(),
    unmount() {},
  };
}

function link(p) {
  if (!p) return 'outside';
  return p.startsWith('/') ? h('a', { class: 'path', href: actorLink(p) }, guest(p)) : guest(p);
}
