// What an operator can do, each with a question before it that says what it would change.

import { duration, plural, visible } from '../lib/format.js';
import { parse, pretty } from '../lib/json.js';
import { ask, post, send } from './api.js';
import { guest, h, show } from './dom.js';
import { failed, notice, open } from './dialog.js';

const directives = ['resume', 'restart', 'stop'];

// verbs in the order of their buttons. of: whether it makes sense for an actor in a state.
export const verbs = [
  { name: 'send', label: 'Send…', message: true },
  { name: 'ask', label: 'Ask…', message: true },
  { name: 'pause', label: 'Pause…', of: (a) => !a.paused, says: 'It handles no messages until it is unpaused; they wait.' },
  { name: 'unpause', label: 'Unpause…', of: (a) => a.paused, says: 'It goes on with the messages that wait.' },
  { name: 'decide', label: 'Decide…', of: (a) => a.state === 'suspended', says: 'It was left suspended for somebody to decide.', directive: true },
  { name: 'reset-backoff', label: 'Reset backoff…', says: 'Its count of failures starts again; the next delay is the first one.' },
  { name: 'restart', label: 'Restart…', says: 'A fresh incarnation takes over. Its state is lost; its messages stay.' },
  { name: 'crash', label: 'Crash…', says: 'A failure is simulated, and its supervisor decides what follows.', reason: 'Reason that the supervisor sees' },
  { name: 'stop', label: 'Stop…', danger: true, says: 'It, and all below it, end after the turn under way, for good.' },
  { name: 'kill', label: 'Kill…', danger: true, says: 'It, and all below it, end at once, in the middle of a turn if need be, for good.' },
];

// buttons for one actor. update(actor) sets which make sense now; done is called after one did
// something.
export function buttons(actor, done) {
  const all = verbs.map((v) => {
    const b = h('button', { type: 'button', class: v.danger ? 'danger' : '', data: { verb: v.name }, on: { click: () => (v.message ? message(v, actor.path) : act(v, { refs: [actor.ref] }, actor.path)).then((did) => did && done?.()) } }, v.label);
    return [v, b];
  });
  const element = h('div', { class: 'verbs', role: 'group', 'aria-label': 'Actions' }, all.map(([, b]) => b));
  const update = (a) => {
    actor = a;
    for (const [v, b] of all) b.hidden = v.of ? !v.of(a) : false;
  };
  update(actor);
  return { element, update };
}

// bulk are the verbs that make sense for many.
export function bulk(select, what, done) {
  return h('div', { class: 'verbs', role: 'group', 'aria-label': 'Actions on all that match' },
    verbs.filter((v) => !v.message).map((v) => h('button', { type: 'button', class: v.danger ? 'danger' : '', data: { verb: v.name }, on: { click: () => act(v, select(), what()).then((did) => did && done?.()) } }, v.label)));
}

// act asks the server what a verb would do, shows it, and does it when it is confirmed.
export function act(verb, select, what) {
  return open(`${verb.label.replace('…', '')} ${what}`, (close) => {
    const would = h('div', { class: 'outcome', 'aria-live': 'polite' }, 'Asking what that would change…');
    const reason = verb.reason ? h('input', { name: 'reason', maxlength: '200', value: 'asked for in the dashboard' }) : null;
    const directive = verb.directive ? h('select', { name: 'directive' }, directives.map((d) => h('option', { value: d }, d))) : null;
    const yes = h('button', { type: 'submit', class: verb.danger ? 'danger strong' : 'strong', disabled: true, autofocus: true }, verb.label.replace('…', ''));
    const body = (dry) => ({ select, dry_run: dry, ...(reason ? { reason: reason.value } : {}), ...(directive ? { directive: directive.value } : {}) });
    const dry = async () => {
      try {
        const outcome = await post(verb.name, body(true));
        show(would, changes(outcome, true));
        yes.disabled = outcome.done === 0;
        if (!yes.disabled && document.activeElement?.closest('dialog')) yes.focus();
      } catch (e) {
        failed(would, e);
      }
    };
    directive?.addEventListener('change', dry);
    dry();
    return h('form', { on: { submit: async (e) => {
      e.preventDefault();
      yes.disabled = true;
      try {
        const outcome = await post(verb.name, body(false));
        if (outcome.failed > 0) {
          show(would, changes(outcome, false));
          return;
        }
        notice([`${verb.label.replace('…', '')}: done, `, what.startsWith('/') ? guest(what) : plural(outcome.done, 'actor')]);
        close(true);
      } catch (problem) {
        failed(would, problem);
        yes.disabled = false;
      }
    } } },
    h('p', {}, verb.says),
    directive ? h('label', {}, 'Directive', directive) : null,
    reason ? h('label', {}, verb.reason, reason) : null,
    would,
    h('div', { class: 'choices' }, h('button', { type: 'button', on: { click: () => close() } }, 'Cancel'), yes));
  });
}

// changes lists what a verb has done, or would do.
function changes(outcome, dry) {
  const list = outcome.changed;
  if (outcome.total === 0) return h('p', {}, 'That concerns no actor.');
  const says = dry ? `That would concern ${plural(outcome.done, 'actor')}` : `${plural(outcome.done, 'actor')} done`;
  return [
    h('p', {}, says, outcome.failed > 0 ? `, but not ${plural(outcome.failed, 'more', 'more')}:` : ':'),
    h('ul', { class: 'changes' }, list.slice(0, 50).map((c) => h('li', {}, guest(c.path), ' ', c.error ? h('span', { class: 'problem' }, guest(c.error)) : h('span', { class: 'did' }, guest(c.did ?? ''))))),
    outcome.total > 50 ? h('p', {}, `… and ${plural(outcome.total - Math.min(50, list.length), 'more', 'more')}`) : null,
  ];
}

// message sends one that is typed, or asks and shows the answer.
export function message(verb, to) {
  return open(`${verb.name === 'ask' ? 'Ask' : 'Send to'} ${to}`, (close) => {
    const input = h('textarea', { name: 'message', rows: '6', spellcheck: 'false', autofocus: true, 'aria-describedby': 'message-help' }, '{}');
    const seconds = h('input', { name: 'timeout', type: 'number', min: '1', max: '600', value: '5', inputmode: 'numeric' });
    const answer = h('div', { class: 'outcome', 'aria-live': 'polite' });
    const go = h('button', { type: 'submit', class: 'strong' }, verb.name === 'ask' ? 'Ask' : 'Send');
    return h('form', { on: { submit: async (e) => {
      e.preventDefault();
      try {
        parse(input.value);
      } catch (x) {
        failed(answer, { message: `That is not JSON: ${x.message}` });
        return;
      }
      go.disabled = true;
      show(answer, 'Waiting…');
      try {
        if (verb.name === 'ask') {
          const r = await ask(to, input.value, Math.round(Number(seconds.value) * 1e9));
          const took = duration(r.took_ns);
          if (r.kind === 'reply') show(answer, h('p', {}, guest(r.from), ` has answered in ${took}:`), h('pre', { tabindex: '0' }, guest(pretty(r.reply))));
          else failed(answer, { message: `${{ error: 'The answer is an error', failed: 'There is no answer', timeout: 'No answer came in time' }[r.kind] ?? r.kind}: ${visible(r.reason ?? '')} (${took})` });
        } else {
          const refused = (await send(to, input.value)).changed?.find((c) => c.error);
          if (refused) {
            failed(answer, { message: visible(refused.error) });
          } else {
            notice(['Sent to ', guest(to)]);
            close(true);
          }
        }
      } catch (problem) {
        failed(answer, problem);
      }
      go.disabled = false;
    } } },
    h('label', {}, 'Message, as JSON', input),
    h('p', { class: 'help', id: 'message-help' }, 'Integers may have 64 bits.'),
    verb.name === 'ask' ? h('label', {}, 'Wait for at most, in seconds', seconds) : null,
    answer,
    h('div', { class: 'choices' }, h('button', { type: 'button', on: { click: () => close() } }, 'Cancel'), go));
  }, { wide: true });
}
