// A list of any length of which only the rows in view are in the page. It shows a Tree or a
// Flat: something with size(), at(i), indexOf(path). One row has the focus; arrows, Home, End
// and the page keys move it.

import { heights, offset, range, reveal, scrollFor } from '../lib/geometry.js';
import { attr, h, text } from './dom.js';

export class Rows {
  // columns are {name, title, make(cell), update(cell, item), sort}. wanted(first, end) is
  // called when rows come into view, opened(item) on Enter, toggle(item, open) when a row is
  // to be opened or closed; sorted(name) when a heading is pressed.
  constructor({ label, columns, model, wanted, opened, toggle, sorted, tree = true }) {
    Object.assign(this, { columns, model, wanted, opened, toggle, tree });
    this.focus = 0;
    this.focusPath = null;
    this.elements = new Map(); // row number -> element
    this.pool = [];
    this.heads = columns.map((c) => {
      const head = h('div', { role: 'columnheader', class: `cell cell-${c.name}` });
      if (c.sort && sorted) head.append(h('button', { type: 'button', class: 'sort', on: { click: () => sorted(c.sort) } }, c.title));
      else head.append(c.title);
      return head;
    });
    this.space = h('div', { class: 'rows-space', role: 'presentation' });
    this.body = h('div', { class: 'rows-body', role: 'rowgroup', tabindex: '-1' }, this.space);
    this.element = h('div', { class: 'rows', role: 'treegrid', 'aria-label': label, 'aria-colcount': columns.length },
      h('div', { class: 'rows-head', role: 'rowgroup' }, h('div', { class: 'row', role: 'row', 'aria-rowindex': '1' }, this.heads)), this.body);
    this.body.addEventListener('scroll', () => this.#later(), { passive: true });
    this.body.addEventListener('keydown', (e) => this.#key(e));
    this.body.addEventListener('click', (e) => this.#click(e));
    this.body.addEventListener('focusin', (e) => this.#focused(e));
    this.sizes = new ResizeObserver(() => this.#measure());
    this.sizes.observe(this.body);
    this.row = 32;
    this.frame = 0;
  }

  destroy() {
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // show changes what is listed, from the top.
  show(model, tree) {
    this.model = model;
    this.tree = tree;
    this.focus = 0;
    this.focusPath = null;
    this.body.scrollTop = 0;
    this.update();
  }

  // order marks the heading by which the list is sorted.
  order(sort, desc) {
    this.columns.forEach((c, i) => attr(this.heads[i], 'aria-sort', c.sort && c.sort === sort ? (desc ? 'descending' : 'ascending') : null));
  }

  // update draws what has changed. The row with the focus stays where it is on the screen.
  update() {
    if (this.focusPath !== null) {
      const at = this.model.indexOf(this.focusPath);
      if (at >= 0 && at !== this.focus) {
        const from = this.#offset();
        if (this.focus * this.row >= from && this.focus * this.row < from + this.body.clientHeight) this.#scrollTo(from + (at - this.focus) * this.row);
        this.focus = at;
      }
    }
    this.focus = Math.max(0, Math.min(this.focus, this.model.size() - 1));
    this.render();
  }

  // current is the row with the focus.
  current() {
    return this.model.size() > 0 ? { ...this.model.at(this.focus), number: this.focus } : null;
  }

  #measure() {
    const row = parseFloat(getComputedStyle(this.element).getPropertyValue('--row')) || 32;
    if (row !== this.row) {
      const at = this.#offset() / this.row;
      this.row = row;
      this.#scrollTo(at * row);
    }
    this.render();
  }

  #offset() {
    return offset(this.body.scrollTop, this.body.clientHeight, this.model.size(), this.row);
  }

  #scrollTo(at) {
    const total = this.model.size();
    this.#height(total);
    this.body.scrollTop = scrollFor(at, this.body.clientHeight, total, this.row);
  }

  #height(total) {
    const px = `${heights(total, this.row).shown}px`;
    if (this.space.style.height !== px) this.space.style.height = px;
  }

  #later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => ((this.frame = 0), this.render()));
  }

  // render puts the rows in view into the page, and the one with the focus wherever it is.
  render() {
    const total = this.model.size();
    this.#height(total);
    attr(this.element, 'aria-rowcount', total + 1);
    const { first, end, top } = range(this.body.scrollTop, this.body.clientHeight, total, this.row);
    const held = this.body.contains(document.activeElement) && document.activeElement !== this.body;
    for (const [i, e] of this.elements) {
      if ((i < first || i >= end) && (i !== this.focus || total === 0)) {
        this.elements.delete(i);
        if (e === document.activeElement) continue; // taken over below
        e.remove();
        this.pool.push(e);
      }
    }
    for (let i = first; i < end; i++) this.#draw(i, top + (i - first) * this.row);
    if (total > 0 && (this.focus < first || this.focus >= end)) this.#draw(this.focus, top + (this.focus - first) * this.row);
    if (held && total === 0) {
      this.body.replaceChildren(this.space); // nothing is left in it that could have the focus
      this.space.replaceChildren();
      this.body.focus();
    } else if (held) {
      const e = this.elements.get(this.focus);
      const was = document.activeElement;
      if (e && !e.contains(was)) e.focus({ preventScroll: true });
      if (was !== document.activeElement && was.classList.contains('row') && ![...this.elements.values()].includes(was)) was.remove();
    }
    if (this.pool.length > 200) this.pool.length = 200;
    this.inView = [first, end];
    this.wanted(first, end);
  }

  #draw(i, y) {
    let e = this.elements.get(i);
    if (!e) {
      e = this.pool.pop() ?? this.#make();
      this.elements.set(i, e);
      this.space.append(e);
    }
    const item = this.model.at(i);
    e.item = item;
    e.number = i;
    const move = `translateY(${y}px)`;
    if (e.style.transform !== move) e.style.transform = move;
    attr(e, 'aria-rowindex', i + 2);
    attr(e, 'aria-level', this.tree ? item.level : null);
    const below = this.tree && item.row && (item.row.children ?? 0) > 0;
    attr(e, 'aria-expanded', below ? String(item.open) : null);
    attr(e, 'aria-busy', item.row ? null : 'true');
    attr(e, 'tabindex', i === this.focus ? '0' : '-1');
    e.classList.toggle('waiting', !item.row);
    this.columns.forEach((c, n) => {
      if (item.row) c.update(e.cells[n], item, this.tree);
      else if (e.cells[n].dataset.empty === undefined) c.clear?.(e.cells[n]);
    });
  }

  #make() {
    const e = h('div', { class: 'row', role: 'row' });
    e.cells = this.columns.map((c) => {
      const cell = h('div', { role: 'gridcell', class: `cell cell-${c.name}` });
      c.make(cell);
      e.append(cell);
      return cell;
    });
    return e;
  }

  // go moves the focus to a row and shows it.
  go(i, take = true) {
    const total = this.model.size();
    if (total === 0) return;
    i = Math.max(0, Math.min(i, total - 1));
    this.focus = i;
    this.focusPath = this.model.at(i).path;
    const at = this.#offset();
    const to = reveal(i, at, this.body.clientHeight, this.row);
    if (to !== at) this.#scrollTo(to);
    this.render();
    if (take) this.elements.get(i)?.focus({ preventScroll: true });
  }

  #focused(e) {
    const row = e.target.closest('.row');
    if (!row || row.number === this.focus) return;
    const before = this.elements.get(this.focus);
    if (before) attr(before, 'tabindex', '-1');
    this.focus = row.number;
    attr(row, 'tabindex', '0');
    this.focusPath = row.item?.path ?? null;
  }

  #click(e) {
    const row = e.target.closest('.row');
    if (!row?.item?.row) return;
    if (e.target.closest('.twisty')) {
      const item = row.item;
      this.go(row.number); // first: the row with the focus is the one that stays where it is
      this.toggle?.(item, !item.open);
    } else if (!e.target.closest('a, button')) {
      this.go(row.number);
    }
  }

  #key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !e.target.classList.contains('row')) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.row) - 1);
    const item = this.current();
    if (!item) return;
    const below = this.tree && item.row && (item.row.children ?? 0) > 0;
    switch (e.key) {
      case 'ArrowDown': this.go(this.focus + 1); break;
      case 'ArrowUp': this.go(this.focus - 1); break;
      case 'PageDown': this.go(this.focus + page); break;
      case 'PageUp': this.go(this.focus - page); break;
      case 'Home': this.go(0); break;
      case 'End': this.go(this.model.size() - 1); break;
      case 'ArrowRight':
        if (below && !item.open) this.toggle?.(item, true);
        else if (below) this.go(this.focus + 1);
        break;
      case 'ArrowLeft':
        if (item.open) this.toggle?.(item, false);
        else if (this.tree && item.parent) this.go(this.model.indexOf(item.parent.row.path));
        break;
      case 'Enter': if (item.row) this.opened?.(item); break;
      default: return;
    }
    e.preventDefault();
  }
}

// column makes one that shows a text.
export function column(name, title, value, { sort, tip } = {}) {
  return {
    name, title, sort,
    make: () => {},
    update: (cell, item, tree) => {
      text(cell, value(item.row, tree));
      if (tip) attr(cell, 'title', tip(item.row));
    },
    clear: (cell) => text(cell, ''),
  };
}
