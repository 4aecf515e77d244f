// What a window says before its labels come: estimates of accuracy with what each rests on, and how far the shares of the classes have moved.
import { el, count, fixed, pct, pctBare, DASH } from "./format.js";

/** drawUnlabelled fills the part that opens, or hides it where the window says nothing. */
export function drawUnlabelled(root, u) {
  const estimates = (u && u.estimates) || [];
  root.hidden = !estimates.length;
  if (root.hidden) return;
  const body = root.querySelector("div");
  root.querySelector("summary").textContent = `Before labels: ${headline(u.range)}`;
  body.replaceChildren(el("p", {}, basis(u.range)), table(estimates), ...classes(u.classes));
}

// A range that is too wide is no answer, so the page gives none.
function headline(r) {
  if (!r) return "no range of the accuracy yet";
  return r.known ? `accuracy between ${pct(r.lo)} and ${pct(r.hi)}, if what is right for an input has not changed` : "accuracy cannot be known without labels";
}

function basis(r) {
  if (!r) return "A range needs a full labelled reference in which right predictions are surer than wrong ones, and a window whose confidences no new calibrator has changed.";
  const past = r.blocks ? `the last ${count(r.blocks)} blocks of labelled rows add ${pct(r.margin)} at each end` : "no labelled rows have tested it yet";
  if (r.rejected) return `No accuracy explains these confidences if only the share of right predictions has moved, so that assumption is refuted: labels are needed. With the other estimate the truth is mostly from ${pct(r.lo)} to ${pct(r.hi)}; ${past}.`;
  return `The first two estimates contradict each other unless nothing has changed, and the truth is mostly between them: ${pct(r.lo)} to ${pct(r.hi)}; ${past}. `
    + (r.stale ? "The newest of these lay outside both, so what is right for an input has changed." : "If what is right for an input changes, it can be outside: only labels show that.")
    + (r.blocks < 9 ? " Fewer than 9 blocks are no test." : "");
}

function row(kind, ...cells) {
  return el("tr", {}, ...cells.map((c, i) => el(i ? kind : "th", i ? { scope: kind === "th" ? "col" : null } : { scope: kind === "th" ? "col" : "row" }, c)));
}

function table(estimates) {
  return el("table", {},
    el("thead", {}, row("th", "estimate without labels", "accuracy %", "95 % if true", "ECE %", "less truth", "what must be true")),
    el("tbody", {}, ...estimates.map((e) => {
      const failed = e.miss && Math.abs(e.miss.z) > 3;
      const r = row("td", e.method, pctBare(e.accuracy), e.lo === null ? DASH : `${pctBare(e.lo)} – ${pctBare(e.hi)}`, pctBare(e.ece),
        e.miss ? `${fixed(100 * e.miss.difference, 2)} (${fixed(e.miss.z, 1)} s.e.${failed ? ", failed" : ""})` : DASH, e.assumption + (e.rejected ? " — refuted by these rows" : ""));
      if (failed || e.rejected) r.classList.add("bad");
      return r;
    })));
}

// Shares of classes are estimates under the assumption that the table above names.
function classes(c) {
  if (!c) return [];
  const out = [];
  if (c.psi) out.push(el("p", {}, `Predicted classes: PSI ${fixed(c.psi.value, 4)} from the reference (noise alone ${fixed(c.psi.null, 4)}, threshold ${fixed(c.psi.threshold, 4)}).`));
  for (const s of c.shifts || []) {
    out.push(el("p", {}, `${s.method}: shares of classes have moved by ${pct(s.distance)} (noise alone ${pct(s.null)}). `
      + `Test of the assumption: p = ${fixed(s.p, 4)}${s.rejected ? ": it fails, so do these numbers" : ""}; condition ${fixed(s.condition, 1)}`
      + `${s.ridge ? ": classes are confused too much, shares are drawn to those of the reference" : ""}${s.unknown ? `; ${count(s.unknown)} classes are not in the reference` : ""}`
      + `${s.pooled ? `; the ${count(s.pooled)} classes with the fewest labels are taken together` : ""}.`));
    if (s.worst && s.worst.length) {
      out.push(el("table", {},
        el("thead", {}, row("th", "class", "reference %", "now %", "± 1.96 s.e.", "weight")),
        el("tbody", {}, ...s.worst.map((w) => row("td", w.class < 0 ? "the others" : String(w.class), pctBare(w.reference), pctBare(w.share), pctBare(1.96 * w.se), fixed(w.weight, 2))))));
    }
  }
  if (c.why) out.push(el("p", {}, `An estimate is missing: ${c.why}.`));
  return out;
}
