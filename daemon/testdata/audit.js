// Returns what keeps people with a keyboard, a screen reader or weak eyes from
// using the page, a sentence each.
(() => {
  const wrong = [];
  const check = (ok, text) => { if (!ok) wrong.push(text); };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const what = (e) => e.outerHTML.slice(0, 120);

  check(document.documentElement.lang, "the page has no language");
  check(document.title.trim(), "the page has no title");
  check(all("h1").length === 1, `the page has ${all("h1").length} first headings`);
  for (const landmark of ["header", "nav", "main", "footer"]) check(document.querySelector(landmark), `there is no ${landmark}`);
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.tagName[1]);
    check(next <= level + 1, `a heading of level ${next} follows one of ${level}: ${what(heading)}`);
    check(heading.textContent.trim(), `a heading is empty: ${what(heading)}`);
    level = next;
  }
  const ids = all("[id]").map((e) => e.id);
  check(new Set(ids).size === ids.length, `ids are used twice: ${ids.filter((id, i) => ids.indexOf(id) !== i)}`);
  for (const e of all("[aria-labelledby], [aria-describedby]")) {
    for (const id of `${e.getAttribute("aria-labelledby") ?? ""} ${e.getAttribute("aria-describedby") ?? ""}`.trim().split(/\s+/)) {
      check(document.getElementById(id), `nothing has the id ${id}: ${what(e)}`);
    }
  }
  for (const e of all("img")) check(e.hasAttribute("alt"), `a picture has no alternative: ${what(e)}`);
  for (const e of all("canvas, svg")) check(e.getAttribute("aria-label") && e.getAttribute("role") === "img", `a drawing has no name: ${what(e)}`);
  for (const e of all("a, button, [tabindex='0']").filter(shown)) {
    const name = e.getAttribute("aria-label") || e.textContent.trim() || e.querySelector("img")?.alt;
    check(name, `nothing names what can be reached: ${what(e)}`);
  }
  for (const e of all("input:not([type=hidden])")) check(e.labels?.length || e.getAttribute("aria-label"), `an input has no label: ${what(e)}`);
  for (const e of all("th")) check(["row", "col"].includes(e.scope), `a heading of a table heads nothing: ${what(e)}`);
  for (const e of all("[tabindex]")) check(e.tabIndex <= 0, `the order of the Tab key is forced: ${what(e)}`);
  check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);

  // Contrast of text as WCAG 2 has it: 4.5, or 3 where it is large.
  const channel = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || seen.has(e) || !shown(e)) continue;
    seen.add(e);
    if (e.closest("[aria-hidden=true], noscript, script, title, svg, .month li > span, .skip")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(numbers(style.color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    check(ratio >= (large ? 3 : 4.5), `text has a contrast of ${ratio.toFixed(2)}: ${what(e)}`);
  }
  return wrong;
})()
