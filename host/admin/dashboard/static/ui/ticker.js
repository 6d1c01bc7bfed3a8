// Waits that run down: one timer for all that are on the page, none when there are none or
// nobody looks.

import { countdown } from '../lib/format.js';
import { h, text } from './dom.js';
import { awake, onChange } from './live.js';

let timer = 0;

// dueAt is when, by performance.now, so many nanoseconds from now have gone.
export function dueAt(ns) {
  return performance.now() + ns / 1e6;
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
