// Colours for numbers, and numbers for colour bars.

// A path through OKLCh on which lightness grows evenly, so that equal steps of
// a value look equally large, also to those who do not see hues. Hue turns
// evenly from one end to the other; the colours are as strong as a screen can
// show, up to a bound.
const darkest = 0.28, lightest = 0.93, strongest = 0.14;
const shades = 512; // more than anybody can tell apart

export const values = ramp(285, 105); // blue over green to yellow
export const uncertainties = ramp(325, 430); // purple over red to sand

function ramp(from, to) {
  const out = new Uint8ClampedArray(3 * shades);
  for (let i = 0; i < shades; i++) {
    const x = i / (shades - 1);
    out.set(strongestShown(darkest + (lightest - darkest) * x, (from + (to - from) * x) * Math.PI / 180), 3 * i);
  }
  return out;
}

function strongestShown(lightness, hue) {
  let shows = 0, fails = strongest; // grey is always shown
  if (onScreen(linear(lightness, strongest, hue))) shows = strongest;
  else {
    for (let i = 0; i < 12; i++) {
      const middle = (shows + fails) / 2;
      if (onScreen(linear(lightness, middle, hue))) shows = middle;
      else fails = middle;
    }
  }
  return linear(lightness, shows, hue).map((v) => Math.round(255 * gamma(Math.min(1, Math.max(0, v)))));
}

// From OKLCh to linear sRGB.
function linear(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue), b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
  ];
}

function onScreen(rgb) { return rgb.every((v) => v >= -1e-4 && v <= 1 + 1e-4); }

// The transfer function of sRGB.
function gamma(v) { return v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055; }

// A scale takes numbers to colours. Its ends leave out the outermost fiftieths,
// so that one odd cell does not take the colours from all others.
export class Scale {
  constructor(numbers, { log = false, floor = null, palette = values } = {}) {
    this.log = log;
    this.palette = palette;
    const stride = 1 + Math.floor(numbers.length / 50_000);
    const seen = [];
    for (let i = 0; i < numbers.length; i += stride) {
      const place = this.place(numbers[i]);
      if (Number.isFinite(place)) seen.push(place);
    }
    seen.sort((a, b) => a - b);
    this.low = floor ?? (seen[Math.floor(0.02 * (seen.length - 1))] ?? 0);
    this.high = seen[Math.floor(0.98 * (seen.length - 1))] ?? 1;
    if (this.high - this.low < 1e-9) this.high = this.low + 1; // a flat sea
  }

  place(x) { return this.log ? Math.log10(x) : x; }

  unplace(place) { return this.log ? 10 ** place : place; }

  // Writes the colour of x into pixels at i; false where x has none.
  paint(x, pixels, i) {
    const place = this.place(x);
    if (!Number.isFinite(place)) return false;
    const share = Math.min(1, Math.max(0, (place - this.low) / (this.high - this.low)));
    const at = 3 * Math.round(share * (shades - 1));
    pixels[i] = this.palette[at];
    pixels[i + 1] = this.palette[at + 1];
    pixels[i + 2] = this.palette[at + 2];
    pixels[i + 3] = 255;
    return true;
  }

  // Numbers to be written under the bar, each with its share of the way.
  ticks(most = 7) {
    let all = this.log ? logTicks(this.low, this.high, most) : linearTicks(this.low, this.high, most);
    if (all.length < 2) {
      all = linearTicks(this.unplace(this.low), this.unplace(this.high), most);
    }
    return all.map((value) => ({ value, share: (this.place(value) - this.low) / (this.high - this.low) }))
      .filter((t) => t.share >= 0 && t.share <= 1);
  }
}

function logTicks(low, high, most) {
  for (const mantissas of [[1, 2, 5], [1]]) {
    const all = [];
    for (let power = Math.floor(low); power <= high; power++) {
      for (const m of mantissas) {
        const at = Math.log10(m) + power;
        if (at >= low && at <= high) all.push(Number(`${m}e${power}`));
      }
    }
    if (all.length <= most) return all;
  }
  return [];
}

function linearTicks(low, high, most) {
  let step = 10 ** Math.floor(Math.log10((high - low) / most));
  for (const m of [1, 2, 5, 10]) {
    if ((high - low) / (m * step) <= most) {
      step *= m;
      break;
    }
  }
  const all = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) all.push(Number((k * step).toPrecision(12)));
  return all;
}

// A number as people read it: four digits, no noise.
export function written(x) {
  if (!Number.isFinite(x)) return "none";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) return x.toExponential(3);
  return x.toPrecision(4);
}
