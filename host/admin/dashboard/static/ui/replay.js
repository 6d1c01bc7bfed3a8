// The time of a recording: a slider that moves what all views show.

import { attr, guest, h, show, text } from './dom.js';
import { clock, plural } from '../lib/format.js';
import { says, stepOf, steps, timeAt } from '../lib/replay.js';
import { get, mayMove, post } from './api.js';

// replayBar is the bar above the views. moved is called when another time is shown.
export function replayBar(moved) {
  let now = null; // what the server has said last
  let busy = false;
  let held = false; // somebody moves the slider
  const slider = h('input', { type: 'range', name: 'replay', min: 0, step: 1, 'aria-label': 'Time of the recording', on: {
    input: () => {
      held = true;
      text(time, says(Number(slider.value)));
    },
    change: () => go(timeAt(now, Number(slider.value))),
  } });
  const end = (label, which) => h('button', { type: 'button', class: 'quiet', on: { click: () => go(now[which]) } }, label);
  const ends = [end('Begin', 'begin'), end('End', 'end')];
  const time = h('output', { class: 'number' });
  const what = h('span', { class: 'help', role: 'status' });
  const problem = h('div');
  const inexact = h('div');
  const element = h('section', { class: 'replay', 'aria-label': 'Recording', hidden: true }, h('div', { class: 'bar' }, ends[0], slider, ends[1], time, what), inexact, problem);

  function update(r) {
    if (busy || !r) return;
    const other = now && now.at !== r.at;
    now = r;
    element.hidden = false;
    attr(slider, 'max', steps(r));
    if (!held) {
      slider.value = String(stepOf(r));
      text(time, says(stepOf(r)));
      attr(slider, 'aria-valuetext', `${says(stepOf(r))} since the begin`);
    }
    for (const e of [slider, ...ends]) e.disabled = !mayMove();
    text(what, `${clock(r.at)}, ${plural(r.turns, 'turn')}${r.failures > 0 ? `, ${plural(r.failures, 'failure')}` : ''}`);
    show(inexact, r.inexact ? h('p', { class: 'help' }, 'Handed a known secret, which is masked, and not exact from there on: ', guest(r.inexact.join(', '))) : null);
    show(problem, r.difference ? h('p', { class: 'problem', role: 'alert' }, 'It does not come out as recorded, and is shown up to there: ', guest(r.difference)) : null);
    if (other) moved();
  }

  async function go(at) {
    if (busy || !now) return;
    busy = true;
    for (const e of [slider, ...ends]) e.disabled = true;
    text(what, 'The turns up to there are repeated …');
    let r = now;
    let wrong = null;
    try {
      r = await post('replay', { at });
    } catch (e) {
      wrong = e;
    }
    busy = held = false;
    update(r);
    if (wrong) show(problem, h('p', { class: 'problem', role: 'alert' }, wrong.text()));
  }

  return { element, refresh: async (signal) => update(await get('replay', {}, signal)) };
}
