// A picture of who sends to whom: where its nodes and arrows go.

// graph places the nodes of the most frequent edges in columns, senders to the left of those
// they send to as far as there are no circles, and arrows between them. edges are {from, to,
// count}; those of several kinds between the same two are one. What does not fit is left out
// and counted.
export function graph(edges, { width, mostNodes = 24, mostEdges = 60, row = 34, top = 14 }) {
  const sums = new Map();
  for (const e of edges) {
    const key = JSON.stringify([e.from, e.to]);
    const s = sums.get(key) ?? { from: e.from, to: e.to, count: 0 };
    s.count += Number(e.count);
    sums.set(key, s);
  }
  const sorted = [...sums.values()].sort((a, b) => b.count - a.count || (a.from + '\n' + a.to < b.from + '\n' + b.to ? -1 : 1));
  const nodes = new Map();
  const kept = [];
  for (const e of sorted) {
    const fresh = [...new Set([e.from, e.to])].filter((n) => !nodes.has(n));
    if (kept.length >= mostEdges || nodes.size + fresh.length > mostNodes) continue;
    for (const n of fresh) nodes.set(n, { name: n, level: 0, sent: 0, got: 0 });
    nodes.get(e.from).sent += e.count;
    nodes.get(e.to).got += e.count;
    kept.push(e);
  }
  // A node is right of those that send to it, unless that closes a circle: edges are taken in the
  // order of their frequency.
  const below = new Map([...nodes.keys()].map((n) => [n, []]));
  const reaches = (a, b) => {
    const todo = [a];
    const seen = new Set(todo);
    while (todo.length > 0) {
      const n = todo.pop();
      if (n === b) return true;
      for (const m of below.get(n)) if (!seen.has(m)) seen.add(m) && todo.push(m);
    }
    return false;
  };
  for (const e of kept) if (e.from !== e.to && !reaches(e.to, e.from)) below.get(e.from).push(e.to);
  for (let changed = true, rounds = 0; changed && rounds <= nodes.size; rounds++) {
    changed = false;
    for (const [n, to] of below) {
      for (const m of to) {
        if (nodes.get(m).level <= nodes.get(n).level) {
          nodes.get(m).level = nodes.get(n).level + 1;
          changed = true;
        }
      }
    }
  }
  const levels = Math.max(0, ...[...nodes.values()].map((n) => n.level)) + 1;
  const columns = Array.from({ length: levels }, () => []);
  for (const n of nodes.values()) columns[n.level].push(n);
  const tallest = Math.max(1, ...columns.map((c) => c.length));
  const each = width / levels;
  columns.forEach((c, i) => {
    c.sort((a, b) => b.sent + b.got - a.sent - a.got || (a.name < b.name ? -1 : 1));
    c.forEach((n, j) => Object.assign(n, { x: Math.round(i * each + 10), y: Math.round(top + ((j + 0.5) * tallest * row) / c.length), width: Math.round(Math.max(40, each * 0.62)) }));
  });
  const largest = Math.max(1, ...kept.map((e) => e.count));
  const arrows = kept.map((e) => {
    const [a, b] = [nodes.get(e.from), nodes.get(e.to)];
    const [x1, x2] = b.level > a.level ? [a.x + a.width, b.x] : [a.x + a.width, b.x + b.width];
    const bend = b.level > a.level ? (x2 - x1) / 2 : 30 + 6 * Math.abs(a.level - b.level);
    const path = e.from === e.to
      ? `M${x1},${a.y - 4}c26,-14 26,22 0,10`
      : `M${x1},${a.y}C${Math.round(x1 + bend)},${a.y} ${Math.round(b.level > a.level ? x2 - bend : x2 + bend)},${b.y} ${x2},${b.y}`;
    return { ...e, path, weight: Math.round((1 + 5 * Math.sqrt(e.count / largest)) * 10) / 10 };
  });
  return { nodes: [...nodes.values()], arrows, width, height: top * 2 + tallest * row, left: sorted.length - kept.length };
}
