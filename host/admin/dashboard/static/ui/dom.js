// Elements without markup: whatever is a text becomes a text node. There is no other way in
// this page to put something on it.

import { visible } from '../lib/format.js';

const svgSpace = 'http://www.w3.org/2000/svg';

// h makes an element. props: class, on: {event: function}, data: {}, style: {} (by the object
// model, as the policy allows), attributes; null, undefined and false are left out.
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg makes an element of a picture.
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children);
}

function fill(e, props, children) {
  for (const [k, v] of Object.entries(props ?? {})) {
    if (v === null || v === undefined || v === false) continue;
    if (k === 'on') for (const [name, f] of Object.entries(v)) e.addEventListener(name, f);
    else if (k === 'data') Object.assign(e.dataset, v);
    else if (k === 'style') for (const [name, x] of Object.entries(v)) e.style.setProperty(name, x);
    else e.setAttribute(k, v === true ? '' : String(v));
  }
  append(e, children);
  return e;
}

// append adds nodes and texts; lists are taken apart, nothing is left out but null and false.
export function append(e, children) {
  for (const c of children.flat(Infinity)) {
    if (c === null || c === undefined || c === false) continue;
    e.append(c instanceof Node ? c : String(c));
  }
}

// show replaces what is in an element.
export function show(e, ...children) {
  e.replaceChildren();
  append(e, children);
  return e;
}

// text changes an element's text, if it is another one: what has not changed costs no layout.
export function text(e, s) {
  s = String(s);
  if (e.textContent !== s) e.textContent = s;
}

// attr changes an attribute, if it is another one.
export function attr(e, name, value) {
  if (value === null || value === undefined || value === false) {
    if (e.hasAttribute(name)) e.removeAttribute(name);
    return;
  }
  value = value === true ? '' : String(value);
  if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

// guest is a text that a guest has chosen, apart from its surroundings: it cannot turn the
// line around, and what is invisible in it is shown.
export function guest(s, props = {}) {
  return h('bdi', props, visible(s));
}

// path is a link to an actor's page.
export function path(p, label = p) {
  return h('a', { class: 'path', href: actorLink(p), title: visible(p) }, guest(label));
}

export function actorLink(p) {
  return `#/actor?path=${encodeURIComponent(p)}`;
}

// badge shows a state by a word and a colour, never by the colour alone.
export function badge(state, props = {}) {
  return h('span', { ...props, class: `state state-${state}` }, h('i', { class: 'dot', 'aria-hidden': 'true' }), h('span', {}, state));
}

// card is a part of a page with a heading.
export function card(title, props, ...children) {
  const { actions, ...rest } = props ?? {};
  return h('section', { ...rest, class: `card ${rest.class ?? ''}` }, h('header', {}, h('h2', {}, title), actions ?? null), ...children);
}

// facts is a list of terms and what they are; null entries are left out.
export function facts(list) {
  return h('dl', { class: 'facts' }, list.filter(Boolean).map(([term, value, title]) => h('div', { title }, h('dt', {}, term), h('dd', {}, value))));
}
