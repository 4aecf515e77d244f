// Why the anytime-valid alarm fired: how strong the evidence is, which way the confidence is off, since when, and in which bins.
import { el, count, fixed, pctBare, clock } from "./format.js";

const signed = (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${pctBare(Math.abs(v))}`;
const TESTS = { ece: "all bins together", bin: "some bin", accuracy: "accuracy" };

/** evidence returns an alert's evidence as a part that opens, or null where it has none. key tells it from others. */
export function evidence(a, key) {
  const e = a.evidence;
  if (!e) return null;
  const d = el("details.evidence", { "data-key": key },
    el("summary", {}, `Evidence: log ${fixed(a.value, 1)}, bound ${fixed(a.threshold, 1)}; ${e.direction}`),
    el("p", {}, `Since about ${clock(e.since_estimate, a.at)} (an estimate). ${bounds(e)}${against(e)}`));
  if (e.bins && e.bins.length) d.append(bins(e.bins, a.at));
  return d;
}

// Whole models have a bound for each test, slices one for both.
function bounds(e) {
  if (e.reference_accuracy !== undefined) return accuracy(e);
  if (e.fdr) return `Log evidence ${fixed(e.log_e, 1)} of the ECE and ${fixed(e.log_e_bin, 1)} of the bins, judged among ${count(e.slices)} slices at a false-discovery rate of ${e.fdr}.`;
  const off = (e.tests || []).map((t) => TESTS[t] || t).join(" and ");
  return `Log evidence of the ECE beyond ${e.epsilon_ece}: ${fixed(e.log_e, 1)} (bound ${fixed(e.log_e_threshold, 1)}), of a bin beyond ${e.epsilon_bin}: ${fixed(e.log_e_bin, 1)} (bound ${fixed(e.log_e_threshold_bin, 1)})${off ? `; refuted for ${off}` : ""}.`;
}

function accuracy(e) {
  const judged = e.fdr ? `judged among ${count(e.slices)} slices at a false-discovery rate of ${e.fdr}` : `bound ${fixed(e.log_e_threshold, 1)}`;
  return `Log evidence of accuracy more than ${e.epsilon_accuracy} below its reference, ${pctBare(e.reference_accuracy)} %: ${fixed(e.log_e, 1)} (${judged}).`;
}

const against = (e) => (e.reference ? ` A change against the ${e.reference} reference.` : "");

function bins(list, at) {
  const head = ["bin", "gap %", "log e", "rows", "since"];
  return el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...list.map((b) => el("tr", {},
      el("th", { scope: "row" }, `(${fixed(b.lo)}, ${fixed(b.hi)}]`), el("td", {}, signed(b.gap)), el("td", {}, fixed(b.log_e, 1)),
      el("td", {}, count(b.n)), el("td", {}, b.since_estimate ? clock(b.since_estimate, at) : "–")))));
}
