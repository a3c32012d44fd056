// Draws the four maps of a granule and the probe on them.
import { Scale, uncertainties, values, written } from "./colour.js";
import { steer } from "./steer.js";
import { View } from "./view.js";

const land = 1, filled = 2, lost = 4, refused = 8, ownError = 16; // bits of the flags
const observed = (f) => (f & (land | filled | lost | refused)) === 0;
const kinds = [
  { name: "observed", colour: [59, 111, 182], is: observed },
  { name: "filled", colour: [226, 178, 79], is: (f) => (f & filled) !== 0 && (f & refused) === 0 },
  { name: "refused by quality control, and filled", colour: [176, 74, 143], is: (f) => (f & refused) !== 0 },
  { name: "cannot be filled", colour: [90, 90, 98], is: (f) => (f & lost) !== 0 },
];

const root = document.getElementById("maps");
const stage = document.getElementById("stage");
const note = document.getElementById("map-note");
const probe = document.getElementById("probe");
const names = ["before", "after", "sigma", "flags"];
const canvases = names.map((name) => document.getElementById(`map-${name}`));

let scene = null; // the shown map: fields, pictures, view, probed cell

// Reads the answer of the server: a header, then planes of bytes, see encodeMap.
async function load(field) {
  const answer = await fetch(`${root.dataset.map}&field=${field}`);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const buffer = await answer.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const n = head.rows * head.cols;
  const bytes = new Uint8Array(buffer, 4 + length);
  const numbers = (at) => {
    const out = new Uint8Array(4 * n);
    for (let k = 0; k < 4; k++) for (let i = 0; i < n; i++) out[4 * i + k] = bytes[at + k * n + i];
    return new Float32Array(out.buffer);
  };
  head.units = pretty(head.units);
  const place = head.places ? [numbers(9 * n), numbers(13 * n)] : null;
  return { ...head, value: numbers(0), sigma: numbers(4 * n), flags: bytes.subarray(8 * n, 9 * n), place };
}

// Paints a field at one pixel a cell. Land is grey with a darker coast, a cell
// without a value has the colour of gaps, which no value has.
function picture(map, colours, paint) {
  const canvas = document.createElement("canvas");
  canvas.width = map.cols;
  canvas.height = map.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(map.cols, map.rows);
  for (let i = 0; i < map.flags.length; i++) {
    if (map.flags[i] & land) put(image.data, 4 * i, coast(map, i) ? colours.shore : colours.land);
    else if (!paint(i, image.data, 4 * i)) put(image.data, 4 * i, colours.gap);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function put(pixels, i, [r, g, b]) {
  pixels[i] = r;
  pixels[i + 1] = g;
  pixels[i + 2] = b;
  pixels[i + 3] = 255;
}

function coast({ rows, cols, flags }, i) {
  const row = Math.floor(i / cols), col = i % cols;
  const sea = (r, c) => r >= 0 && c >= 0 && r < rows && c < cols && !(flags[r * cols + c] & land);
  return sea(row - 1, col) || sea(row + 1, col) || sea(row, col - 1) || sea(row, col + 1);
}

// The colours of the theme, as numbers.
function theme() {
  const style = getComputedStyle(document.documentElement);
  const pick = (name) => style.getPropertyValue(name).match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16));
  return { land: pick("--map-land"), shore: pick("--map-shore"), gap: pick("--map-gap"), mark: style.getPropertyValue("--ink") };
}

function paintAll(map) {
  const colours = theme();
  const value = new Scale(map.value, { log: map.log });
  const sigma = new Scale(map.sigma, { floor: 0, palette: uncertainties });
  return {
    value, sigma,
    pictures: [
      picture(map, colours, (i, px, at) => observed(map.flags[i]) && value.paint(map.value[i], px, at)),
      picture(map, colours, (i, px, at) => value.paint(map.value[i], px, at)),
      picture(map, colours, (i, px, at) => sigma.paint(map.sigma[i], px, at)),
      picture(map, colours, (i, px, at) => {
        const kind = kinds.find((k) => k.is(map.flags[i]));
        if (kind) put(px, at, kind.colour);
        return Boolean(kind);
      }),
    ],
  };
}

// Draws the view on every map.
function draw() {
  const { view, pictures, at } = scene;
  canvases.forEach((canvas, i) => {
    const dots = devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * dots), height = Math.round(canvas.clientHeight * dots);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = width < view.width; // several cells a pixel: their mean
    context.imageSmoothingQuality = "high";
    context.drawImage(pictures[i], view.left, view.top, view.width, view.height, 0, 0, width, height);
    if (at) mark(context, width / view.width, height / view.height);
  });
}

// Marks the probed cell.
function mark(context, wide, tall) {
  const { view, at } = scene;
  const size = Math.max(wide, tall, 7 * devicePixelRatio);
  const x = (at.col + 0.5 - view.left) * wide, y = (at.row + 0.5 - view.top) * tall;
  for (const [colour, thick] of [["#000", 3], ["#fff", 1.25]]) {
    context.strokeStyle = colour;
    context.lineWidth = thick * devicePixelRatio;
    context.strokeRect(x - size / 2, y - size / 2, size, size);
  }
}

// Units as people write them: mg m⁻³ for "mg m^-3" and "mg m-3".
function pretty(units) {
  const high = (text) => [...text].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  return units.split(" ").map((word) => word.replace(/^([A-Za-z]+)\^?(-?\d+)$/, (_, unit, power) => unit + high(power)))
    .join(" ").replace(/^milligram\b/, "mg");
}

const degrees = (x, positive, negative) => `${Math.abs(x).toFixed(3)}° ${x < 0 ? negative : positive}`;

// Shows value, uncertainty and flags of a cell.
function say(at) {
  scene.at = at;
  const { map } = scene;
  const i = at.row * map.cols + at.col;
  const flags = map.flags[i];
  const words = flags & land ? "land" : (kinds.find((k) => k.is(flags))?.name ?? "no value");
  const [lat, lon] = map.place ? map.place.map((all) => all[i]) : [map.lat[at.row], map.lon[at.col]];
  const items = [["where", `${degrees(lat, "N", "S")} ${degrees(lon, "E", "W")}`]];
  if (Number.isFinite(map.value[i])) items.push(["value", `${written(map.value[i])} ${map.units}`]);
  if (Number.isFinite(map.sigma[i])) {
    const factor = map.log ? `, a factor of ${(10 ** map.sigma[i]).toFixed(2)}` : "";
    const whose = !observed(flags) ? "" : flags & ownError ? ", as the input gives it" : ", as fitted";
    items.push(["uncertainty", `± ${written(map.sigma[i])} ${map.sigma_units}${factor}${whose}`]);
  }
  items.push(["flag", words]);
  probe.replaceChildren(...items.map(([name, text]) => {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    return span;
  }));
  Object.assign(probe.dataset, { row: at.row, col: at.col, value: map.value[i], sigma: map.sigma[i], flags });
  draw();
}

// A bar of colours with numbers under it.
function bar(id, scale, title) {
  const element = document.getElementById(id);
  const label = document.createElement("p");
  label.textContent = title;
  const strip = document.createElement("canvas");
  strip.width = 256;
  strip.height = 1;
  const context = strip.getContext("2d");
  const image = context.createImageData(256, 1);
  for (let x = 0; x < 256; x++) scale.paint(scale.unplace(scale.low + (scale.high - scale.low) * (x + 0.5) / 256), image.data, 4 * x);
  context.putImageData(image, 0, 0);
  const ticks = document.createElement("div");
  ticks.className = "ticks";
  for (const tick of scale.ticks()) {
    const span = document.createElement("span");
    span.textContent = String(tick.value);
    span.style.left = `${100 * tick.share}%`;
    ticks.append(span);
  }
  const range = `${written(scale.unplace(scale.low))} to ${written(scale.unplace(scale.high))}`;
  strip.setAttribute("role", "img");
  strip.setAttribute("aria-label", `Colours: ${title}, from ${range}`);
  element.replaceChildren(label, strip, ticks);
  return range;
}

function describe(map, painted) {
  const spaced = (units) => (units ? `, ${units}` : "");
  const range = bar("bar-value", painted.value, `${map.variable}${spaced(map.units)}${map.log ? ", logarithmic" : ""}`);
  const sigmaRange = bar("bar-sigma", painted.sigma, `uncertainty${spaced(map.sigma_units)}`);
  const counts = kinds.map((k) => map.flags.reduce((n, f) => n + (k.is(f) ? 1 : 0), 0));
  const sea = counts.reduce((a, b) => a + b, 0) || 1;
  const shares = kinds.map((k, i) => `${k.name} ${(100 * counts[i] / sea).toFixed(1)} %`).filter((_, i) => counts[i] > 0);
  canvases[0].setAttribute("aria-label", `Map of the observed values: ${shares[0]} of the sea`);
  canvases[1].setAttribute("aria-label", `Map of the values with gaps filled, mostly ${range} ${map.units}`);
  canvases[2].setAttribute("aria-label", `Map of the uncertainty, mostly ${sigmaRange} ${map.sigma_units}`);
  canvases[3].setAttribute("aria-label", `Map of the flags: ${shares.join(", ")} of the sea`);
  document.getElementById("bar-flags").replaceChildren(...kinds.map((kind, i) => {
    const item = document.createElement("li");
    const key = document.createElement("span");
    key.className = "key";
    key.style.backgroundColor = `rgb(${kind.colour.join(" ")})`;
    item.append(key, `${kind.name} ${(100 * counts[i] / sea).toFixed(1)} %`);
    return item;
  }).filter((_, i) => counts[i] > 0));
  note.textContent = map.every > 1 ? `The map is large: every ${map.every}th row and column is shown. The file has them all.` : "";
}

// The shape of the maps is that of the sea at its middle latitude.
function shape(map) {
  const span = (axis) => Math.max(Math.abs(axis[0] - axis.at(-1)), 1e-6);
  const middle = (map.lat[0] + map.lat.at(-1)) / 2;
  const ratio = span(map.lon) * Math.cos(middle * Math.PI / 180) / span(map.lat);
  for (const canvas of canvases) canvas.style.aspectRatio = Math.min(4, Math.max(0.4, ratio));
}

async function show(field) {
  note.textContent = "loading the maps…";
  try {
    const map = await load(field);
    const kept = scene?.map.rows === map.rows && scene.map.cols === map.cols ? scene : null;
    const painted = paintAll(map);
    shape(map);
    scene = { map, ...painted, view: kept?.view ?? new View(map.rows, map.cols), at: null };
    describe(map, painted);
    draw();
    if (kept?.at) say(kept.at);
    root.dataset.ready = "true";
  } catch (error) {
    note.textContent = `The maps cannot be shown: ${error.message}`;
  }
}

steer(stage, canvases, { scene: () => scene, draw, say });
new ResizeObserver(() => { if (scene) draw(); }).observe(stage);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!scene) return;
  Object.assign(scene, paintAll(scene.map));
  draw();
});
const field = document.getElementById("field");
field?.addEventListener("change", () => show(field.value));
show(field?.value ?? 1);
