// Keeps a page current: the server notifies it of a change, the page loads itself
// again and replaces the parts that are marked data-live.
"use strict";
(() => {
  const line = document.getElementById("live");
  const longestPause = 60_000; // ms between attempts to connect
  let behind = Date.parse(document.body.dataset.now) - Date.now(); // the server's clock less ours
  let pause = 3_000;
  let refreshing = false;
  let again = false;

  const say = (text, state) => {
    line.textContent = text;
    line.dataset.state = state;
  };

  // As the server writes ages, so that a page reads the same before and after.
  const ago = (ms) => {
    const s = ms / 1000;
    const short = (x) => (x >= 9.95 ? x.toFixed(0) : x.toFixed(1).replace(".0", ""));
    if (s < 1) return "just now";
    if (s < 100) return `${short(s)} s ago`;
    if (s < 6000) return `${(s / 60).toFixed(0)} min ago`;
    if (s < 48 * 3600) return `${short(s / 3600)} h ago`;
    return `${(s / 86400).toFixed(0)} days ago`;
  };

  const showAges = () => {
    for (const time of document.querySelectorAll("time[data-age]")) {
      const text = ago(Date.now() + behind - Date.parse(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  };

  // A part that differs in ages only is the same.
  const ageless = (element) => {
    const copy = element.cloneNode(true);
    for (const time of copy.querySelectorAll("time[data-age]")) time.textContent = "";
    return copy.outerHTML;
  };

  const replace = (old, fresh) => {
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceWith(document.adoptNode(fresh));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (refreshing) {
      again = true;
      return;
    }
    refreshing = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const old of document.querySelectorAll("[data-live]")) {
        const fresh = next.getElementById(old.id);
        if (fresh && ageless(fresh) !== ageless(old)) replace(old, fresh);
      }
      document.title = next.title;
      behind = Date.parse(next.body.dataset.now) - Date.now();
      document.dispatchEvent(new Event("lacuna:refreshed"));
    } catch {
      // The server is away; the stream says so and comes back.
    } finally {
      refreshing = false;
    }
    showAges();
    if (again) {
      again = false;
      refresh();
    }
  };

  const connect = () => {
    const source = new EventSource(`/events?since=${encodeURIComponent(document.body.dataset.stamp)}`);
    source.addEventListener("open", () => {
      pause = 3_000;
      say("live: changes appear by themselves", "live");
    });
    source.addEventListener("change", (event) => {
      document.body.dataset.stamp = event.data;
      refresh();
    });
    source.addEventListener("error", () => {
      say("connection lost, trying again", "lost");
      if (source.readyState !== EventSource.CLOSED) return; // the browser comes back by itself
      setTimeout(connect, pause);
      pause = Math.min(2 * pause, longestPause);
    });
    addEventListener("pagehide", () => source.close(), { once: true });
  };

  connect();
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  setInterval(showAges, 5_000);
})();
