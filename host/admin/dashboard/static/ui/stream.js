// Streams of the server's, events with a JSON value each, read as they come (with fetch, for
// an EventSource sends no header). A stream is closed while nobody looks, and opened again
// when it breaks, later each time.

import { parse } from '../lib/json.js';
import { retry } from '../lib/series.js';
import { Messages } from '../lib/lines.js';
import { address, problemOf, Problem, request } from './api.js';
import { awake, onChange } from './live.js';

// follow reads a stream until stop is called. got is called with a list of values, report
// with {state: 'open' | 'retrying' | 'asleep' | 'ended' | 'refused', problem, wait}, or with
// {state: 'dropped', dropped} when this reader was too slow. params is called before each
// attempt: it can say since when. again: whether a stream that ends is opened again.
export function follow(resource, params, { got, report = () => {}, again = true }) {
  let stopped = false;
  let busy = null;
  let timer = 0;
  let attempt = 0;

  async function read() {
    const mine = (busy = new AbortController());
    let ended = '';
    try {
      const answer = await request(address(resource, params()), { signal: mine.signal, headers: { Accept: 'text/event-stream' } });
      if (!answer.ok) throw await problemOf(answer);
      report({ state: 'open' });
      const messages = new Messages(1 << 22);
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        attempt = 0;
        const values = messages.push(value).flatMap(valueOf);
        if (busy !== mine) return;
        for (const v of values) if (v.event === 'dropped') report({ state: 'dropped', dropped: v.dropped });
        ended = values.find((v) => v.event === 'end')?.reason ?? ended;
        const items = values.filter((v) => v.event !== 'dropped' && v.event !== 'end');
        if (items.length > 0) got(items);
      }
      if (busy !== mine || stopped) return;
      if (!again) return report({ state: 'ended', reason: ended });
      throw new Problem(0, 'ended', ended ? `The stream has ended: ${ended}` : 'The stream has ended');
    } catch (e) {
      if (busy !== mine || stopped || e.name === 'AbortError') return;
      const problem = e instanceof Problem ? e : new Problem(0, 'broken', 'The connection was lost');
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return report({ state: 'refused', problem });
      const wait = retry(attempt++, Math.random());
      report({ state: 'retrying', problem, wait });
      timer = setTimeout(() => awake() && read(), wait);
    }
  }

  function end() {
    clearTimeout(timer);
    const was = busy;
    busy = null;
    was?.abort();
  }

  const forget = onChange(() => {
    end();
    if (awake()) {
      attempt = 0;
      read();
    } else {
      report({ state: 'asleep' });
    }
  });
  if (awake()) read();

  return function stop() {
    stopped = true;
    forget();
    end();
  };
}

// valueOf is the value of a message in a list, which is empty for what is not JSON. What has
// an id keeps it as its number.
function valueOf({ id, data }) {
  try {
    const v = parse(data);
    return [id === '' || v.event === 'dropped' || v.event === 'end' ? v : { ...v, number: Number(id) }];
  } catch {
    return [];
  }
}
