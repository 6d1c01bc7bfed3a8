// The rows of a list that is loaded by the page: what a search or a sorted view shows. It
// answers as Tree does, so that one list shows both.

import { pageSize } from './tree.js';

export class Flat {
  constructor() {
    this.total = 0;
    this.pages = new Map();
    this.age = 0;
  }

  size() {
    return this.total;
  }

  at(i) {
    const row = this.pages.get(Math.floor(i / pageSize))?.rows[i % pageSize] ?? null;
    return { row, path: row?.path ?? null, level: 1, index: i, parent: null, open: false };
  }

  indexOf(path) {
    for (const [number, page] of this.pages) {
      const j = page.rows.findIndex((r) => r.path === path);
      if (j >= 0) return number * pageSize + j;
    }
    return -1;
  }

  setPage(number, total, rows) {
    this.total = total;
    this.pages.set(number, { rows, age: this.age });
    const pages = Math.ceil(total / pageSize);
    for (const n of this.pages.keys()) if (n >= pages) this.pages.delete(n);
  }

  // needs are the numbers of the pages for rows first to end. The first page is needed even
  // of an empty list, for it says how long the list is.
  needs(first, end) {
    const out = [];
    const to = Math.max(0, Math.ceil(Math.min(end, this.total) / pageSize) - 1);
    for (let n = Math.min(Math.floor(first / pageSize), to); n <= to; n++) {
      const page = this.pages.get(n);
      if (!page || page.age < this.age) out.push(n);
    }
    return out;
  }

  fresh() {
    this.age++;
  }

  trim(first, end, most = 40) {
    for (const n of this.pages.keys()) {
      if (this.pages.size <= most) return;
      if ((n + 1) * pageSize <= first || n * pageSize >= end) this.pages.delete(n);
    }
  }
}
