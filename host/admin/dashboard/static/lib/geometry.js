// Which rows of a long list a viewport shows. Browsers draw nothing below some ten million
// pixels, so a list that would be higher is squeezed: its scrollbar then moves by more than
// it shows, and rows stand where they would stand beside the bar.

export const tallest = 8_000_000;

// heights are how high the list is (full) and how high the scroller makes it (shown).
export function heights(total, row) {
  const full = total * row;
  return { full, shown: Math.min(full, tallest) };
}

// offset is where in the full list the viewport begins, in pixels.
export function offset(scrollTop, viewport, total, row) {
  const { full, shown } = heights(total, row);
  if (full <= shown) return clamp(scrollTop, 0, Math.max(0, full - viewport));
  const way = shown - viewport;
  if (way <= 0) return 0;
  return clamp(scrollTop / way, 0, 1) * (full - viewport);
}

// scrollFor is the scrollTop that makes the viewport begin at an offset: offset's inverse.
export function scrollFor(at, viewport, total, row) {
  const { full, shown } = heights(total, row);
  const most = Math.max(0, full - viewport);
  at = clamp(at, 0, most);
  if (full <= shown) return at;
  return most === 0 ? 0 : (at / most) * (shown - viewport);
}

// range is the rows to have in the page: those in view and some more on either side.
// top is where row number first stands in the scroller, in pixels.
export function range(scrollTop, viewport, total, row, spare = 6) {
  if (total <= 0 || row <= 0) return { first: 0, end: 0, top: 0 };
  const at = offset(scrollTop, viewport, total, row);
  const first = Math.max(0, Math.floor(at / row) - spare);
  const end = Math.min(total, Math.ceil((at + viewport) / row) + spare);
  return { first, end, top: scrollTop - at + first * row };
}

// reveal is the offset that brings a row into view with the least movement.
export function reveal(index, at, viewport, row) {
  const top = index * row;
  if (top < at) return top;
  if (top + row > at + viewport) return top + row - viewport;
  return at;
}

export function clamp(x, low, high) {
  return Math.min(Math.max(x, low), high);
}
