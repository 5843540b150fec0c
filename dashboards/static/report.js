"use strict";
// The report: everything is in the file.
window.paretovit.front(JSON.parse(document.getElementById("front-data").textContent), null);
