// The rows of a tree of which only parts are known. Every node knows how many children it
// has; their rows are loaded by the page when they come into view. Finding a row takes
// time by the number of open nodes, not by that of rows: 10^5 children cost nothing.

export const pageSize = 200;

// Node is an actor in the tree: its row as the server has it, and, if it is open, the
// pages of its children.
class Node {
  constructor(row, parent, index) {
    this.row = row;
    this.parent = parent;
    this.index = index; // among its siblings
    this.open = false;
    this.total = row?.children ?? 0;
    this.pages = new Map(); // number -> {rows, age}
    this.opened = new Map(); // path -> open child
  }

  // size is the number of rows of the node and of all that is open below it.
  size() {
    if (!this.open) return 1;
    let n = 1 + this.total;
    for (const k of this.opened.values()) n += k.size() - 1;
    return n;
  }

  // inOrder are the open children by their place.
  inOrder() {
    return [...this.opened.values()].sort((a, b) => a.index - b.index);
  }
}

export class Tree {
  constructor(root) {
    this.root = new Node(root, null, 0);
    this.age = 0; // counts refreshes
  }

  // size is the number of rows.
  size() {
    return this.root.size();
  }

  // at is row i: {node or null, row or null, path or null, level, index, parent}. A row that is
  // not loaded has neither path nor row.
  at(i) {
    let node = this.root;
    let level = 1;
    for (;;) {
      if (i === 0) return { row: node.row, path: node.row.path, level, index: node.index, parent: node.parent, open: node.open };
      i--; // among the children's rows
      let index = 0; // of the child that row i is, or is below
      let into = null;
      let before = 0; // rows of the children that were passed
      for (const k of node.inOrder()) {
        const start = before + (k.index - index);
        if (i < start) break;
        if (i < start + k.size()) {
          into = k;
          i -= start;
          break;
        }
        before = start + k.size();
        index = k.index + 1;
      }
      if (into) {
        node = into;
        level++;
        continue;
      }
      index += i - before;
      const row = this.#loaded(node, index);
      return { row, path: row?.path ?? null, level: level + 1, index, parent: node, open: false };
    }
  }

  #loaded(node, index) {
    return node.pages.get(Math.floor(index / pageSize))?.rows[index % pageSize] ?? null;
  }

  // indexOf is the row at which a path is shown, -1 if it is not.
  indexOf(path) {
    const node = this.find(path);
    if (node) return this.#rowOf(node);
    const parent = this.#holder(path);
    if (!parent) return -1;
    for (const [number, page] of parent.pages) {
      const j = page.rows.findIndex((r) => r.path === path);
      if (j >= 0) return this.#rowOf(parent) + 1 + this.#before(parent, number * pageSize + j);
    }
    return -1;
  }

  // #before is how many rows the first index children of a node take.
  #before(node, index) {
    let n = index;
    for (const k of node.opened.values()) if (k.index < index) n += k.size() - 1;
    return n;
  }

  #rowOf(node) {
    let n = 0;
    for (let k = node; k.parent; k = k.parent) n += 1 + this.#before(k.parent, k.index);
    return n;
  }

  // find is the node of a path: the root, or one that is open.
  find(path) {
    let node = this.root;
    for (;;) {
      if (node.row.path === path) return node;
      const next = [...node.opened.values()].find((k) => path === k.row.path || path.startsWith(k.row.path + '/'));
      if (!next) return null;
      node = next;
    }
  }

  // #holder is the open node of which a path would be a child.
  #holder(path) {
    const i = path.lastIndexOf('/');
    const node = this.find(i <= 0 ? '/' : path.slice(0, i));
    return node?.open ? node : null;
  }

  // expand opens a loaded row; false if there is nothing below it.
  expand(path) {
    let node = this.find(path);
    if (!node) {
      const parent = this.#holder(path);
      if (!parent) return false;
      for (const [number, page] of parent.pages) {
        const j = page.rows.findIndex((r) => r.path === path);
        if (j < 0) continue;
        if (!page.rows[j].children) return false;
        node = new Node(page.rows[j], parent, number * pageSize + j);
        parent.opened.set(path, node);
        break;
      }
    }
    if (!node || node.total === 0) return false;
    node.open = true;
    return true;
  }

  // collapse closes an open node; what is below it is forgotten.
  collapse(path) {
    const node = this.find(path);
    if (!node?.open) return false;
    node.open = false;
    node.pages.clear();
    node.opened.clear();
    node.parent?.opened.delete(path);
    return true;
  }

  // setPage takes what the server says about a page of a node's children. Open children
  // that have moved move along; those that have gone are closed.
  setPage(path, number, total, rows) {
    const node = this.find(path);
    if (!node?.open) return;
    node.total = total;
    node.pages.set(number, { rows, age: this.age });
    const pages = Math.ceil(total / pageSize);
    for (const n of node.pages.keys()) if (n >= pages) node.pages.delete(n);
    for (const [p, k] of node.opened) {
      const j = rows.findIndex((r) => r.path === p);
      if (j >= 0) {
        k.row = rows[j];
        k.index = number * pageSize + j;
        if (rows[j].children === 0) this.collapse(p);
      } else if (Math.floor(k.index / pageSize) === number || k.index >= total) {
        this.collapse(p);
      }
    }
  }

  // setRow takes what the server says about one node.
  setRow(row) {
    const node = this.find(row.path);
    if (!node) return;
    node.row = row;
    if (!node.open) node.total = row.children ?? 0;
  }

  // needs are the pages for rows first to end, and those in which the nodes above them stand,
  // which say where the rows are: all of them after fresh(), else those that are not there.
  // Each is {path, number}.
  needs(first, end) {
    const out = [];
    const seen = new Set();
    const need = (node, index) => {
      const number = Math.floor(index / pageSize);
      const key = `${number} ${node.row.path}`;
      if (seen.has(key)) return;
      seen.add(key);
      const page = node.pages.get(number);
      if (!page || page.age < this.age) out.push({ path: node.row.path, number });
      if (node.parent) need(node.parent, node.index);
    };
    for (let i = first; i < Math.min(end, this.size()); i++) {
      const { parent, index } = this.at(i);
      if (parent) need(parent, index);
    }
    return out;
  }

  // fresh makes every page one that must be loaded again before it counts as known; until
  // then it is shown as it was.
  fresh() {
    this.age++;
  }

  // trim forgets pages that are far from view, so that somebody who scrolls through
  // everything does not keep everything.
  trim(first, end, most = 40) {
    const keep = new Set();
    for (let i = first; i < Math.min(end, this.size()); i++) {
      const { parent, index } = this.at(i);
      if (parent) keep.add(`${Math.floor(index / pageSize)} ${parent.row.path}`);
    }
    const walk = (node) => {
      if (node.pages.size > most) {
        for (const n of node.pages.keys()) {
          if (node.pages.size <= most) break;
          const holds = [...node.opened.values()].some((k) => Math.floor(k.index / pageSize) === n);
          if (!holds && !keep.has(`${n} ${node.row.path}`)) node.pages.delete(n);
        }
      }
      for (const k of node.opened.values()) walk(k);
    };
    walk(this.root);
  }
}
