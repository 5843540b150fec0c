"use strict";
// The table of candidates: sorting, filtering, marking a row, and taking over new rows without losing any of that.
(function () {
  const paretovit = (window.paretovit = window.paretovit || {});

  // Runs `change` and gives the focus back to what had it, or to what stands in its place.
  function keepingFocus(root, change) {
    const active = document.activeElement;
    const inside = root.contains(active);
    const row = inside ? active.closest("[data-key]") : null;
    const key = row ? row.dataset.key : null;
    const place = row ? Array.from(row.querySelectorAll("a, summary, button")).indexOf(active) : -1;
    change();
    if (!inside || document.activeElement === active) return;
    let target = root.contains(active) ? active : null;
    if (!target && key !== null) {
      const again = root.querySelector("[data-key=\"" + CSS.escape(key) + "\"]");
      target = again && again.querySelectorAll("a, summary, button")[place];
    }
    if (target) target.focus({ preventScroll: true });
  }

  function parsed(html) {
    const box = document.createElement("template");
    box.innerHTML = html;
    return box.content.firstElementChild;
  }

  paretovit.candidateTable = function (table) {
    const body = table.tBodies[0];
    let rows = Array.from(body.rows);
    let hidden = new Set();
    let chosen = null;

    const headers = () => Array.from(table.tHead.rows[0].cells);
    const sortedBy = () => headers().find((header) => header.hasAttribute("aria-sort"));
    // Figures that nothing had before bring columns of their own.
    function head(html) {
      const labels = (row) => Array.from(row.cells, (cell) => cell.textContent);
      const row = parsed(html);
      if (labels(row).join("\n") === labels(table.tHead.rows[0]).join("\n")) return;
      const before = sortedBy();
      for (const cell of row.cells) {
        cell.removeAttribute("aria-sort");
        if (before && cell.textContent === before.textContent) cell.setAttribute("aria-sort", before.getAttribute("aria-sort"));
      }
      keepingFocus(table.tHead, () => table.tHead.replaceChildren(row));
    }
    function order() {
      const header = sortedBy();
      if (!header) return;
      const column = header.cellIndex;
      const sign = header.getAttribute("aria-sort") === "descending" ? -1 : 1;
      const numeric = header.dataset.kind === "number";
      const keyed = rows.map((row) => [row.cells[column].dataset.sort, row]);
      const known = (text) => text !== undefined && text !== "";
      keyed.sort(([left], [right]) => {
        if (!known(left) || !known(right)) return known(right) - known(left);
        return sign * (numeric ? left - right : left.localeCompare(right, "en", { numeric: true }));
      });
      rows = keyed.map(([, row]) => row);
    }
    // Puts the rows into their order; a large table that is in order already is left alone.
    function place() {
      const there = body.rows;
      if (there.length === rows.length && rows.every((row, i) => there[i] === row)) return;
      body.replaceChildren(...rows);
    }
    function mark(row) {
      row.hidden = hidden.has(row.dataset.group);
      row.classList.toggle("chosen", row.dataset.key === chosen);
    }

    return {
      // [column, direction] that the table is sorted by.
      sorting: () => {
        const header = sortedBy();
        return header ? [header.cellIndex, header.getAttribute("aria-sort")] : null;
      },
      sort: (column, direction) => {
        const header = headers()[column];
        if (!header) return;
        const before = header.getAttribute("aria-sort");
        const next = before ? (before === "descending" ? "ascending" : "descending") : header.dataset.first;
        for (const other of headers()) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", direction || next);
        order();
        keepingFocus(table, place);
      },
      filter: (groups) => {
        hidden = groups;
        rows.forEach(mark);
      },
      // Marks a row, and brings it into sight within the table's own box: the page stays where it is. Returns the row.
      choose: (key) => {
        chosen = key;
        rows.forEach(mark);
        const row = rows.find((one) => one.dataset.key === key) || null;
        if (row) table.parentNode.scrollTop = row.offsetTop - table.tHead.offsetHeight;
        return row;
      },
      // columns: HTML of the headings. list: [key, version, html] of every row, in the order of the server. Rows of a
      // known version stay as they are. Returns what changed: [row before or null, row now].
      update: (columns, list) => {
        head(columns);
        const before = new Map(rows.map((row) => [row.dataset.key, row]));
        const changes = [];
        rows = list.map(([key, version, html]) => {
          const old = before.get(key);
          if (old && old.dataset.version === version) return old;
          const row = parsed(html);
          const details = old && old.querySelector("details");
          if (details && details.open) row.querySelector("details").open = true;
          changes.push([old || null, row]);
          mark(row);
          return row;
        });
        order();
        keepingFocus(table, () => {
          for (const [old, row] of changes) if (old) old.replaceWith(row);
          place();
        });
        return changes;
      },
    };
  };
}());
