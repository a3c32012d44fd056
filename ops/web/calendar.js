// Makes the calendar one stop on the way of the Tab key: arrow keys go from
// day to day inside it.
"use strict";
(() => {
  const days = () => [...document.querySelectorAll(".month a")]
    .sort((a, b) => (a.id < b.id ? -1 : 1));

  // One day can be reached by Tab: the one that was last gone to, at first the
  // latest.
  const settle = (chosen) => {
    const all = days();
    const stop = chosen ?? document.querySelector(".month a.latest") ?? all.at(-1);
    for (const link of all) link.tabIndex = link === stop ? 0 : -1;
  };

  // The day n days or months from the one of link, or the nearest that there is.
  const towards = (link, step) => {
    const date = new Date(`${link.id}T00:00:00Z`);
    if (step.days) date.setUTCDate(date.getUTCDate() + step.days);
    if (step.months) {
      const day = date.getUTCDate();
      date.setUTCDate(1);
      date.setUTCMonth(date.getUTCMonth() + step.months);
      const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
      date.setUTCDate(Math.min(day, last));
    }
    const found = document.getElementById(date.toISOString().slice(0, 10));
    if (found) return found;
    const all = days();
    return (step.days ?? step.months) < 0 ? all[0] : all.at(-1);
  };

  const steps = {
    ArrowLeft: { days: -1 }, ArrowRight: { days: 1 }, ArrowUp: { days: -7 }, ArrowDown: { days: 7 },
    PageUp: { months: -1 }, PageDown: { months: 1 },
  };

  document.addEventListener("keydown", (event) => {
    const link = event.target.closest?.(".month a");
    if (!link || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = days();
    const next = event.key === "Home" ? all[0] : event.key === "End" ? all.at(-1)
      : steps[event.key] && towards(link, steps[event.key]);
    if (!next) return;
    event.preventDefault();
    settle(next);
    next.focus();
  });
  document.addEventListener("lacuna:refreshed", () => settle(document.activeElement?.closest(".month a")));
  settle();
})();
