// Waits that run down: one timer for all that are on the page, none when there are none or
// nobody looks.

import { countdown } from '../lib/format.js';
import { h, text } from './dom.js';
import { awake, onChange } from './live.js';

let timer = 0;

const waits = new Map(); // path -> {life, at}

// dueAt is when, by performance.now, the wait of an actor's row ends; null if it does not wait.
// The server may have looked a little before it has answered, so that of several looks at the
// same wait the one that ends first is the best.
export function dueAt(row) {
  if (!(row.due_ns > 0)) {
    waits.delete(row.path);
    return null;
  }
  const life = `${row.ref} ${row.crashes}`;
  let at = performance.now() + row.due_ns / 1e6;
  const known = waits.get(row.path);
  if (known?.life === life && at - known.at < 1000) at = Math.min(at, known.at);
  if (waits.size > 2000) waits.clear();
  waits.set(row.path, { life, at });
  return at;
}

// wait is an element that shows how long until a time by performance.now.
export function wait(at) {
  const e = h('span', { class: 'due' });
  setWait(e, at);
  return e;
}

// setWait changes the time; null shows nothing.
export function setWait(e, at) {
  if (at === null || at === undefined) {
    if (e.dataset.due !== undefined) {
      delete e.dataset.due;
      text(e, '');
    }
    return;
  }
  e.dataset.due = String(at);
  paint(e);
  if (!timer) tick();
}

function paint(e) {
  text(e, countdown((Number(e.dataset.due) - performance.now()) * 1e6));
}

function tick() {
  timer = 0;
  const all = document.querySelectorAll('[data-due]');
  for (const e of all) paint(e);
  const every = matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 100;
  if (awake() && (all.length > 0 || document.readyState !== 'complete')) timer = setTimeout(tick, every);
}

onChange(() => awake() && !timer && tick());
