// What a reader has chosen, kept by the browser where it may.

const prefix = 'wasmactors.';

export function load(name, fallback) {
  try {
    return localStorage.getItem(prefix + name) ?? fallback;
  } catch {
    return fallback;
  }
}

export function save(name, value) {
  try {
    if (value === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, value);
  } catch {
    // kept until the page is closed, then
  }
}

// theme is what is chosen: auto, dark or light.
export function theme() {
  return document.documentElement.dataset.theme ?? 'auto';
}

// nextTheme switches: from the system's to the other one, and back.
export function nextTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const order = dark ? ['auto', 'light', 'dark'] : ['auto', 'dark', 'light'];
  const next = order[(order.indexOf(theme()) + 1) % order.length];
  if (next === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  save('theme', next === 'auto' ? null : next);
  return next;
}
