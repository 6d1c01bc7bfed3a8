// Who sends what to whom: a picture and a table, of a sample that is taken on demand.

import { actorLink, attr, guest, h, show, svg } from '../ui/dom.js';
import { bytes, clip, count, last, plural, visible } from '../lib/format.js';
import { graph } from '../lib/graph.js';
import { get } from '../ui/api.js';
import { failed } from '../ui/dialog.js';

export const title = 'Flow';

const mostRows = 100;

export function mount(root) {
  const picture = h('div', { class: 'graph-box', 'aria-live': 'polite' }, h('p', { class: 'help' }, 'Messages are sampled only when you ask.'));
  const table = h('div');
  const stop = new AbortController();
  const take = (seconds) => async () => {
    for (const b of buttons) b.disabled = true;
    show(picture, h('p', {}, seconds === 2 ? 'Sampling for two seconds…' : `Sampling for ${seconds} seconds…`));
    show(table);
    try {
      const flow = await get('flow', { seconds }, stop.signal);
      const edges = [...(flow.edges ?? [])].map((e) => ({ ...e, from: nameOf(e.from), to: nameOf(e.to), count: Number(e.count) })).sort((a, b) => b.count - a.count);
      show(picture, edges.length === 0 ? h('p', {}, 'No messages were seen.') : draw(edges),
        flow.one_in > 1 ? h('p', { class: 'help' }, `One turn in ${count(flow.one_in)} was looked at: the numbers are estimates.`) : null);
      if (edges.length > 0) show(table, list(edges));
    } catch (e) {
      if (e.name !== 'AbortError') failed(picture, e);
    }
    for (const b of buttons) b.disabled = false;
  };
  const buttons = [h('button', { type: 'button', data: { search: '' }, on: { click: take(2) } }, 'Sample the flow'), h('button', { type: 'button', on: { click: take(10) } }, '10 seconds')];
  show(root, h('h1', {}, 'Flow'), h('p', { class: 'bar' }, buttons), picture, table);
  return { unmount: () => stop.abort() };
}

function nameOf(p) {
  return p && p !== '/temp' ? p : 'outside';
}

// draw is the picture of the most frequent edges.
function draw(edges) {
  const g = graph(edges, { width: 1000 });
  const says = `${plural(g.arrows.length, 'way')} of messages between ${plural(g.nodes.length, 'actor')}; the table below has them all`;
  const picture = svg('svg', { class: 'graph', viewBox: `0 0 ${g.width + 60} ${g.height}`, role: 'img', 'aria-label': says });
  picture.append(svg('defs', {}, svg('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto' }, svg('path', { d: 'M0,0L8,4L0,8Z', class: 'tip' }))));
  for (const a of g.arrows) picture.append(svg('path', { class: 'arrow', d: a.path, 'stroke-width': a.weight, 'marker-end': 'url(#tip)' }, svg('title', {}, `${visible(a.from)} → ${visible(a.to)}: ${count(a.count)}`)));
  for (const n of g.nodes) {
    const box = svg('g', { class: 'node' }, svg('rect', { x: n.x, y: n.y - 12, width: n.width, height: 24, rx: 6 }),
      svg('text', { x: n.x + 8, y: n.y + 4 }, clip(visible(n.name.startsWith('/') ? last(n.name) : n.name), Math.max(4, Math.floor((n.width - 14) / 7)))),
      svg('title', {}, `${visible(n.name)}: ${count(n.sent)} sent, ${count(n.got)} received`));
    if (!n.name.startsWith('/')) {
      attr(box, 'class', 'node outside');
      picture.append(box);
    } else {
      picture.append(svg('a', { href: actorLink(n.name) }, box));
    }
  }
  return [picture, g.left > 0 ? h('p', { class: 'help' }, `… and ${plural(g.left, 'way')} with fewer messages, in the table.`) : null];
}

function list(edges) {
  const top = edges[0].count;
  return [h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Flow' }, h('table', { class: 'flow' },
    h('thead', {}, h('tr', {}, ['From', 'To', 'Kind', 'Messages', 'Bytes'].map((x) => h('th', { scope: 'col' }, x)))),
    h('tbody', {}, edges.slice(0, mostRows).map((e) => h('tr', {}, h('td', {}, end(e.from)), h('td', {}, end(e.to)), h('td', {}, guest(e.kind)),
      h('td', { class: 'bar-cell' }, h('i', { 'aria-hidden': 'true', style: { width: `${(e.count / top) * 100}%` } }), count(e.count)), h('td', {}, bytes(e.bytes))))))),
  edges.length > mostRows ? h('p', { class: 'help' }, `… and ${plural(edges.length - mostRows, 'more', 'more')}.`) : null];
}

function end(p) {
  return p.startsWith('/') ? h('a', { href: actorLink(p), title: visible(p) }, guest(last(p))) : guest(p);
}
