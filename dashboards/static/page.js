"use strict";
// An open page: draws what it holds, and takes over what comes since, without losing what the reader was doing.
(function () {
  const paretovit = window.paretovit;
  const byId = (id) => document.getElementById(id);
  const block = byId("page-data");
  const first = block ? JSON.parse(block.textContent) : null;
  let chart = first;

  // Times stand there in UTC; a reader has a clock of their own. The title keeps the UTC.
  function localTimes(root) {
    const two = (number) => String(number).padStart(2, "0");
    for (const element of root.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(element.dateTime);
      element.title = element.textContent;
      element.textContent = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-") + " "
        + [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
    }
  }

  // Puts new HTML of the server's into an element; keeps what was opened, scrolled to and focused in it.
  function replace(element, html) {
    const all = (selector) => Array.from(element.querySelectorAll(selector));
    const reachable = "a, button, summary, [tabindex]";
    const opened = all("details").map((details) => details.open);
    const scrolled = all(".scroll").map((box) => [box.scrollLeft, box.scrollTop]);
    const active = document.activeElement;
    const focused = element.contains(active) ? all(reachable).indexOf(active) : -1;
    const link = focused >= 0 && active.getAttribute("href");
    element.innerHTML = html;
    localTimes(element);
    all("details").forEach((details, i) => { details.open = Boolean(opened[i]); });
    all(".scroll").forEach((box, i) => { if (scrolled[i]) [box.scrollLeft, box.scrollTop] = scrolled[i]; });
    if (focused < 0) return;
    const target = all(reachable).find((other) => link && other.getAttribute("href") === link) || all(reachable)[focused];
    if (target) target.focus({ preventScroll: true });
  }
  const said = (root) => new Map(Array.from(root.querySelectorAll("[data-said]"), (one) => [one.dataset.key, one.dataset.said]));

  let front = null;
  function drawCurves() {
    if (window.Plotly) paretovit.curves(byId("curves-chart"), chart.looks, chart.name);
  }
  if (byId("candidates")) {
    front = paretovit.front(first, "paretovit " + location.pathname);
  } else if (first) {
    drawCurves();
    paretovit.theme.onChange(drawCurves);
    paretovit.narrow.addEventListener("change", drawCurves);
  }
  localTimes(document);
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(byId(button.dataset.copies).textContent).then(
        () => { button.textContent = "Copied"; },
        () => { button.textContent = "Not allowed to copy"; },
      );
    });
  }

  paretovit.page = {
    // update: the answer of the page's data. Returns what to say of it: one line a change.
    apply: (update) => {
      const lines = [];
      for (const [name, [version, html]] of Object.entries(update.parts)) {
        const element = byId(name);
        if (!element || element.dataset.version === version) continue;
        const before = said(element);
        replace(element, html);
        element.dataset.version = version;
        for (const [key, line] of said(element)) if (before.get(key) !== line) lines.push(line);
      }
      if (front) {
        for (const [old, row] of front.update(update.chart, update.columns, update.rows)) {
          if (!old || old.dataset.said !== row.dataset.said) lines.push(row.dataset.said);
        }
      } else if (update.chart) {
        chart = update.chart;
        drawCurves();
      }
      return lines;
    },
  };
}());
