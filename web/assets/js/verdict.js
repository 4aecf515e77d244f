// The state of what is shown in one sentence, for a reader who has no time: what is wrong, since when, by how much, and who answers it.
import { el, pct, count, clock, clocks, duration, sentence, sliceName } from "./format.js";
import { keyOf, own, silent } from "./inhibit.js";

const RANK = { firing: 2, pending: 1 };
const WORDS = { raw: "The model", calibrated: "Calibrated confidence" };
const NAMED = 3; // other slices that are named
const OF_ECE = ["ece", "smece", "curve", "log_e"]; // measures that say whether confidence is true
const SEVERITY = { critical: 3, warning: 2, info: 1 };

/** ofAccuracy tells the alarm on a fall of accuracy from those on confidence. */
const ofAccuracy = (a) => a.evidence?.reference_accuracy !== undefined || a.rule === "accuracy-fall";

/** answerOf is the calibrator that stands for an alert, "" where none does. */
export const answerOf = (a) => (/^calibrator [0-9]+$/.test(a.inhibited_by || "") ? a.inhibited_by : "");

/** inhibitor names who stands for an alert as people read it: the rule, and the slice where it is another one. */
export function inhibitor(a) {
  const by = a.inhibited_by || "", prefix = `${a.model}/${a.version}/`;
  if (!by.startsWith(prefix)) return by;
  const rest = by.slice(prefix.length), cut = rest.lastIndexOf("/");
  const slice = rest.slice(0, cut);
  return rest.slice(cut + 1) + (slice === a.slice ? "" : ` of ${sliceName(slice)}`);
}

// How bad an alert is: its severity, then how much of the ECE is sure, as /metrics orders slices.
const sure = (a) => (a.ece_lo ?? a.ece ?? 0) - (a.ece_null ?? 0);
export const worse = (a, b) => (SEVERITY[b.severity] || 0) - (SEVERITY[a.severity] || 0) || sure(b) - sure(a) || (a.slice < b.slice ? -1 : 1);

/** placesOf are the slices of alerts, each once, in their order. */
export const placesOf = (alerts) => [...new Set(alerts.map((a) => a.slice))];

/** where counts places as people say it: "all rows", "3 slices", "all rows and 2 slices". */
export function where(places) {
  const n = places.filter((s) => s !== "").length;
  return [places.includes("") ? sliceName("") : "", n ? `${n} slice${n > 1 ? "s" : ""}` : ""].filter(Boolean).join(" and ");
}

/**
 * alertStates sorts the alerts of one moment: those of the slice that are not inhibited (roots first), the others of
 * it, and those that fire elsewhere, the worst first.
 */
export function alertStates(slice, current) {
  const here = current.filter((a) => a.slice === slice);
  const led = (a) => current.filter((b) => b.inhibited_by === keyOf(a)).length;
  const mine = own(here).sort((a, b) => RANK[b.state] - RANK[a.state] || led(b) - led(a));
  const held = here.filter((a) => a.inhibited_by).sort((a, b) => Boolean(answerOf(b)) - Boolean(answerOf(a)));
  const elsewhere = own(current).filter((a) => a.state === "firing" && a.slice !== slice).sort(worse);
  return { mine, held, elsewhere };
}

/** movedAway is the verdict on a model that another process has. */
export const movedAway = (snap) => ({ state: "moved", head: "Another process serves this model now",
  text: `This process shows it as of ${clock(snap.at)} UTC and knows of no alarm since; the page of the other process goes on.`, places: [] });

/**
 * verdict returns {state, head, text, places}: places are the slices to be named after the text, the worst first, where
 * worst tells that the first of them belongs to the head. current: alerts pending and firing then, or null where that is
 * not known; heads: all there are.
 */
export function verdict(snap, current, heads) {
  if (!current) return { state: "", head: "Alarms of that time are not kept", text: error("raw", snap.raw), places: [] };
  const { mine, held, elsewhere } = alertStates(snap.slice, current);
  const v = mine.length ? alerting(mine[0], snap) : held.length ? heldBack(held, snap) : calm(snap);
  const ready = heads.filter((h) => h.model === snap.model && h.version === snap.version && h.state === "ready").pop();
  if (ready && v.state !== "ok") v.text += ` Head ${ready.shadow_version} is ready to be served.`;
  v.places = placesOf(elsewhere);
  if (!v.places.length || v.state === "firing") return v;
  // An alarm is the news, wherever it is; what holds here comes second.
  return { ...v, state: "elsewhere", head: `▲ Alarm in ${where(v.places)}`, worst: true, text: `${snap.slice || "All rows"}: ${v.here || v.head.replace(/^\S /, "")}. ${v.text}` };
}

function alerting(a, snap) {
  const since = `since ${a.kind === "anytime" ? "about " : ""}${clock(a.since, snap.at)}`;
  const text = ofAccuracy(a) ? fall : a.measure === "cwece" ? classes : told(a) ? message : wrong;
  return { state: a.state, head: `${a.state === "firing" ? "▲" : "△"} ${a.rule} is ${a.state}`, text: text(a, snap, since) };
}

// told tells whether only an alert's own words say what is wrong: labels that stop are no fault of the model's confidence.
const told = (a) => Boolean(a.message && a.measure) && (a.kind === "estimate" || !OF_ECE.includes(a.measure));

function message(a, snap, since) {
  return `${sentence(clocks(a.message, snap.at))} ${sentence(since)} ${error("raw", snap.raw)}`;
}

function fall(a, snap, since) {
  const from = a.evidence?.reference_accuracy;
  const now = hasFigures(a) ? `${pct(a.accuracy, 1)} ${inRows(a, snap)}` : pct(snap.raw.accuracy, 1);
  return `Accuracy is down ${since}: ${now}${from ? `, it was ${pct(from, 1)}` : ""}. ${error("raw", snap.raw)}`;
}

function classes(a, snap, since) {
  const signal = a.signal === "calibrated" ? "calibrated" : "raw";
  return `The probabilities of single classes are off ${since}: class-wise ECE ${pct(snap[signal].cwece)}. ${error(signal, snap[signal])}`;
}

function wrong(a, snap, since) {
  const signal = a.signal === "calibrated" ? "calibrated" : "raw";
  const m = snap[signal];
  const gap = m.mean_confidence - m.accuracy;
  const way = a.evidence?.direction || (gap > 0 ? "overconfident" : "underconfident");
  const is = /^(over|under)confident$/.test(way) ? `is ${way}` : "is wrong, by bins in both directions,";
  if (!hasFigures(a)) return `${WORDS[signal]} ${is} ${since}: ${pct(m.mean_confidence, 1)} sure, ${pct(m.accuracy, 1)} right. ${error(signal, m)}`;
  // The window may reach back to before the error, or be over it: its figures are not those since the start.
  const window = m.ece !== null && m.ece !== undefined ? ` This window: ECE ${pct(m.ece, 1)}, if calibrated ${pct(m.ece_null, 1)}.` : "";
  return `${WORDS[signal]} ${is} ${since}: ${pct(a.mean_confidence, 1)} sure, ${pct(a.accuracy, 1)} right ${inRows(a, snap)}.${window}`;
}

// hasFigures tells whether an alert says what it found in its own rows; those of older builds do not.
const hasFigures = (a) => a.accuracy !== undefined && a.mean_confidence !== undefined;

const inRows = (a, snap) => `in the ${count(a.rows)} rows until ${clock(a.at, snap.at)}`;

function heldBack(held, snap) {
  const a = held[0], by = answerOf(a);
  const low = held.find(ofAccuracy);
  if (silent(a)) return { state: "inhibited", head: `▹ ${a.rule}: nothing to judge`, text: `${sentence(clocks(a.inhibited_by, snap.at))} The alarm was ${a.state} then, and goes on when predictions come. ${error("raw", snap.raw)}` };
  if (!by) return { state: "inhibited", head: `▹ ${a.rule} is over its limit, as part of another alarm`, text: `It follows from ${inhibitor(a)}. ${error("raw", snap.raw)}` };
  const text = `Raw ECE ${pct(snap.raw.ece, 1)}, calibrated ${pct(snap.calibrated.ece, 1)}; a calibrated model would show ${pct(snap.calibrated.ece_null, 1)}.`;
  return { state: "answered", head: `◆ ${a.rule} is answered by ${by}`, text: text + (low ? ` Accuracy stays down: ${pct(snap.raw.accuracy, 1)}.` : "") };
}

function calm(snap) {
  if (snap.raw.ece === null || snap.raw.ece === undefined) return { state: "", head: "No labels in this window", here: "no labels in this window", text: "Nothing can be said about calibration yet." };
  const few = snap.raw.ece_null >= COARSE ? " So few rows show no smaller error." : "";
  return { state: "ok", head: "● No alarm", here: "no alarm", text: error("raw", snap.raw) + few };
}

const COARSE = 0.05; // what the ECE of a calibrated model is by chance, from which on a reader should not rely on no alarm

const LABELS = { raw: "ECE", calibrated: "Calibrated ECE" };

function error(signal, m) {
  if (m.ece === null || m.ece === undefined) return "";
  return `${LABELS[signal]} ${pct(m.ece, 1)} of ${count(m.n)} rows; a calibrated model would show ${pct(m.ece_null, 1)}.`;
}

let drawn = ""; // what the headline says, as text

/** drawVerdict writes it; to(slice) is the address of a slice; past: a moment is pinned. What a screen reader says changes with the state only, not with every number. */
export function drawVerdict(root, news, v, to, past) {
  root.style.minHeight = past ? `${root.offsetHeight}px` : ""; // the chart below must not move while a moment of it is chosen
  const links = v.places.map((s) => el("a", { href: to(s) }, sliceName(s)));
  const said = JSON.stringify([v, links.map((a) => a.href)]);
  const head = !v.worst ? [v.head] : links.length > 1 ? [v.head, ", worst: ", links.shift()] : ["▲ Alarm in ", links.shift()];
  const others = links.slice(0, NAMED).flatMap((a, i) => [i ? ", " : v.worst ? " Also: " : " Alarm also in: ", a]);
  if (others.length) others.push(links.length > NAMED ? ` and ${links.length - NAMED} more.` : ".");
  root.dataset.state = v.state;
  if (drawn !== said) { // a link that has the focus keeps it
    drawn = said;
    root.replaceChildren(el("strong", {}, ...head), ` ${v.text}`, ...others);
  }
  const spoken = v.worst ? `${v.head}, worst: ${sliceName(v.places[0])}` : v.head;
  if (news.textContent !== spoken) news.textContent = spoken;
}

/**
 * pulse is what the connection's pill says: whether news could come, and since when none has. seconds: since the latest;
 * process: what the process says of itself: since when no broker answers it, and for which partition it waits; moved: another process has the model;
 * late: what behind says, where it has for a while.
 */
export function pulse(state, seconds, process, moved, late) {
  const kafka = process?.kafka, waiting = process?.waiting_for;
  if (state === "live" && kafka) return { state: "lost", text: `Kafka does not answer since ${clock(kafka.silent_since, new Date().toISOString())} UTC`, title: kafka.error };
  if (state === "live" && moved) return { state: "quiet", text: "served by another process" };
  if (state === "live" && waiting?.length) return { state: "quiet", text: waiting[0].text, title: waiting.map((w) => w.text).join(", ") };
  if (state === "live" && late) return { state: "quiet", text: `catching up: ${duration(late)} behind`, title: "Rows wait in Kafka: what is shown is of before them." };
  if (state === "lost") return { state, text: "connection lost, retrying" };
  if (state !== "live") return { state, text: "connecting" };
  return seconds < QUIET_S ? { state, text: "live" } : { state: "quiet", text: `no news for ${duration(Math.floor(seconds / 60) * 60)}` };
}

const QUIET_S = 120;

/** behind is how old the records are that a process reads, in seconds; 0 where few are left to read, or they are new. */
export function behind(process) {
  const lags = Object.values(process?.lag || {}).flatMap((inputs) => Object.values(inputs)).filter((l) => l.offsets >= MANY);
  const most = Math.max(0, ...lags.map((l) => l.seconds));
  return most >= QUIET_S ? most : 0;
}

const MANY = 1000;
