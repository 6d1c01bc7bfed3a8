// Before anything is drawn: the theme that was chosen.
try {
  const theme = localStorage.getItem('wasmactors.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch {
  // no storage: the system's theme
}
