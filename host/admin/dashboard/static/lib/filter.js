// What a person types to find actors, as a query: words such as state:delayed, type:shop/*,
// path:/user/x/** (or just /user/x/**); everything else is looked for in paths and types.

export const states = ['starting', 'running', 'asleep', 'starved', 'delayed', 'suspended', 'paused', 'stopping'];

// parse gives {states, types, paths, search, problems}. It never throws: what cannot be
// meant is in problems.
export function parse(text) {
  const f = { states: [], types: [], paths: [], search: '', problems: [] };
  const words = [];
  for (const [, key, quoted, bare, plain] of String(text).matchAll(/([a-z]+):(?:"([^"]*)"?|(\S*))|(\S+)/gi)) {
    if (plain !== undefined) {
      if (plain.startsWith('/') && /[*?]/.test(plain)) add(f.paths, plain);
      else words.push(plain);
      continue;
    }
    const values = quoted !== undefined ? [quoted] : bare.split(',').filter(Boolean);
    switch (key.toLowerCase()) {
      case 'state':
        for (const v of values) {
          const s = v.toLowerCase();
          if (states.includes(s)) add(f.states, s);
          else f.problems.push(`no state is called ${v}; there are ${states.join(', ')}`);
        }
        break;
      case 'type':
        for (const v of values) add(f.types, v);
        break;
      case 'path':
        for (const v of values) {
          if (v.startsWith('/')) add(f.paths, v);
          else f.problems.push(`a path begins with a slash, ${v} does not`);
        }
        break;
      default:
        words.push(quoted !== undefined ? `${key}:${quoted}` : `${key}:${bare}`);
    }
  }
  f.search = words.join(' ');
  return f;
}

function add(list, v) {
  if (!list.includes(v)) list.push(v);
}

// format is a text that parse makes the same query of.
export function format(f) {
  const quote = (v) => (/[\s,"]/.test(v) || v === '' ? `"${v.replaceAll('"', '')}"` : v);
  const words = [];
  for (const s of f.states ?? []) words.push(`state:${s}`);
  for (const t of f.types ?? []) words.push(`type:${quote(t)}`);
  for (const p of f.paths ?? []) words.push(`path:${quote(p)}`);
  if (f.search) words.push(f.search);
  return words.join(' ');
}

// empty reports whether a query leaves nothing out.
export function empty(f) {
  return f.states.length + f.types.length + f.paths.length === 0 && f.search === '';
}

// toggleState adds a state to what was typed, or takes it away.
export function toggleState(text, state) {
  const f = parse(text);
  f.states = f.states.includes(state) ? f.states.filter((s) => s !== state) : [...f.states, state];
  return format(f);
}

// params are the query's parameters for /v1/actors.
export function params(f) {
  const q = new URLSearchParams();
  for (const s of f.states) q.append('state', s);
  for (const t of f.types) q.append('type', t);
  for (const p of f.paths) q.append('path', p);
  if (f.search) q.set('search', f.search);
  return q;
}
