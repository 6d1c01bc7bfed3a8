// Shortcuts: single keys where nothing is typed, and the list of them.

import { h } from './dom.js';
import { open } from './dialog.js';
import { load, save } from './settings.js';

let on = load('shortcuts', 'on') === 'on';

// shortcuts listens for keys, as long as there is something to steer.
export function shortcuts(keys, ready) {
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || !ready()) return;
    if (e.target.closest?.('input, textarea, select, dialog, [contenteditable]')) {
      if (e.key === 'Escape' && e.target.matches('input[type=search]')) e.target.blur();
      return;
    }
    const key = keys.find((k) => k.key === e.key);
    if (!key || (!on && key.key !== '?')) return;
    e.preventDefault();
    key.run();
  });
}

const fixed = [
  ['↑ ↓', 'In lists: a row up or down'], ['→ ←', 'In the tree: open, close, to the first child, to the parent'], ['Home End', 'First and last row'], ['Page ↑ ↓', 'A screenful'],
  ['Enter', 'Open the actor’s page'], ['Tab', 'To the next part of the page'], ['Esc', 'Leave a dialog or a field'],
];

// help lists the shortcuts.
export function help(keys) {
  if (document.querySelector('dialog[open]')) return;
  const box = h('input', { type: 'checkbox', on: { change: () => {
    on = box.checked;
    save('shortcuts', on ? null : 'off');
  } } });
  box.checked = on;
  const row = (k, says) => h('tr', {}, h('th', { scope: 'row' }, k.split(' ').map((x) => [h('kbd', {}, x), ' '])), h('td', {}, says));
  open('Keyboard', (close) => [
    h('table', { class: 'keys' }, h('tbody', {}, keys.map((k) => row(k.key, k.says)), fixed.map(([k, says]) => row(k, says)))),
    h('label', { class: 'check' }, box, 'Single keys do something'),
    h('div', { class: 'choices' }, h('button', { type: 'button', class: 'strong', autofocus: true, on: { click: () => close() } }, 'Close')),
  ]);
}
