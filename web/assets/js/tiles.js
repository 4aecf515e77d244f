// The row of key numbers. No number stands without its uncertainty and its count.
import { el, svg, pct, pctBare, count, fixed, duration, clock, clocks, sliceName, DASH } from "./format.js";
import { answerOf, inhibitor, alertStates, placesOf, where } from "./verdict.js";
import { silent } from "./inhibit.js";

const METHODS = { temperature: "Temperature" };
const FITS = 10; // letters of a name in a number's size

const NLL = "Negative log-likelihood: the mean of −ln p, p the probability that was given to what came true. Lower is better.";
const CLASSWISE = "The mean over all classes of the error of a class's own probability, where ECE is of the most probable class only. Noise alone makes it more than 0.";

/**
 * snap: the snapshot shown; current: the alerts pending and firing at its moment, or null where that is not known, which
 * unknown says in words; timed: the name of a window of time, "" where there is none.
 */
export function drawTiles(root, snap, current, unknown, timed) {
  const scale = Math.max(0.02, ...[snap.raw, snap.calibrated].flatMap((m) => [m.ece_hi, m.ece, m.ece_null_hi].filter((v) => v !== null && v !== undefined))) * 1.05;
  root.replaceChildren(
    current ? alarm(snap, current) : tile("Alarm", DASH, unknown),
    ece("ECE raw", "raw", snap.raw, scale),
    ece("ECE calibrated", "cal", snap.calibrated, scale),
    ...(snap.served ? [ece("ECE served", "served", snap.served, scale)] : []),
    titled(CLASSWISE, tile("Class-wise ECE", pct(snap.raw.cwece), `calibrated ${pct(snap.calibrated.cwece)}`, `of ${count(snap.raw.n)} rows`)),
    accuracy(snap),
    titled(NLL, tile("NLL", fixed(snap.raw.nll), `calibrated ${fixed(snap.calibrated.nll)}`, `Brier ${fixed(snap.raw.brier)}`)),
    tile("Labelled rows", count(snap.labelled), snap.window.kind === "rows" ? extent(snap.window) : `of ${count(snap.predictions)} predictions`, snap.late ? `${count(snap.late)} late` : "none late", snap.pooled_values ? `of ${snap.pooled_values_more ? "at least " : ""}${count(snap.pooled_values)} pooled values` : "", ...missing(snap)),
    coverage(snap, timed),
    tile("Label lag p50", duration(snap.label_lag.p50_s), `p90 ${duration(snap.label_lag.p90_s)}`, `p99 ${duration(snap.label_lag.p99_s)}`),
    calibrator(snap),
  );
}

// A window of the last rows has only those whose label has come: it cannot say how many have none.
function coverage(snap, timed) {
  if (snap.window.kind === "rows") {
    return titled("The share of predictions that have their label. The last rows are counted when their label comes, so it is known for windows of time only.",
      tile("Label coverage", DASH, "this window holds", "labelled rows only", timed ? `see window ${timed}` : ""));
  }
  const none = snap.coverage === null || snap.coverage === undefined;
  return tile("Label coverage", pct(snap.coverage, 1), none ? "no predictions yet" : "", `window ${snap.window.name}`, extent(snap.window));
}

// Rows that a lost state had are in no number: who reads one must know.
function missing(snap) {
  const l = snap.lost;
  if (!l) return [];
  const until = l.until ? `to ${clock(l.until, snap.at)}` : "";
  return [el("span.bad", { title: `The state of ${l.tasks.join(", ")} was lost and given up: rows that it had are not counted.` },
    `⚠ rows may be missing ${l.since ? `from ${clock(l.since, snap.at)} ` : ""}${until}`.trim())];
}

// A window of time fills up as its labels come; a window of rows reaches back as far as it needs.
function extent(w) {
  if (w.kind === "time") return w.final ? "final" : "still filling";
  return `since ${clock(w.start, w.end)}`;
}

function tile(name, big, ...subs) {
  return el("div.tile", {}, el("dt", {}, name), el("dd.big", {}, big), ...subs.filter(Boolean).map((s) => el("dd.sub", {}, s)));
}

function titled(title, t) {
  t.title = title;
  return t;
}

function alarm(snap, current) {
  const { mine, held, elsewhere: others } = alertStates(snap.slice, current);
  const follows = current.filter((a) => a.inhibited_by).length;
  const places = placesOf(others);
  let t;
  if (places.length && !(mine.length && mine[0].state === "firing")) {
    const here = mine.length ? "pending" : held.length ? `${held.length} follow${held.length > 1 ? "" : "s"} from another` : "none";
    t = tile("Alarm", `▲ ${where(places)}`, `${places.length > 1 ? "worst: " : ""}${sliceName(places[0])}`, `${sliceName(snap.slice)}: ${here}`);
    t.dataset.state = "elsewhere";
    if (places.length > 1 && places.includes("")) t.querySelector(".big").classList.add("long");
  } else if (mine.length) {
    const a = mine[0];
    t = tile("Alarm", a.state === "firing" ? "▲ firing" : "△ pending", a.rule, `since ${a.kind === "anytime" ? "about " : ""}${clock(a.since, snap.at)}`,
      [a.severity, follows ? `${follows} follow${follows > 1 ? "" : "s"}` : ""].filter(Boolean).join(", "), places.length ? `▲ also ${where(places)}` : "");
    t.dataset.state = a.state;
    if (places.length) t.lastElementChild.classList.add("bad");
  } else {
    const a = held[0], by = a && answerOf(a);
    t = tile("Alarm", !a ? "none" : by ? "answered" : "none of its own", !a ? `for ${sliceName(snap.slice)}` : a.rule,
      by ? `by ${by}` : !a ? "" : silent(a) ? clocks(a.inhibited_by, snap.at) : `follows ${inhibitor(a)}`, held.length > 1 ? `${held.length - 1} more follow` : "");
    t.dataset.state = by ? "answered" : a ? "" : "ok";
    if (a && !by) t.querySelector(".big").classList.add("long");
  }
  for (const sub of t.querySelectorAll(".sub")) sub.title = sub.textContent; // names may be longer than the tile
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
    el("dd.sub", {}, `if calibrated ${pctBare(m.ece_null)}`),
    el("dd.sub", {}, `of ${count(m.n)} rows`),
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

// Like beside like: a calibrator that changes which class is first changes the accuracy too, not only the confidence.
function accuracy(snap) {
  const { raw, calibrated: cal } = snap;
  const known = snap.calibrator && cal.accuracy !== null && cal.accuracy !== undefined;
  const t = tile("Accuracy", pct(raw.accuracy), accuracyError(raw), `confidence ${pct(raw.mean_confidence)}`,
    known ? `calibrated ${pct(cal.accuracy)}` : "", known ? `its confidence ${pct(cal.mean_confidence)}` : "");
  t.classList.add("four");
  return titled(known ? `Raw: ${pct(raw.accuracy)} right, ${pct(raw.mean_confidence)} sure on average. Calibrated: ${pct(cal.accuracy)} right, ${pct(cal.mean_confidence)} sure.`
    : `${pct(raw.accuracy)} right, ${pct(raw.mean_confidence)} sure on average.`, t);
}

function calibrator(snap) {
  const c = snap.calibrator;
  if (!c) return titled("No calibrator is in force: probabilities are the model's own.", tile("Calibrator", "none", "no correction"));
  const name = METHODS[c.method] || c.method.replaceAll("_", " ");
  const t = tile("Calibrator", c.temperature ? `T ${fixed(c.temperature)}` : name, `${c.temperature ? `${name}, ` : ""}revision ${c.version}`, `since ${clock(c.effective_from, snap.at)}`);
  if (!c.temperature && name.length > FITS) t.querySelector(".big").classList.add("long");
  if (c.calibrated && c.calibrated.n) t.append(el("dd.sub", {}, `NLL ${fixed(c.raw.nll)} → ${fixed(c.calibrated.nll)}`));
  return t;
}
