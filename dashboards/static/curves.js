"use strict";
// Learning curves: drawn as Python drew them, in the reader's theme.
(function () {
  const paretovit = (window.paretovit = window.paretovit || {});

  paretovit.curves = function (element, looks, name) {
    const look = JSON.parse(JSON.stringify(looks[paretovit.theme.name()].curves));
    element.hidden = !look.data.length;
    if (!look.data.length) return;
    if (paretovit.narrow.matches) Object.assign(look.layout.margin, { l: 48, r: 8 });
    Plotly.react(element, look.data, look.layout, paretovit.plotlyConfig(name + "-curves"));
  };
}());
