// The server's API. Every call rejects with a Problem that says what the server has said.

import { parse, splice } from '../lib/json.js';
import { load, save } from './settings.js';

const base = new URL('../v1/', document.baseURI);

// Problem is an answer that is none: status is HTTP's, or 0 when the server was not reached.
export class Problem extends Error {
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint ?? '';
  }

  // text is the message and what to do about it.
  text() {
    return this.hint ? `${this.message} (${this.hint})` : this.message;
  }
}

// onDenied is called when the session has ended.
let onDenied = () => {};
export function whenDenied(f) {
  onDenied = f;
}

// address of a resource, with parameters: an object, or URLSearchParams. Lists are repeated.
export function address(resource, params = {}) {
  const url = new URL(resource, base);
  const entries = params instanceof URLSearchParams ? params : Object.entries(params).flatMap(([k, v]) => (Array.isArray(v) ? v.map((x) => [k, x]) : [[k, v]]));
  for (const [k, v] of entries) if (v !== undefined && v !== null && v !== '') url.searchParams.append(k, v);
  return url;
}

// A session is a cookie, which no script can read, and a key, which only this origin has:
// cookies alone go to every port of a host. Who knows one of them has nothing.
export const session = { access: load('access', ''), key: load('key', '') };

// login exchanges a token for a session.
export async function login(token) {
  const answer = await call(address('session'), { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body: '{}' });
  keep(await answer.json());
}

// logout ends the session, here in any case.
export async function logout() {
  try {
    await call(address('session'), { method: 'DELETE' });
  } finally {
    keep(null);
  }
}

function keep(s) {
  session.access = s?.access ?? '';
  session.key = s?.key ?? '';
  save('access', session.access || null);
  save('key', session.key || null);
}

// about is what the server has said of itself: with replay it shows a recording, which is not changed.
let about = {};
export function serves(a) {
  about = a;
}

// isReplay reports whether the server shows a recording.
export function isReplay() {
  return about.replay === true;
}

// mayChange reports whether the session is more than one to look with, and there is something that can be changed.
export function mayChange() {
  return session.access === 'full' && !isReplay();
}

// mayMove reports whether the session may show another time of a recording.
export function mayMove() {
  return session.access === 'full' && isReplay();
}

// request is fetch with what every request carries.
export function request(url, { headers = {}, ...init } = {}) {
  return fetch(url, { credentials: 'same-origin', cache: 'no-store', redirect: 'error', ...init, headers: { 'X-Session-Key': session.key, ...headers } });
}

async function call(url, init) {
  let answer;
  try {
    answer = await request(url, init);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Problem(0, 'unreachable', 'The server cannot be reached');
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

export async function problemOf(answer) {
  let error = {};
  try {
    error = (await answer.json()).error ?? {};
  } catch {
    // not the API's answer: its status must do
  }
  const p = new Problem(answer.status, error.code ?? String(answer.status), error.message ?? `The server answered ${answer.status} ${answer.statusText}`, error.hint);
  if (answer.status === 401) onDenied(p);
  return p;
}

// get reads a resource.
export async function get(resource, params, signal) {
  const answer = await call(address(resource, params), { signal });
  return parse(await answer.text());
}

// post sends an object, or a text that is JSON already.
export async function post(resource, body, signal) {
  const answer = await call(address(resource), {
    method: 'POST', signal, headers: { 'Content-Type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  return text === '' ? null : parse(text);
}

// download fetches a file and gives it to the reader.
export async function download(resource, params, name) {
  const answer = await call(address(resource, params), {});
  const url = URL.createObjectURL(await answer.blob());
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// send and ask take the message as the text that was typed.
export function send(to, message) {
  return post('send', splice({ to }, 'message', message));
}

export function ask(to, message, timeout_ns) {
  return post('ask', splice({ to, timeout_ns }, 'message', message));
}
