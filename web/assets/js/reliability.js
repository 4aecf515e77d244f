// The reliability diagram: accuracy against confidence by bin, with Wilson intervals, and the rows by bin beneath.
import { svg, el, count, fixed, pctBare } from "./format.js";

const W = 400, L = 40, R = 8, SIZE = W - L - R; // the plot is a square
const TOP = 8, BOTTOM = TOP + SIZE, HIST = BOTTOM + 40, HISTH = 76, H = HIST + HISTH + 32;
const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
const x = (v) => L + v * SIZE;
const y = (v) => BOTTOM - v * SIZE;

/** signals: [{key: "raw" | "cal", name, bins, n}] in drawing order; onBin(text) is told of the bin under the pointer. */
export function drawDiagram(root, signals, onBin) {
  const drawn = signals.filter((s) => s.bins && s.bins.some((b) => b.n > 0));
  const root_ = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": describe(drawn) });
  axes(root_);
  if (!drawn.length) {
    root_.append(svg("text.none", { x: x(0.5), y: y(0.5), "text-anchor": "middle" }, signals.length ? "no labelled rows in this window" : "all signals are hidden"));
  }
  for (const s of drawn) gaps(root_, s);
  root_.append(svg("line.diagonal", { x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  for (const s of drawn) points(root_, s);
  histogram(root_, drawn);
  if (drawn.length) hits(root_, drawn, onBin);
  root.replaceChildren(root_);
}

function axes(g) {
  for (const t of TICKS) {
    g.append(svg("line.grid", { x1: x(t), x2: x(t), y1: TOP, y2: BOTTOM }), svg("line.grid", { x1: L, x2: L + SIZE, y1: y(t), y2: y(t) }));
    g.append(svg("text", { x: L - 6, y: y(t) + 4, "text-anchor": "end" }, t.toFixed(1)));
    g.append(svg("text", { x: x(t), y: BOTTOM + 14, "text-anchor": t === 1 ? "end" : "middle" }, t.toFixed(1)));
  }
  g.append(svg("rect.frame", { x: L, y: TOP, width: SIZE, height: SIZE }));
  g.append(svg("text.title", { x: x(0.5), y: BOTTOM + 27, "text-anchor": "middle" }, "confidence"));
  g.append(svg("text.title", { x: 10, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 10 ${y(0.5)})` }, "accuracy"));
}

// The shaded gap of a bin reaches from its mean confidence to its accuracy.
function gaps(g, s) {
  for (const b of s.bins) {
    if (!b.n) continue;
    const hi = Math.max(b.conf, b.acc), lo = Math.min(b.conf, b.acc);
    g.append(svg(`rect.gap.${s.key}`, { x: x(b.lo), width: x(b.hi) - x(b.lo), y: y(hi), height: (hi - lo) * SIZE }));
  }
}

function points(g, s) {
  const full = s.bins.filter((b) => b.n > 0);
  g.append(svg(`polyline.curve.${s.key}`, { points: full.map((b) => `${x(b.conf).toFixed(1)},${y(b.acc).toFixed(1)}`).join(" ") }));
  for (const b of full) {
    const cx = x(b.conf), cy = y(b.acc), lo = y(b.acc_lo), hi = y(b.acc_hi);
    g.append(svg(`path.whisker.${s.key}`, { d: `M${cx - 3} ${hi}h6M${cx} ${hi}V${lo}M${cx - 3} ${lo}h6` }));
    g.append(s.key === "raw" ? svg("circle.raw", { cx, cy, r: 2.8 }) : svg("rect.cal", { x: cx - 2.6, y: cy - 2.6, width: 5.2, height: 5.2 }));
  }
}

// The two signals have different numbers of rows (the calibrated one is of the sample), so that bars are shares.
function histogram(g, drawn) {
  const base = HIST + HISTH;
  const share = (s, b) => b.n / s.total;
  for (const s of drawn) s.total = s.bins.reduce((sum, b) => sum + b.n, 0);
  const top = Math.max(0.01, ...drawn.flatMap((s) => s.bins.map((b) => share(s, b))));
  for (const t of [0, top]) {
    const ty = base - (t / top) * HISTH;
    g.append(svg("line.grid", { x1: L, x2: L + SIZE, y1: ty, y2: ty }));
    if (drawn.length) g.append(svg("text", { x: L - 6, y: ty + 4, "text-anchor": "end" }, (100 * t).toFixed(0) + "%"));
  }
  drawn.forEach((s, i) => {
    for (const b of s.bins) {
      if (!b.n) continue;
      const w = (x(b.hi) - x(b.lo) - 2) / drawn.length;
      const h = Math.max(0.8, (share(s, b) / top) * HISTH);
      g.append(svg(`rect.bar.${s.key}`, { x: x(b.lo) + 1 + i * w, width: w, y: base - h, height: h }));
    }
  });
  g.append(svg("line.frame", { x1: L, x2: L + SIZE, y1: base, y2: base }));
  g.append(svg("text.title", { x: x(0.5), y: base + 16, "text-anchor": "middle" }, "share of rows by bin" + (drawn.length ? " (" + drawn.map((s) => `${s.name} n ${count(s.total)}`).join(", ") + ")" : "")));
}

function hits(g, drawn, onBin) {
  drawn[0].bins.forEach((b, i) => {
    const hit = svg("rect.hit", { x: x(b.lo), width: x(b.hi) - x(b.lo), y: TOP, height: HIST + HISTH - TOP });
    const text = `(${fixed(b.lo, 2)}, ${fixed(b.hi, 2)}]  ` + drawn.map((s) => reading(s.name, s.bins[i])).join("  ·  ");
    hit.addEventListener("pointerenter", () => onBin(text));
    hit.addEventListener("pointerleave", () => onBin(""));
    g.append(hit);
  });
}

const reading = (name, b) => (b && b.n ? `${name} ${pctBare(b.conf, 1)} → ${pctBare(b.acc, 1)} % [${pctBare(b.acc_lo, 1)}, ${pctBare(b.acc_hi, 1)}] n ${count(b.n)}` : `${name} none`);

function describe(drawn) {
  if (!drawn.length) return "Reliability diagram: no labelled rows";
  const worst = (s) => s.bins.filter((b) => b.n).reduce((a, b) => (Math.abs(b.acc - b.conf) > Math.abs(a.acc - a.conf) ? b : a));
  return "Reliability diagram. " + drawn.map((s) => {
    const b = worst(s);
    return `${s.name}: largest gap at confidence ${pctBare(b.conf, 1)} %, accuracy ${pctBare(b.acc, 1)} %`;
  }).join(". ") + ". The numbers are in the table of bins.";
}

/** The same as a table, for those who read numbers. */
export function drawBinTable(root, signals) {
  const drawn = signals.filter((s) => s.bins && s.bins.length);
  if (!drawn.length) return root.replaceChildren(el("p.empty", {}, "No bins."));
  const head = el("tr", {}, el("th", { scope: "col" }, "bin"), ...drawn.flatMap((s) => ["n", "conf %", "acc %", "95 %"].map((t) => el("th", { scope: "col" }, `${s.name} ${t}`))));
  const rows = drawn[0].bins.map((b, i) => el("tr", {}, el("th", { scope: "row" }, `(${fixed(b.lo, 2)}, ${fixed(b.hi, 2)}]`), ...drawn.flatMap((s) => cells(s.bins[i]))));
  root.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
}

function cells(b) {
  if (!b || !b.n) return ["0", "–", "–", "–"].map((t) => el("td", {}, t));
  return [count(b.n), pctBare(b.conf, 1), pctBare(b.acc, 1), `${pctBare(b.acc_lo, 1)} – ${pctBare(b.acc_hi, 1)}`].map((t) => el("td", {}, t));
}
