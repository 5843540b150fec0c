"use strict";
// The report's page: draws the embedded figures, changes axes and theme, hides groups, sorts the table.
(function () {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const narrow = window.matchMedia("(max-width: 40rem)");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const byId = (id) => document.getElementById(id);
  const points = report.points;
  const chart = byId("front-chart");
  const curves = byId("curves-chart");
  const hidden = new Set();
  const config = {
    responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: report.name + "-front" },
  };

  // Theme: what the system prefers, unless the reader chose one.
  function theme() {
    const chosen = byId("theme").value;
    return chosen === "auto" ? (prefersDark.matches ? "dark" : "light") : chosen;
  }
  function applyTheme() {
    const chosen = byId("theme").value;
    if (chosen === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", chosen);
    try { localStorage.setItem("paretovit-theme", chosen); } catch (error) { /* a file may have no storage */ }
    draw();
  }

  const value = (key, name) => (name in points[key].values ? points[key].values[name] : null);
  function errors(trace, name) {
    const spans = trace.ids.map((key) => {
      const bounds = points[key].intervals[name];
      const middle = value(key, name);
      return bounds && middle !== null ? [middle - bounds[0], bounds[1] - middle] : [0, 0];
    });
    return {
      visible: trace.meta.bars && spans.some((span) => span[0] || span[1]),
      arrayminus: spans.map((span) => span[0]), array: spans.map((span) => span[1]),
    };
  }

  // The figure as Python drew it, with other quantities on its axes.
  function place(figure, x, y) {
    const layout = figure.layout;
    const twoObjectives = report.objectives.length === 2 && report.objectives.includes(x) && report.objectives.includes(y) && x !== y;
    let strip = false;
    for (const trace of figure.data) {
      if (trace.meta.role === "line") {
        const keys = twoObjectives ? Object.keys(points).filter((key) => points[key].group === "front") : [];
        keys.sort((a, b) => value(a, x) - value(b, x));
        trace.ids = keys;
        trace.x = keys.map((key) => value(key, x));
        trace.y = keys.map((key) => value(key, y));
        trace.line.shape = report.axes[x].direction === "min" ? "hv" : "vh";
        trace.visible = !hidden.has("front");
        continue;
      }
      const inStrip = trace.meta.role === "strip";
      const known = trace.ids.map((key) => value(key, x) !== null && (value(key, y) === null) === inStrip);
      trace.x = trace.ids.map((key, i) => (known[i] ? value(key, x) : null));
      trace.y = trace.ids.map((key, i) => (known[i] ? (inStrip ? 0 : value(key, y)) : null));
      trace.visible = !hidden.has(trace.meta.group);
      strip = strip || (inStrip && trace.visible && known.some(Boolean));
      if (!inStrip) {
        trace.error_x = Object.assign(trace.error_x, errors(trace, x));
        trace.error_y = Object.assign(trace.error_y, errors(trace, y));
      }
    }
    layout.xaxis.title.text = report.axes[x].title;
    layout.yaxis.title.text = report.axes[y].title;
    layout.xaxis.type = byId("log-x").checked ? "log" : "linear";
    layout.yaxis.type = byId("log-y").checked ? "log" : "linear";
    layout.xaxis.anchor = strip ? "y2" : "y";
    layout.yaxis.domain = [strip ? report.strip : 0, 1];
    layout.yaxis2.visible = strip;
    layout.yaxis2.ticktext = ["no<br>" + y.replaceAll("_", " ")];
    layout.shapes = limits(layout, x, y);
    layout.uirevision = [x, y, layout.xaxis.type, layout.yaxis.type].join();
    if (narrow.matches) {
      layout.margin = { l: 48, r: 8, t: 24, b: 48 };
      layout.xaxis.title.text = report.axes[x].label;
      layout.yaxis.title.text = report.axes[y].label;
    }
    return figure;
  }
  function limits(layout, x, y) {
    const shapes = [];
    for (const [name, across] of [[x, "x"], [y, "y"]]) {
      const axis = report.axes[name];
      if (axis.limit === null) continue;
      const along = across === "x" ? "y" : "x";
      const shape = JSON.parse(JSON.stringify(report.limitShape[theme()]));
      shape[across + "ref"] = across;
      shape[along + "ref"] = "paper";
      shape[across + "0"] = shape[across + "1"] = axis.limit;
      shape[along + "0"] = 0;
      shape[along + "1"] = 1;
      shapes.push(shape);
    }
    return shapes;
  }

  function draw() {
    if (!window.Plotly) return;
    const copy = JSON.parse(JSON.stringify(report.figures[theme()]));
    const x = byId("axis-x").value, y = byId("axis-y").value;
    Plotly.react(chart, place(copy.front, x, y).data, copy.front.layout, config);
    byId("axes-note").textContent = note(x, y);
    if (curves) {
      if (narrow.matches) Object.assign(copy.curves.layout.margin, { l: 48, r: 8 });
      Plotly.react(curves, copy.curves.data, copy.curves.layout, config);
    }
  }
  function note(x, y) {
    const missing = Object.keys(points).filter((key) => value(key, x) === null).length;
    const isPair = report.objectives.includes(x) && report.objectives.includes(y) && x !== y;
    const parts = [];
    if (!isPair) parts.push("The line is left out: these axes are not the two objectives of the search. Front points are still those of its objectives.");
    if (missing) parts.push(missing + (missing === 1 ? " candidate is" : " candidates are") + " left out: without a value for " + report.axes[x].label + ".");
    return parts.join(" ");
  }
  function chooseAxis(which) {
    byId("log-" + which).checked = report.axes[byId("axis-" + which).value].wide;
    draw();
  }

  // The table: sorting, the legend's filter, and the link between a row and its point.
  const body = byId("candidates").tBodies[0];
  const rows = Array.from(body.rows);
  function sort(button) {
    const header = button.closest("th");
    const column = header.cellIndex;
    const ascending = header.getAttribute("aria-sort") ? header.getAttribute("aria-sort") === "descending" : header.dataset.first !== "descending";
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.sort;
    const known = (text) => text !== undefined && text !== "";
    const sign = ascending ? 1 : -1;
    const numeric = header.dataset.kind === "number";
    rows.sort((a, b) => {
      const left = key(a), right = key(b);
      if (!known(left) || !known(right)) return known(right) - known(left);
      return sign * (numeric ? left - right : left.localeCompare(right, "en", { numeric: true }));
    });
    body.append(...rows);
  }
  function filter(box) {
    if (box.checked) hidden.delete(box.value);
    else hidden.add(box.value);
    for (const row of rows) row.hidden = hidden.has(row.dataset.group);
    draw();
  }
  function choose(key, reveal) {
    for (const row of rows) row.classList.toggle("chosen", row.dataset.key === key);
    const row = rows.find((candidate) => candidate.dataset.key === key);
    if (reveal && row) row.scrollIntoView({ block: "nearest" });
  }
  function show(key) {
    choose(key, false);
    const curve = chart.data.findIndex((trace) => trace.ids && trace.meta.role !== "line" && trace.ids.some((id, i) => id === key && trace.x[i] !== null));
    if (curve < 0) { Plotly.Fx.unhover(chart); return; }
    const subplot = chart.data[curve].meta.role === "strip" ? "xy2" : "xy";
    Plotly.Fx.hover(chart, [{ curveNumber: curve, pointNumber: chart.data[curve].ids.indexOf(key) }], subplot);
  }

  let stored = null;
  try { stored = localStorage.getItem("paretovit-theme"); } catch (error) { /* a file may have no storage */ }
  if (stored === "light" || stored === "dark") byId("theme").value = stored;
  byId("theme").addEventListener("change", applyTheme);
  prefersDark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  for (const which of ["x", "y"]) {
    byId("axis-" + which).addEventListener("change", () => chooseAxis(which));
    byId("log-" + which).addEventListener("change", draw);
  }
  for (const box of document.querySelectorAll(".legend input")) box.addEventListener("change", () => filter(box));
  for (const button of document.querySelectorAll(".sort")) button.addEventListener("click", () => sort(button));
  for (const row of rows) {
    row.addEventListener("mouseenter", () => show(row.dataset.key));
    row.addEventListener("focusin", () => show(row.dataset.key));
  }
  applyTheme();
  chart.on("plotly_click", (event) => choose(event.points[0].id, true));
}());
