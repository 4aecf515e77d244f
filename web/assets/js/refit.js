// Why a refit was published or not: what was compared, on how many rows, and how each candidate did.
import { el, chance, count, fixed, pct, clock } from "./format.js";

/** refitEvidence returns a decision's evidence as a part that opens, or null where it has none. key tells it from others. */
export function refitEvidence(c, key) {
  const e = c.evidence;
  if (!e || !e.candidates || !e.candidates.length) return null;
  const proof = e.log_e_needed ? `Chance that it is no better: at most ${chance(e.log_e)}, allowed ${chance(e.log_e_needed)}` : "Evidence";
  const d = el("details.evidence", { "data-key": key }, el("summary", {}, `${proof}; ${e.candidates.length} tried`),
    el("p", {}, `Fitted on ${count(e.fit_rows)} rows from ${clock(e.fit_from, c.decided_at)} to ${clock(e.fit_to, c.decided_at)}, compared on ${count(e.test_rows)} later ones` +
      ` with what was in force: NLL ${fixed(e.nll_in_force)}, ECE ${pct(e.ece_in_force)}, accuracy ${pct(e.accuracy_in_force)}.`));
  d.append(candidates(e.candidates));
  if (e.fit_digest) d.append(el("p", {}, `The rows of the fit: ${e.fit_digest}.`));
  if (c.build) d.append(el("p", {}, `Decided by plumbline ${c.build}.`));
  return d;
}

function candidates(list) {
  const head = ["method", "NLL difference", "ECE", "chance of no gain", ""];
  return el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...list.map((c) => el("tr", {},
      el("th", { scope: "row" }, c.method), el("td", {}, `${fixed(c.nll_diff, 4)} ± ${fixed(1.96 * c.nll_diff_se, 4)}`), el("td", {}, pct(c.ece)),
      el("td", {}, chance(c.log_e)), el("td", {}, c.outcome || "")))));
}
