"use strict";
// Ties the chart of the front, its axes and legend, the table of candidates and the curves together.
(function () {
  const paretovit = (window.paretovit = window.paretovit || {});
  const byId = (id) => document.getElementById(id);

  // What a point is that was clicked, and where its page is, if it has one.
  function told(row) {
    const cells = Array.from(row.cells, (cell) => cell.textContent.trim());
    const name = document.createElement("strong");
    name.textContent = cells[0];
    const summary = row.querySelector("summary").textContent;
    const parts = [name, " " + [cells[2], cells[1].toLowerCase(), summary].filter(Boolean).join(", ") + ". "];
    const link = row.querySelector("th a");
    if (!link) return parts;
    const open = link.cloneNode(false);
    open.textContent = "Open " + cells[0];
    return [...parts, open];
  }

  // memory: where the reader's choices are kept while the browser is open; null: nowhere.
  paretovit.front = function (first, memory) {
    const hasPlotly = Boolean(window.Plotly);
    const table = paretovit.candidateTable(byId("candidates"));
    const chart = paretovit.frontChart(byId("front-chart"), select);
    const hidden = new Set();
    let data = first;
    let chosen = null;

    const view = () => ({
      x: byId("axis-x").value, y: byId("axis-y").value,
      logX: byId("log-x").checked, logY: byId("log-y").checked, hidden, chosen,
    });
    function draw() {
      if (hasPlotly) chart.draw(data, view());
      byId("axes-note").textContent = paretovit.axesNote(data, view());
    }
    function drawAll() {
      draw();
      if (hasPlotly) paretovit.curves(byId("curves-chart"), data.looks, data.name);
    }
    function select(key) {
      chosen = key;
      const row = table.choose(key);
      draw();
      if (row) byId("selection").replaceChildren(...told(row));
    }

    // Choices that outlive the page: axes, scales, groups left out, the order of the table.
    function remember() {
      if (!memory) return;
      const { x, y, logX, logY } = view();
      const kept = { x, y, logX, logY, hidden: Array.from(hidden), sorting: table.sorting() };
      try { sessionStorage.setItem(memory, JSON.stringify(kept)); } catch (error) { /* none is kept */ }
    }
    function recall() {
      let kept = null;
      try { kept = memory && JSON.parse(sessionStorage.getItem(memory)); } catch (error) { /* none was kept */ }
      if (!kept || !(kept.x in data.axes) || !(kept.y in data.axes)) return;
      byId("axis-x").value = kept.x;
      byId("axis-y").value = kept.y;
      byId("log-x").checked = kept.logX;
      byId("log-y").checked = kept.logY;
      for (const box of boxes) {
        box.checked = !kept.hidden.includes(box.value);
        if (!box.checked) hidden.add(box.value);
      }
      if (kept.sorting) table.sort(...kept.sorting);
    }

    // The legend names the groups that there are; the axes offer what anything has.
    const boxes = Array.from(document.querySelectorAll(".legend input"));
    function offer() {
      const counts = {};
      for (const { group } of Object.values(data.points)) counts[group] = (counts[group] || 0) + 1;
      for (const box of boxes) {
        const count = counts[box.value] || 0;
        box.closest("label").hidden = !count;
        box.closest("label").querySelector(".count").textContent = count;
      }
      for (const which of ["x", "y"]) {
        const list = byId("axis-" + which);
        const names = Object.keys(data.axes);
        if (Array.from(list.options, (option) => option.value).join() === names.join()) continue;
        const before = list.value;
        list.replaceChildren(...names.map((name) => new Option(data.axes[name].label, name)));
        list.value = before in data.axes ? before : data.chosen[which];
      }
    }

    for (const which of ["x", "y"]) {
      byId("axis-" + which).addEventListener("change", () => {
        byId("log-" + which).checked = data.axes[byId("axis-" + which).value].wide;
        remember();
        draw();
      });
      byId("log-" + which).addEventListener("change", () => { remember(); draw(); });
    }
    for (const box of boxes) {
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(box.value);
        else hidden.add(box.value);
        table.filter(hidden);
        remember();
        draw();
      });
    }
    byId("candidates").tHead.addEventListener("click", (event) => {
      const button = event.target.closest(".sort");
      if (!button) return;
      table.sort(button.closest("th").cellIndex);
      remember();
    });
    for (const kind of ["mouseover", "focusin"]) {
      let last = null;
      byId("candidates").tBodies[0].addEventListener(kind, (event) => {
        const row = event.target.closest("tr");
        if (!row || row === last || !hasPlotly) return;
        last = row;
        chart.point(row.dataset.key);
      });
      byId("candidates").tBodies[0].addEventListener(kind === "mouseover" ? "mouseleave" : "focusout", () => { last = null; });
    }
    paretovit.theme.onChange(drawAll);
    paretovit.narrow.addEventListener("change", drawAll);
    offer();
    recall();
    table.filter(hidden);
    drawAll();

    return {
      // What came since: data of the charts, and of the table. Returns the rows that changed, as the table does.
      update: (now, columns, rows) => {
        data = now;
        offer();
        const changes = table.update(columns, rows);
        drawAll();
        return changes;
      },
    };
  };
}());
