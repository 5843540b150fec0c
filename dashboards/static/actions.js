"use strict";
// Buttons that ask something of a search. The answer stands in a line that a screen reader hears; what it changes comes
// with the page's own updates.
(function () {
  const told = document.getElementById("told");

  async function ask(button) {
    const method = button.dataset.method || "POST";
    const field = "confirms" in button.dataset ? button.form.elements.confirm : null;
    const address = button.dataset.ask + (field ? "?confirm=" + encodeURIComponent(field.value) : "");
    told.textContent = "Asking";
    delete told.dataset.state;
    let text, done = false;
    try {
      const answer = await fetch(address, { method, signal: AbortSignal.timeout(120000) });
      const said = await answer.json();
      done = answer.ok;
      text = said.told || said.detail;
    } catch (error) {
      text = "The dashboard does not answer; nothing is known of what was asked.";
    }
    told.textContent = text;
    told.dataset.state = done ? "done" : "refused";
    if (done && method === "DELETE") location.assign("/");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-ask], button[data-opens]");
    if (!button) return;
    if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal();
    else ask(button);
  });
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!field.dataset.expects) return;
    const button = field.form.querySelector("[data-confirms]");
    button.disabled = field.value !== field.dataset.expects;
  });
}());
