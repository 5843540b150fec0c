"use strict";
// Keeps the page up to date: an event stream says that something changed, then the page's own data are read again.
// Nothing is asked for while nobody looks, and never so often that answering would keep the server busy: it may run on
// the machine that measures.
(function () {
  const { source, stream } = document.body.dataset;
  const mark = document.getElementById("live");
  const news = document.getElementById("news");
  const SHORTEST = 1000, PAUSES = 20, RETRY = 3000;
  let revision = document.body.dataset.revision;
  let ended = document.body.dataset.ended === "true";
  let events = null, retry = null, timer = null;
  let connected = false, isLoading = false, isStale = false, signedOut = false, unreadable = false;
  let notBefore = 0;

  function tell() {
    const [state, text] = signedOut ? ["lost", "Signed out: open the link that paretovit dashboard printed"]
      : unreadable ? ["lost", "The database cannot be read now"]
      : !connected ? ["lost", "Reconnecting"]
      : ended ? ["ended", "Ended"] : ["live", "Live"];
    mark.hidden = false;
    if (mark.dataset.state === state && mark.textContent === text) return;
    mark.dataset.state = state;
    mark.textContent = text;
  }

  function open() {
    clearTimeout(retry);
    retry = null;
    if (events || signedOut || document.hidden) return;
    events = new EventSource(stream + "?since=" + encodeURIComponent(revision));
    events.onopen = () => { connected = true; tell(); };
    events.onerror = () => {
      connected = false;
      tell();
      if (events.readyState !== EventSource.CLOSED) return; // it tries again by itself
      events = null;
      retry = setTimeout(() => { changed(); open(); }, RETRY);
    };
    events.addEventListener("changed", changed);
  }
  function close() {
    clearTimeout(retry);
    if (events) events.close();
    events = null;
  }

  function changed() {
    isStale = true;
    load();
  }
  async function load() {
    if (!isStale || isLoading || timer || signedOut || document.hidden) return;
    const wait = notBefore - performance.now();
    if (wait > 0) {
      timer = setTimeout(() => { timer = null; load(); }, wait);
      return;
    }
    isLoading = true;
    isStale = false;
    const begun = performance.now();
    try {
      const answer = await fetch(source, { signal: AbortSignal.timeout(60000) });
      signedOut = answer.status === 401;
      unreadable = !answer.ok && !signedOut;
      if (answer.ok) take(await answer.json());
      else isStale = true;
    } catch (error) {
      isStale = true; // the server is gone, which the stream says as well
    }
    const now = performance.now();
    notBefore = now + (isStale ? RETRY : Math.max(SHORTEST, PAUSES * (now - begun)));
    isLoading = false;
    tell();
    if (signedOut) close();
    else load();
  }
  function take(update) {
    revision = update.revision;
    ended = update.ended;
    const lines = window.paretovit.page.apply(update);
    if (!lines.length) return;
    const more = lines.length > 3 ? ["and " + (lines.length - 2) + " more"] : [];
    news.textContent = [...lines.slice(0, more.length ? 2 : 3), ...more].join("; ");
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else { open(); load(); }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  open();
}());
