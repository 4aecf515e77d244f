// Why the alarm fired: how seldom that comes by chance, which way the confidence is off, since when, and in which bins.
import { el, count, fixed, pctBare, clock } from "./format.js";

const signed = (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${pctBare(Math.abs(v))}`;
const TESTS = { ece: "all bins together", bin: "some bin", class: "some predicted class", accuracy: "accuracy" };

/** evidence returns an alert's evidence as a part that opens, or null where it has none. key tells it from others. */
export function evidence(a, key) {
  const e = a.evidence;
  if (!e) return null;
  const d = el("details.evidence", { "data-key": key },
    el("summary", {}, `Evidence: by chance ${e.by_chance}; ${e.direction}`),
    el("p", {}, `Since about ${clock(e.since_estimate, a.at)} (an estimate). ${bounds(e)}${against(e)}`));
  if (e.bins && e.bins.length) d.append(bins(e.bins, a.at));
  if (e.classes) d.append(el("p", {}, `Predicted classes: ${e.classes.map((c) => `${c.class} off by ${signed(c.gap)} %`).join(", ")}.`));
  return d;
}

// The tests' own figures: whole models have a bound for each test, slices one for both.
function bounds(e) {
  if (e.reference_accuracy !== undefined) return accuracy(e);
  const off = (e.tests || []).map((t) => TESTS[t] || t).join(" and ");
  const what = `Tolerance: ECE ${e.epsilon_ece}, each bin ${e.epsilon_bin}${e.epsilon_class ? `, each predicted class ${e.epsilon_class}` : ""}${off ? `; exceeded by ${off}` : ""}.`;
  if (e.fdr) return `${what} ${among(e)} Logarithms of the evidence: ECE ${fixed(e.log_e, 1)}, bins ${fixed(e.log_e_bin, 1)}.`;
  return `${what} Logarithms of the evidence: ECE ${fixed(e.log_e, 1)} (alarm from ${fixed(e.log_e_threshold, 1)}), ` +
    `bins ${fixed(e.log_e_bin, 1)} (alarm from ${fixed(e.log_e_threshold_bin, 1)})` +
    `${e.epsilon_class ? `, classes ${fixed(e.log_e_class, 1)} (alarm from ${fixed(e.log_e_threshold_class, 1)})` : ""}.`;
}

function accuracy(e) {
  const what = `Tolerance: ${e.epsilon_accuracy} below the reference, ${pctBare(e.reference_accuracy)} %.`;
  const log = `Logarithm of the evidence: ${fixed(e.log_e, 1)}`;
  return e.fdr ? `${what} ${among(e)} ${log}.` : `${what} ${log} (alarm from ${fixed(e.log_e_threshold, 1)}).`;
}

const among = (e) => `Of the alarms on this signal among ${count(e.slices)} slices at most the share ${e.fdr} is false, on average.`;

const against = (e) => (e.reference ? ` A change against the ${e.reference} reference.` : "");

function bins(list, at) {
  const head = ["bin", "gap %", "log evidence", "rows", "since"];
  return el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...list.map((b) => el("tr", {},
      el("th", { scope: "row" }, `(${fixed(b.lo)}, ${fixed(b.hi)}]`), el("td", {}, signed(b.gap)), el("td", {}, fixed(b.log_e, 1)),
      el("td", {}, count(b.n)), el("td", {}, b.since_estimate ? clock(b.since_estimate, at) : "–")))));
}
