"use strict";
// The chart of the front: the figure as Python styled it, with the points on whatever axes the reader chose.
(function () {
  const paretovit = (window.paretovit = window.paretovit || {});
  const narrow = window.matchMedia("(max-width: 40rem)");
  const copy = (value) => JSON.parse(JSON.stringify(value));

  paretovit.narrow = narrow;
  paretovit.plotlyConfig = (filename) => ({
    responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename },
  });

  // view: {x, y, logX, logY, hidden: groups that are left out, chosen: key of the marked point or null}
  function figure(data, view, theme) {
    const look = copy(data.looks[theme]);
    const { data: traces, layout } = look.front;
    const keys = Object.keys(data.points);
    const members = {};
    for (const key of keys) (members[data.points[key].group] = members[data.points[key].group] || []).push(key);
    const value = (key, name) => (name in data.points[key].values ? data.points[key].values[name] : null);
    let strip = false, plotted = false;
    for (const trace of traces) {
      const { role, group } = trace.meta;
      if (role === "line") line(trace, data, view, value);
      else if (role === "chosen") mark(trace, data, view, value);
      else {
        trace.ids = members[group] || [];
        const inStrip = role === "strip";
        const known = trace.ids.map((key) => value(key, view.x) !== null && (value(key, view.y) === null) === inStrip);
        trace.x = trace.ids.map((key, i) => (known[i] ? value(key, view.x) : null));
        trace.y = trace.ids.map((key, i) => (known[i] ? (inStrip ? 0 : value(key, view.y)) : null));
        trace.hovertext = trace.ids.map((key) => data.points[key].hover);
        trace.visible = !view.hidden.has(group);
        if (inStrip) strip = strip || (trace.visible && known.some(Boolean));
        else plotted = plotted || (trace.visible && known.some(Boolean));
        if (trace.meta.bars) {
          Object.assign(trace.error_x, bars(trace, data, view.x));
          Object.assign(trace.error_y, bars(trace, data, view.y));
        }
      }
    }
    axes(layout, data, view, strip);
    place(traces, layout, data, strip);
    if (plotted) spread(layout, data, view, traces);
    const limited = limitedAxes(data, view, plotted ? "xy" : strip ? "x" : "");
    layout.shapes = limited.map((axis) => limitLine(data, look.limit, axis));
    layout.annotations = limited.map((axis) => limitName(data, look.limit, axis));
    if (!plotted) empty(layout, strip);
    return { traces, layout };
  }
  function isPair(data, x, y) {
    return data.objectives.length === 2 && x !== y && data.objectives.includes(x) && data.objectives.includes(y);
  }
  function line(trace, data, view, value) {
    const keys = isPair(data, view.x, view.y) ? data.line.slice() : [];
    keys.sort((a, b) => value(a, view.x) - value(b, view.x));
    trace.ids = keys;
    trace.x = keys.map((key) => value(key, view.x));
    trace.y = keys.map((key) => value(key, view.y));
    // What the front attains between two of its points is the worse point's value, not a straight line.
    trace.line.shape = data.axes[view.x].direction === "min" ? "hv" : "vh";
    trace.visible = !view.hidden.has("front");
  }
  function mark(trace, data, view, value) {
    const point = view.chosen === null ? undefined : data.points[view.chosen];
    const there = point && !view.hidden.has(point.group) && value(view.chosen, view.x) !== null;
    const inStrip = there && value(view.chosen, view.y) === null;
    trace.x = there ? [value(view.chosen, view.x)] : [];
    trace.y = there ? [inStrip ? 0 : value(view.chosen, view.y)] : [];
    trace.yaxis = inStrip ? "y2" : "y";
  }
  function bars(trace, data, name) {
    const spans = trace.ids.map((key) => {
      const { values, intervals } = data.points[key];
      return name in values && intervals[name]
        ? [values[name] - intervals[name][0], intervals[name][1] - values[name]] : [0, 0];
    });
    return {
      visible: spans.some((span) => span[0] || span[1]),
      arrayminus: spans.map((span) => span[0]), array: spans.map((span) => span[1]),
    };
  }
  function axes(layout, data, view, strip) {
    const title = narrow.matches ? "label" : "title";
    layout.xaxis.title.text = data.axes[view.x][title];
    layout.yaxis.title.text = data.axes[view.y][title];
    layout.xaxis.type = view.logX ? "log" : "linear";
    layout.yaxis.type = view.logY ? "log" : "linear";
    layout.xaxis.anchor = strip ? "y2" : "y";
    layout.yaxis2.ticktext = ["no<br>" + view.y.replaceAll("_", " ")];
    layout.uirevision = [view.x, view.y, view.logX, view.logY].join();
    if (narrow.matches) layout.margin = { l: 48, r: 8, t: 24, b: 48 };
  }
  // A strip that nothing stands in is not there at all: plotly paints the background even of an axis that it does not
  // show, over what the plot has at the same place.
  function place(traces, layout, data, strip) {
    layout.yaxis.domain = [strip ? data.strip : 0, 1];
    for (const trace of traces) if (trace.meta.role === "strip" && !strip) trace.yaxis = "y";
    if (!strip) delete layout.yaxis2;
  }
  // Around one single value plotly shows one unit either way, whatever the unit: -0.6 to 1.4 ms around 0.4.
  function spread(layout, data, view, traces) {
    for (const [name, axis, is_log] of [[view.x, layout.xaxis, view.logX], [view.y, layout.yaxis, view.logY]]) {
      const seen = [data.axes[name].limit === null ? [] : [data.axes[name].limit]];
      for (const trace of traces) {
        if (trace.visible === false || !["points", "strip"].includes(trace.meta.role)) continue;
        const across = axis === layout.xaxis ? trace.x : trace.y;
        trace.ids.forEach((key, i) => {
          if (trace.x[i] === null || trace.y[i] === null || (axis === layout.yaxis && trace.meta.role === "strip")) return;
          seen.push([across[i]], trace.meta.bars ? data.points[key].intervals[name] || [] : []);
        });
      }
      const values = seen.flat(), low = Math.min(...values), high = Math.max(...values);
      if (!is_log && values.length && low === high) {
        Object.assign(axis, { range: low ? [low - Math.abs(low) / 2, low + Math.abs(low) / 2] : [-1, 1], autorange: false });
      }
    }
  }
  // Ranges that plotly would make up for nothing say nothing.
  function empty(layout, strip) {
    Object.assign(layout.yaxis, { type: "linear", range: [0, 1], autorange: false, showticklabels: false });
    if (!strip) Object.assign(layout.xaxis, { type: "linear", range: [0, 1], autorange: false, showticklabels: false });
    layout.uirevision = "empty";
    layout.annotations.push({
      text: "Nothing has both figures", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.55,
      font: { size: 15, color: layout.xaxis.tickfont.color },
    });
  }
  // real: the axes whose range is that of some points.
  function limitedAxes(data, view, real) {
    const axes = [[view.x, "x", "y", view.logX], [view.y, "y", "x", view.logY]];
    return axes.filter(([name, across]) => data.axes[name].limit !== null && real.includes(across));
  }
  function limitLine(data, look, [name, across, along]) {
    return Object.assign(copy(look.line), {
      [across + "ref"]: across, [across + "0"]: data.axes[name].limit, [across + "1"]: data.axes[name].limit,
      [along + "ref"]: "paper", [along + "0"]: 0, [along + "1"]: 1,
    });
  }
  // At the end of the line and above the grid, which would strike it through. On a logarithmic axis plotly places lines
  // by their value and words by its logarithm.
  function limitName(data, look, [name, across, along, is_log]) {
    return Object.assign(copy(look.name), {
      [across + "ref"]: across, [across]: is_log ? Math.log10(data.axes[name].limit) : data.axes[name].limit,
      [along + "ref"]: "paper", [along]: 1,
      xanchor: across === "x" ? "center" : "right", yanchor: across === "x" ? "bottom" : "middle",
    });
  }

  // What a reader should know about the axes that they chose.
  paretovit.axesNote = function (data, view) {
    const missing = Object.values(data.points).filter((point) => !(view.x in point.values)).length;
    const parts = [];
    if (!isPair(data, view.x, view.y)) parts.push("The line is left out: these axes are not the two objectives of the search. Front points are still those of its objectives.");
    if (missing) parts.push(missing + (missing === 1 ? " candidate is" : " candidates are") + " left out: without a value for " + data.axes[view.x].label + ".");
    return parts.join(" ");
  };

  paretovit.frontChart = function (element, onSelect) {
    let bound = false;
    return {
      draw: (data, view) => {
        const { traces, layout } = figure(data, view, paretovit.theme.name());
        Plotly.react(element, traces, layout, paretovit.plotlyConfig(data.name + "-front"));
        if (!bound) element.on("plotly_click", (event) => onSelect(event.points[0].id));
        bound = true;
      },
      // Shows the hover box of a point, as if the pointer stood on it.
      point: (key) => {
        const has = (trace) => trace.ids && trace.hovertext && trace.ids.some((id, i) => id === key && trace.x[i] !== null);
        const curve = (element.data || []).findIndex(has);
        if (curve < 0) { Plotly.Fx.unhover(element); return; }
        const trace = element.data[curve];
        const subplot = trace.meta.role === "strip" ? "xy2" : "xy";
        Plotly.Fx.hover(element, [{ curveNumber: curve, pointNumber: trace.ids.indexOf(key) }], subplot);
      },
    };
  };
}());
