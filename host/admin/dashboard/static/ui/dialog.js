// Questions to whoever looks: dialogs of the browser's own, which keep the focus and close on
// Escape, and short notices.

import { append, h, show } from './dom.js';

// open shows a dialog and resolves with what close was called with; undefined if it was left.
// build(close) gives its content.
export function open(title, build, { wide = false } = {}) {
  return new Promise((resolve) => {
    const from = document.activeElement;
    let result;
    const close = (value) => {
      result = value;
      dialog.close();
    };
    const id = `dialog-${++count}`;
    const dialog = h('dialog', { class: wide ? 'wide' : '', 'aria-labelledby': id, on: {
      close: () => {
        dialog.remove();
        if (from?.isConnected) from.focus();
        resolve(result);
      },
      click: (e) => e.target === dialog && close(),
    } });
    const inner = h('div', { class: 'dialog' }, h('header', {}, h('h2', { id }, title), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', on: { click: () => close() } }, '×')));
    append(inner, [build(close)]);
    dialog.append(inner);
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector('[autofocus]')?.focus();
  });
}
let count = 0;

// notices stand in a region that screen readers announce.
const polite = h('div', { class: 'notices', role: 'status', 'aria-live': 'polite' });
const urgent = h('div', { class: 'notices', role: 'alert' });
export const region = h('div', { class: 'notice-region' }, polite, urgent);

// notice says something for some seconds. What went wrong stays until it is closed.
export function notice(content, bad = false) {
  const e = h('div', { class: bad ? 'notice bad' : 'notice' }, h('span', {}, content), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', on: { click: () => e.remove() } }, '×'));
  const to = bad ? urgent : polite;
  to.append(e);
  while (to.children.length > 4) to.firstChild.remove();
  if (!bad) setTimeout(() => e.remove(), 8000);
}

// failed shows a problem where something else would stand.
export function failed(where, problem) {
  return show(where, h('p', { class: 'problem', role: 'alert' }, problem.text?.() ?? problem.message));
}
