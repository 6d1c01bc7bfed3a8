// Small charts, drawn by hand: lines of what was, bars of what is a part of what, and the
// curve of a backoff.

import { backoff, line, nice, shares } from '../lib/plot.js';
import { ticks } from '../lib/axis.js';
import { duration } from '../lib/format.js';
import { attr, h, svg, text } from './dom.js';

const [width, height] = [240, 56];

// spark is a line of the last minutes with its present value: {element, update(values, now,
// note)}. format turns a value into a text.
export function spark(title, format, { kind = 'rate', round = nice } = {}) {
  const area = svg('path', { class: 'area' });
  const stroke = svg('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  const picture = svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false' }, area, stroke);
  const value = h('strong', { class: 'value' }, '–');
  const most = h('span', { class: 'most' });
  const note = h('span', { class: 'note' });
  const axis = h('div', { class: 'axis', 'aria-hidden': 'true' });
  const element = h('figure', { class: `chart chart-${kind}` }, h('figcaption', {}, h('span', { class: 'title' }, title), value, note), most, picture, axis);
  return {
    element,
    update(values, now, remark = '') {
      const drawn = line(values, width, height, round);
      attr(area, 'd', drawn.area);
      attr(stroke, 'd', drawn.path);
      text(value, now === null || now === undefined ? '–' : format(now));
      text(most, drawn.path ? format(drawn.top) : '');
      text(note, remark);
      drawAxis(axis, values);
    },
  };
}

const mostTicks = 4;

// drawAxis puts the times of day below a line.
function drawAxis(axis, values) {
  const known = values.filter((v) => Number.isFinite(v.value));
  const [from, to] = [known[0]?.at, known.at(-1)?.at];
  const list = known.length > 1 ? ticks(from, to, mostTicks, -new Date(to).getTimezoneOffset() * 60_000) : [];
  while (axis.children.length > list.length) axis.lastChild.remove();
  list.forEach((t, i) => {
    const e = axis.children[i] ?? axis.appendChild(h('span'));
    text(e, t.label);
    const left = `${(t.part * 100).toFixed(1)}%`;
    if (e.style.left !== left) e.style.left = left;
    attr(e, 'class', t.part < 0.08 ? 'first' : t.part > 0.92 ? 'last' : null);
  });
}

// stack is a bar of parts: {element, update([{name, value}])}. The names are classes of the
// parts; what it says is told in words by label.
export function stack(label) {
  const element = h('div', { class: 'stack', role: 'img', 'aria-label': label });
  return {
    element,
    update(parts, says) {
      const widths = shares(parts.map((p) => p.value));
      while (element.children.length > parts.length) element.lastChild.remove();
      parts.forEach((p, i) => {
        const e = element.children[i] ?? element.appendChild(h('span'));
        attr(e, 'class', `part part-${p.name}`);
        const w = `${widths[i].toFixed(2)}%`;
        if (e.style.width !== w) e.style.width = w;
      });
      attr(element, 'aria-label', says ?? label);
      attr(element, 'title', says ?? label);
    },
  };
}

// curve is the delays of a backoff with the attempt that is due on it.
export function curve(points, attempt) {
  const box = { width: 420, height: 180 };
  const plot = backoff(points, attempt, box);
  if (!plot) return h('p', { class: 'none' }, 'Restarts are not delayed.');
  const says = `Delay before each restart, from ${duration(plot.dots[0].delay_ns)} at attempt ${plot.dots[0].attempt} to ${duration(plot.dots.at(-1).delay_ns)} at attempt ${plot.dots.at(-1).attempt}`
    + (plot.now ? `; attempt ${plot.now.attempt} is due, after ${duration(plot.now.delay_ns)}` : '; no attempt is due');
  const picture = svg('svg', { class: 'curve', viewBox: `0 0 ${box.width} ${box.height}`, role: 'img', 'aria-label': says });
  for (const t of plot.ticks) {
    picture.append(svg('line', { class: 'guide', x1: plot.left, x2: plot.right, y1: t.y, y2: t.y }),
      svg('text', { class: 'tick', x: plot.left - 6, y: t.y + 4, 'text-anchor': 'end' }, duration(t.delay_ns)));
  }
  for (const s of plot.steps) picture.append(svg('text', { class: 'tick', x: s.x, y: plot.bottom + 16, 'text-anchor': 'middle' }, s.attempt));
  picture.append(svg('path', { class: 'line', d: plot.path }));
  for (const d of plot.dots) picture.append(svg('circle', { class: 'point', cx: d.x, cy: d.y, r: 3 }, svg('title', {}, `attempt ${d.attempt}: ${duration(d.delay_ns)}`)));
  if (plot.now) {
    picture.append(svg('line', { class: 'now-line', x1: plot.now.x, x2: plot.now.x, y1: plot.now.y, y2: plot.bottom }),
      svg('circle', { class: 'now', cx: plot.now.x, cy: plot.now.y, r: 6 }, svg('title', {}, says)));
  }
  const words = plot.now ? `attempt ${plot.now.attempt}: ${duration(plot.now.delay_ns)}${plot.now.beyond ? ', beyond what is drawn' : ''}` : 'no restart is due';
  return h('figure', { class: 'curve-box' }, picture, h('figcaption', {}, h('span', { class: 'legend-now' }, words), plot.log ? ' · logarithmic' : '', ' · before jitter'));
}

// bars lists shares of a whole with their sizes.
export function bars(parts, format) {
  const most = Math.max(...parts.map((p) => p.value), 1);
  return h('ul', { class: 'bars' }, parts.map((p) => h('li', {},
    h('span', { class: 'name' }, p.label ?? p.name),
    h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${Math.max(p.value > 0 ? 1 : 0, (p.value / most) * 100)}%` } })),
    h('span', { class: 'size' }, format(p.value)))));
}
