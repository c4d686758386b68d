// Before anything is drawn: the reader's choice of light or dark, if there is one.
"use strict";
try {
  const chosen = localStorage.getItem("rekernel-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A page from a disk may have no storage; the system's preference stands then.
}
