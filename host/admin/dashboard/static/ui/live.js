// When the page asks the server, and when it does not: never while the tab is hidden, nor
// when nobody has touched the page for a while, nor when somebody has paused it. What is
// refreshed is refreshed together, and an answer that does not come is waited for longer and
// longer.

import { retry } from '../lib/series.js';

const settings = { every: 2000, idleAfter: 5 * 60_000 };

let paused = false;
let lastInput = performance.now();
let idleTimer = 0;
let idle = false;
const listeners = new Set();

// awake reports whether anybody looks. why is '', 'hidden', 'idle' or 'paused'.
export function why() {
  if (document.visibilityState === 'hidden') return 'hidden';
  if (paused) return 'paused';
  return idle ? 'idle' : '';
}

export function awake() {
  return why() === '';
}

// onChange calls f when somebody begins to look, or stops; the result ends that.
export function onChange(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

let before = why();
function changed() {
  const now = why();
  if (now === before) return;
  before = now;
  for (const f of [...listeners]) f(now);
}

export function pause(on) {
  paused = on;
  touched();
  changed();
}

export function isPaused() {
  return paused;
}

// every sets how often what is shown is asked for, idleAfter when a page that nobody touches
// stops; both in milliseconds, and Infinity is never.
export function configure({ every = settings.every, idleAfter = settings.idleAfter }) {
  settings.every = every;
  settings.idleAfter = idleAfter;
  clearTimeout(idleTimer);
  idleTimer = 0;
  touched();
}

export function interval() {
  return settings.every;
}

function touched() {
  lastInput = performance.now();
  if (idle) {
    idle = false;
    changed();
  }
  if (!idleTimer) arm(settings.idleAfter);
}

// arm looks at the end of the time whether anything was touched meanwhile: an event costs
// the writing of a number.
function arm(ms) {
  if (!Number.isFinite(ms)) return;
  idleTimer = setTimeout(() => {
    idleTimer = 0;
    const left = settings.idleAfter - (performance.now() - lastInput);
    if (left > 0) return arm(left);
    idle = true;
    changed();
  }, ms);
}

for (const name of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart', 'scroll', 'focus']) {
  addEventListener(name, touched, { passive: true, capture: true });
}
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') touched();
  changed();
});
touched();

// Poller calls run(signal) now and then while somebody looks. report is told {state, problem,
// wait}: 'live', 'retrying' (in wait ms) or 'asleep'.
export class Poller {
  constructor(run, report) {
    this.run = run;
    this.report = report;
    this.attempt = 0;
    this.timer = 0;
    this.busy = null; // of the run that is under way
    this.again = false;
    this.stopped = true;
  }

  start() {
    this.stopped = false;
    this.forget = onChange(() => this.#woken());
    this.#woken();
  }

  stop() {
    this.stopped = true;
    this.forget?.();
    clearTimeout(this.timer);
    this.busy?.abort();
    this.busy = null;
  }

  // now refreshes at once, and resolves when that is done.
  async now() {
    clearTimeout(this.timer);
    if (this.busy) {
      this.again = true;
      return;
    }
    await this.#go();
  }

  #woken() {
    clearTimeout(this.timer);
    if (awake()) {
      this.attempt = 0;
      this.now();
      return;
    }
    this.busy?.abort();
    this.report({ state: 'asleep', why: why() });
  }

  async #go() {
    if (this.stopped || !awake()) return;
    const busy = (this.busy = new AbortController());
    let wait = settings.every;
    try {
      await this.run(busy.signal);
      this.attempt = 0;
      if (!busy.signal.aborted) this.report({ state: 'live' });
    } catch (problem) {
      if (busy.signal.aborted || problem.name === 'AbortError') {
        // somebody looked away
      } else if (problem.status === 401) {
        wait = Infinity; // the page asks for a token
      } else {
        if (problem.status === undefined) console.error(problem); // a mistake of this page's
        wait = Math.max(retry(this.attempt++, Math.random()), problem.status === 0 ? 0 : settings.every);
        this.report({ state: 'retrying', problem, wait });
      }
    } finally {
      if (this.busy === busy) this.busy = null;
    }
    if (this.stopped || !awake()) return;
    clearTimeout(this.timer);
    if (this.again) {
      this.again = false;
      wait = Math.min(wait, 50);
    }
    if (Number.isFinite(wait)) this.timer = setTimeout(() => this.now(), wait);
  }
}
