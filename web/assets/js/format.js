// Numbers, times and elements. Every function gives a dash for a value that is null or undefined.
const NBSP = "\u00a0";
const THIN = "\u202f"; // between number and unit, and between thousands
export const DASH = "–";

const known = (v) => v !== null && v !== undefined && Number.isFinite(v);

/** A fraction as a percentage. */
export const pct = (v, digits = 2) => (known(v) ? (100 * v).toFixed(digits) + THIN + "%" : DASH);

/** A fraction as a percentage without the sign, for ranges and tables. */
export const pctBare = (v, digits = 2) => (known(v) ? (100 * v).toFixed(digits) : DASH);

/** A count with thin spaces between thousands. */
export const count = (v) => (known(v) ? String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, THIN) : DASH);

export const fixed = (v, digits = 3) => (known(v) ? v.toFixed(digits).replace("-", "−") : DASH);

/** chance is the bound e^-log on a probability: "1 in 150", rounded down; "1" where there is no evidence. */
export function chance(log) {
  const n = Math.exp(Math.max(log || 0, 0));
  if (n < 1.05) return "1";
  if (n >= 1e12) return "1 in over 10¹²";
  const step = n < 10 ? 0.1 : 10 ** (Math.floor(Math.log10(n)) - 1);
  const down = Math.floor(n / step + 1e-9) * step;
  return `1 in ${n < 10 ? String(Number(down.toFixed(1))) : count(down)}`;
}

/** Seconds in the unit that fits. */
export function duration(s) {
  if (!known(s)) return DASH;
  const [div, unit] = s < 120 ? [1, "s"] : s < 7200 ? [60, "min"] : s < 172800 ? [3600, "h"] : [86400, "d"];
  const v = s / div;
  return v.toFixed(v < 10 && v !== Math.round(v) ? 1 : 0) + THIN + unit;
}

/** "12:00:30", with the date in front where it is not ref's date (or there is no ref). */
export function clock(iso, ref) {
  const d = new Date(iso);
  if (isNaN(d)) return DASH;
  const s = d.toISOString();
  const time = s.slice(11, 19);
  return ref && new Date(ref).toISOString().slice(0, 10) === s.slice(0, 10) ? time : s.slice(0, 10) + NBSP + time;
}

/** A text as a sentence. */
export const sentence = (s) => (s ? s[0].toUpperCase() + s.slice(1).replace(/\.?$/, ".") : "");

/** Times inside a text as clock writes them. */
export const clocks = (s, ref) => s.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (t) => clock(t, ref));

/** The slice's name as people read it. */
export const sliceName = (s) => s || "all rows";

/** el("p.readout", {title: "…"}, child, "text") */
export function el(spec, attrs, ...children) {
  const [tag, ...classes] = spec.split(".");
  const e = document.createElement(tag);
  if (classes.length) e.className = classes.join(" ");
  for (const [k, v] of Object.entries(attrs || {})) if (v !== undefined && v !== null) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

/** The same for SVG: svg("rect.gap", {x: 1}). */
export function svg(spec, attrs, ...children) {
  const [tag, ...classes] = spec.split(".");
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length) e.setAttribute("class", classes.join(" "));
  for (const [k, v] of Object.entries(attrs || {})) e.setAttribute(k, typeof v === "number" ? +v.toFixed(2) : v);
  e.append(...children);
  return e;
}
