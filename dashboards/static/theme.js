"use strict";
// The theme: what the system prefers, unless the reader chose one. It runs in the head, so that no page flashes.
(function () {
  const paretovit = (window.paretovit = window.paretovit || {});
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let chosen = "auto";

  function apply() {
    if (chosen === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", chosen);
  }
  function changed() {
    for (const listener of listeners) listener();
  }
  function choose(name) {
    chosen = name;
    try { localStorage.setItem("paretovit-theme", name); } catch (error) { /* a file may have no storage */ }
    apply();
    changed();
  }

  paretovit.theme = {
    name: () => (chosen === "auto" ? (prefersDark.matches ? "dark" : "light") : chosen),
    onChange: (listener) => listeners.push(listener),
  };
  try {
    const stored = localStorage.getItem("paretovit-theme");
    if (stored === "light" || stored === "dark") chosen = stored;
  } catch (error) { /* a file may have no storage */ }
  apply();
  prefersDark.addEventListener("change", changed);
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = chosen;
    select.addEventListener("change", () => choose(select.value));
  });
}());
