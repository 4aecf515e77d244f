// Alerts and refit decisions as sentences, for the list and for the markers on the time line.
import { el, pct, pctBare, count, fixed, clock, clocks, sentence, sliceName } from "./format.js";
import { adopt, keyOf } from "./inhibit.js";
import { placesOf, where, worse } from "./verdict.js";
import { evidence } from "./evidence.js";
import { refitEvidence } from "./refit.js";

export const GLYPHS = { firing: "▲", pending: "△", resolved: "●", published: "◆", kept: "◇", inhibited: "▹", asked: "□", ready: "■", unfit: "⊠" };
const TITLES = { firing: "Alarm", pending: "Pending", resolved: "Resolved", published: "Calibrator published", kept: "No change" };
const DECIDED = {
  rolled_back: "Calibrator rolled back", pinned: "Calibrator pinned", unpinned: "Calibrator unpinned", canary: "Canary begun",
  canary_ended: "Canary ended", classes: "Number of classes", refused: "Order refused",
};

// Why a calibrator was decided on.
const REASONS = {
  period: "a refit on schedule", alarm: "a refit after an alarm", quick: "a first answer, before a whole refit", rollback: "undone, because it did worse",
  manual: "by a person", canary: "a trial on a share of the rows", label_shift: "the shares of the classes have moved", classes: "another number of classes",
  labels: "labels that are no fair sample",
};

/** One list, newest first: {kind, at, slice, title, text, under: what it inhibits}. slice is null for what concerns all slices. */
export function timeline(alerts, calibrators, heads) {
  const list = [...adopt([...alerts.map(fromAlert), ...calibrators.map(fromCalibrator)]), ...heads.map((e) => ({ ...e, under: [] }))];
  return list.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

function fromAlert(a) {
  const kind = GLYPHS[a.state] ? a.state : "pending";
  const signal = a.signal === "raw" ? "Raw" : "Calibrated";
  const over = `${signal} ECE ${pct(a.ece)}`;
  const against = `the ${pct(a.ece_null)} expected of a calibrated model at ${count(a.rows)} rows`;
  const points = `${pctBare(a.value)} points`;
  const texts = {
    firing: `${over} is ${points} above ${against}; the limit is ${pctBare(a.threshold)}.`,
    pending: `${over} is ${points} above ${against}; the limit is ${pctBare(a.threshold)}. Not yet for long enough to fire.`,
    resolved: `${over} is ${pctBare(Math.abs(a.value))} points ${a.value < 0 ? "below" : "above"} ${against}: within bounds again.`,
  };
  // Only kind excess is about the ECE above its null; of the others the alert itself says what was found.
  const text = a.kind && a.kind !== "excess" && a.message ? sentence(clocks(brief(a), a.at)) : texts[kind];
  return {
    kind, at: a.at, slice: a.slice, title: `${TITLES[kind]}: ${a.rule}`, text, note: a.severity,
    key: keyOf(a), rule: a.rule, inhibitedBy: a.inhibited_by || "", alert: a,
  };
}

function fromCalibrator(c) {
  const e = c.evidence || {};
  const kind = c.published ? "published" : "kept";
  const state = c.state || ((c.outcome || "").startsWith("refused: ") ? "refused" : ""); // builds before had it in words only
  const by = c.by ? `by ${c.by}${c.why ? `: ${c.why}` : ""}` : REASONS[c.reason] || c.reason;
  const error = e.nll_diff_se ? ` ± ${fixed(1.96 * e.nll_diff_se, 4)}` : ""; // builds before had none for a first answer
  const change = `NLL ${fixed(e.nll_in_force)} → ${fixed(e.nll_new)} (${fixed(e.nll_diff, 4)}${error}), ECE ${pct(e.ece_in_force)} → ${pct(e.ece_new)}`;
  const rows = c.reason === "quick" ? `the ${count(e.test_rows)} latest rows, those of the fit among them` : `${count(e.test_rows)} newer rows`;
  const proof = e.test_rows ? ` On ${rows}: ${change}.` : "";
  const t = e.temperature ? `T = ${fixed(e.temperature)}${e.on_bound ? " (on its bound)" : ""}. ` : "";
  return {
    kind, at: c.decided_at, slice: null, key: `calibrator ${c.revision}`,
    title: c.published ? `${DECIDED[state] || TITLES[kind]}: revision ${c.revision}` : DECIDED[state] || `${TITLES[kind]}: revision ${c.revision} stays`,
    text: `${t}${sentence(clocks(plain(proof ? bare(c.outcome || "") : c.outcome || ""), c.decided_at))}${proof}`, note: by, calibrator: c,
  };
}

// The outcome's own words are in every record of a decision; the page says the same in plainer ones.
const plain = (s) => s.replace("the chance of that without a gain is up to", "if it gained nothing, the chance of that is up to");

// The figures of an outcome are in the evidence, with their error.
const bare = (s) => s.replace(/, NLL \S+ → \S+, ECE \S+ → \S+ on (\d+ newer rows|the \d+ since about \S+)$/, "");

// The bins of a message are in the table of the evidence.
const brief = (a) => (a.evidence?.bins?.length ? a.message.replace(/; mostly in .*$/, "") : a.message);

/** The alerts pending or firing at a past time, from the kept state changes (oldest first); null where they do not reach back. */
export function alertsAt(alerts, time, complete) {
  const past = alerts.filter((a) => Date.parse(a.at) <= time);
  if (!complete && !past.length) return null;
  const last = new Map(past.map((a) => [JSON.stringify([a.slice, a.rule]), a]));
  return [...last.values()].filter((a) => a.state !== "resolved");
}

let drawnLog = ""; // what the list says, as text

/** at: the moment that a link asked for; what happened then stands out. */
export function drawLog(root, list, sel, onlySlice, ref, at) {
  const shown = list.filter((e) => !onlySlice || e.slice === null || e.slice === sel.slice);
  // Drawn anew only where it says something new: who reads in it keeps focus and selection.
  const text = JSON.stringify([shown.map((e) => [e.key, e.at, e.title, e.text, e.under.map((u) => [u.key, u.at, u.kind])]), sel, ref.slice(0, 10), at]);
  if (text === drawnLog) return;
  drawnLog = text;
  if (!shown.length) return root.replaceChildren(el("li.empty", {}, "No alarms and no refits yet."));
  const open = new Set([...root.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  const drawn = new Set([...root.querySelectorAll("details")].map((d) => d.dataset.key));
  const held = document.activeElement.closest("#log > li");
  const place = held && reached(held).indexOf(document.activeElement);
  root.replaceChildren(...shown.map((e) =>
    el("li", { "data-key": e.key + e.at, "data-asked": at && Date.parse(at) === Date.parse(e.at) ? "yes" : undefined },
      el("span.glyph", { "data-kind": e.kind, "aria-hidden": "true" }, GLYPHS[e.kind]),
      el("div", {}, el("span.what", { "data-kind": e.kind }, e.title), " ", chip(e.slice, sel)),
      el("p", {}, e.text),
      el("time", { datetime: e.at }, clock(e.at, ref)), e.note ? ` ${e.note}` : "", link(e),
      e.alert ? evidence(e.alert, e.key + e.at) : null, e.calibrator ? refitEvidence(e.calibrator, e.key + e.at + e.title) : null, under(e, ref, sel))));
  for (const d of root.querySelectorAll("details")) {
    const asked = d.closest("li[data-asked]") && !drawn.has(d.dataset.key); // opened once, then it is the reader's
    d.open = open.has(d.dataset.key) || Boolean(asked);
  }
  if (held) {
    const again = [...root.children].find((li) => li.dataset.key === held.dataset.key);
    ((again && reached(again)[place]) || root).focus();
  }
  const asked = root.querySelector("li[data-asked]");
  if (asked && root.dataset.asked !== at) { // once: from then on the reader scrolls
    root.dataset.asked = at;
    root.scrollTop = asked.offsetTop - root.offsetTop;
  }
}

// What of an entry the keyboard reaches.
const reached = (li) => [...li.querySelectorAll("a, summary")];

// The alert's own link; only a path of this page is one. It is relative: a proxy may serve the page below another path.
function link(e) {
  const to = e.alert && e.alert.diagram;
  return to && to.startsWith("/?") ? el("a.diagram", { href: to.slice(1) }, "diagram then") : null;
}

const STATES = { firing: "over its limit", pending: "over its limit (not for long)", resolved: "within bounds again" };

// The slice's name, as the link to its numbers.
function chip(slice, sel) {
  if (!slice) return null;
  return el("a.chip", { href: "?" + new URLSearchParams({ ...sel, slice }) }, sliceName(slice));
}

// One cause may show in hundreds of slices: a line for each rule and state, with the worst of its slices.
function under(e, ref, sel) {
  if (!e.under.length) return null;
  const groups = new Map();
  for (const u of e.under) {
    const k = `${u.kind} ${u.rule}`;
    groups.set(k, [...(groups.get(k) || []), u]);
  }
  return el("ul.under", { "aria-label": "Follows from it" }, ...[...groups.values()].map((g) => line(g, e, ref, sel)));
}

const NAMED = 3; // slices of a line that are named

function line(group, root, ref, sel) {
  const { kind, rule } = group[0];
  const places = placesOf(group.map((u) => u.alert).sort(worse));
  const slices = places.filter((s) => s !== "");
  const links = slices.slice(0, NAMED).flatMap((s, i) => [i ? ", " : "", chip(s, sel)]).filter(Boolean);
  const names = places.length === 1 ? (slices.length ? links : [where(places)]) : [`${where(places)}: `, ...links, slices.length > NAMED ? ` and ${slices.length - NAMED} more` : ""];
  const times = group.map((u) => u.at).sort();
  const at = kind === "resolved" ? times[times.length - 1] : times[0];
  const why = kind === "resolved" ? "" : root.calibrator ? " The calibrator corrects it, so it raises no alarm." : " It is part of this alarm and raises none itself.";
  return el("li", {}, `${rule} is ${STATES[kind]} ${places[0] === "" && places.length === 1 ? "for" : "in"} `, ...names, kind === "resolved" ? ", " : " since ", el("time", { datetime: at }, clock(at, ref)), `.${why}`);
}
