// The row of key numbers. No number stands without its uncertainty and its count.
import { el, svg, pct, pctBare, count, fixed, duration, clock, sliceName, DASH } from "./format.js";
import { keyOf, own } from "./inhibit.js";

const METHODS = { temperature: "Temperature" };

/** snap: the snapshot shown; current: the alerts pending and firing at its moment, or null where that is not known. */
export function drawTiles(root, snap, current) {
  const scale = Math.max(0.02, ...[snap.raw, snap.calibrated].flatMap((m) => [m.ece_hi, m.ece, m.ece_null_hi].filter((v) => v !== null && v !== undefined))) * 1.05;
  root.replaceChildren(
    alarm(snap, current),
    ece("ECE raw", "raw", snap.raw, scale),
    ece("ECE calibrated", "cal", snap.calibrated, scale),
    ...(snap.served ? [ece("ECE served", "served", snap.served, scale)] : []),
    tile("Accuracy", pct(snap.raw.accuracy), `mean confidence ${pct(snap.raw.mean_confidence)}`, accuracyError(snap.raw)),
    tile("NLL", fixed(snap.raw.nll), `calibrated ${fixed(snap.calibrated.nll)}`, `Brier ${fixed(snap.raw.brier)}`),
    tile("Labelled rows", count(snap.labelled), snap.window.kind === "rows" ? "latest whole panes" : `of ${count(snap.predictions)} predictions`, snap.late ? `${count(snap.late)} late` : "none late", snap.pooled_values ? `of ${snap.pooled_values_more ? "at least " : ""}${count(snap.pooled_values)} pooled values` : ""),
    tile("Label coverage", pct(snap.coverage, 1), `window ${snap.window.name}`, extent(snap.window)),
    tile("Label lag p50", duration(snap.label_lag.p50_s), `p90 ${duration(snap.label_lag.p90_s)}`, `p99 ${duration(snap.label_lag.p99_s)}`),
    calibrator(snap),
  );
}

// A window of time fills up as its labels come; a window of rows reaches back as far as it needs.
function extent(w) {
  if (w.kind === "time") return w.final ? "final" : "still filling";
  return `since ${clock(w.start, w.end)}`;
}

function tile(name, big, ...subs) {
  return el("div.tile", {}, el("dt", {}, name), el("dd.big", {}, big), ...subs.filter(Boolean).map((s) => el("dd.sub", {}, s)));
}

function alarm(snap, current) {
  if (!current) return tile("Alarm", DASH, "not kept that far back");
  const rank = { firing: 2, pending: 1 };
  const here = current.filter((a) => a.slice === snap.slice);
  // The root that others follow comes first.
  const led = (a) => current.filter((b) => b.inhibited_by === keyOf(a)).length;
  const mine = own(here).sort((a, b) => rank[b.state] - rank[a.state] || led(b) - led(a));
  const firing = own(current).filter((a) => a.state === "firing");
  const follows = current.length - own(current).length;
  const others = firing.filter((a) => a.slice !== snap.slice);
  const elsewhere = others.length ? `▲ ${others.length} firing in other slices` : "";
  let t;
  if (mine.length) {
    const a = mine[0];
    t = tile("Alarm", a.state === "firing" ? "▲ firing" : "△ pending", a.rule + (a.severity ? `, ${a.severity}` : ""),
      `since ${a.kind === "anytime" ? "about " : ""}${clock(a.since, snap.at)}`, follows ? `${follows} inhibited` : "", elsewhere);
    t.dataset.state = a.state;
  } else {
    const by = here.length ? `follows ${here[0].inhibited_by}` : "";
    t = tile("Alarm", here.length ? "inhibited" : "none", by || `for ${sliceName(snap.slice)}`, elsewhere);
    t.dataset.state = others.length || here.length ? "" : "ok";
  }
  if (elsewhere) t.lastElementChild.classList.add("bad");
  return t;
}

function ece(name, key, m, scale) {
  const t = tile(name, pct(m.ece));
  t.querySelector("dt").prepend(el(`i.key.${key}`));
  if (m.ece === null || m.ece === undefined) {
    t.append(el("dd.sub", {}, "no labelled rows yet"));
    return t;
  }
  t.append(
    el("dd", { "aria-hidden": "true" }, bar(key, m, scale)),
    el("dd.sub", {}, `95 % ${pctBare(m.ece_lo)} – ${pctBare(m.ece_hi)}`),
    el("dd.sub", {}, `null ${pctBare(m.ece_null)}, n ${count(m.n)}`),
  );
  t.title = m.ece_null_hi !== null && m.ece > m.ece_null_hi
    ? `Above ${pct(m.ece_null_hi)}, the 95 % quantile of what a perfectly calibrated model would show.`
    : "Within what a perfectly calibrated model would show.";
  return t;
}

// The interval and the point against the null's range (grey), on one scale for all ECE tiles.
function bar(key, m, scale) {
  const x = (v) => Math.min(100, (100 * (v || 0)) / scale);
  const colour = key === "served" ? "var(--soft)" : `var(--${key})`;
  const g = svg("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none" });
  g.append(svg("rect", { x: 0, y: 4, width: x(m.ece_null_hi), height: 4, fill: "var(--soft)", "fill-opacity": 0.35 }));
  if (m.ece_lo !== null) g.append(svg("rect", { x: x(m.ece_lo), y: 5, width: Math.max(0.5, x(m.ece_hi) - x(m.ece_lo)), height: 2, fill: colour }));
  g.append(svg("rect", { x: x(m.ece) - 0.8, y: 1, width: 1.6, height: 10, fill: colour }));
  return g;
}

// The binomial standard error, doubled: about 95 %.
function accuracyError(m) {
  if (m.accuracy === null || m.accuracy === undefined || !m.n) return "";
  return `± ${pctBare(1.96 * Math.sqrt((m.accuracy * (1 - m.accuracy)) / m.n))} (95 %)`;
}

function calibrator(snap) {
  const c = snap.calibrator;
  if (!c) return tile("Calibrator", "none", "identity in force");
  const name = METHODS[c.method] || c.method;
  const t = tile("Calibrator", c.temperature ? `T ${fixed(c.temperature)}` : name, `${name}, revision ${c.version}`, `since ${clock(c.effective_from, snap.at)}`);
  if (c.calibrated && c.calibrated.n) t.append(el("dd.sub", {}, `NLL ${fixed(c.raw.nll)} → ${fixed(c.calibrated.nll)}`));
  return t;
}
