// The page: loads the state by plain fetches, paints it, then follows the event stream from where the fetches stood.
import { get, Stream } from "./api.js";
import { address, choose, drawOthers, fillSelectors, isMoved, markFiring, missing, readURL, writeURL } from "./select.js";
import { drawDiagram, drawBinTable } from "./reliability.js";
import { drawTiles } from "./tiles.js";
import { drawUnlabelled } from "./unlabelled.js";
import { timeline, drawLog, alertsAt } from "./events.js";
import { Timeline, moment } from "./timeline.js";
import { drawStatus, drawTrouble } from "./status.js";
import { own } from "./inhibit.js";
import { behind, drawVerdict, movedAway, pulse, verdict } from "./verdict.js";
import { headEvents } from "./headevents.js";
import { Past, union } from "./past.js";
import { clock, count, el } from "./format.js";

const $ = (id) => document.getElementById(id);
const KEEP = 360; // snapshots on the time line, as many as the server keeps
const ALERTS = 256; // state changes asked for
const PAINT_MS = 200;

const state = {
  models: [], sel: null, snaps: [], latest: null, pinned: null, // pinned: {x, snap, time}
  at: "", asked: "", gone: "", // the moment to be shown; that of the link; what the link asks for and is not there
  linked: false, // a link has opened the page
  alerts: [], current: [], calibrators: [], heads: [], show: { raw: true, cal: true }, generation: 0,
  connection: "connecting", newsAt: performance.now(), behindAt: Infinity, // by this computer's clock: event time need not be that of now
};
let painting = 0;
const past = new Past();
const ALERT = ["at", "slice", "rule", "state"], DECISION = ["decided_at", "revision", "reason", "published", "outcome"];

const chart = new Timeline(
  { ece: $("ecechart"), acc: $("accchart"), eceRead: $("eceread"), eceAt: $("eceat"), accRead: $("accread") },
  $("tip"), (i) => pin(i),
);

const stream = new Stream({
  state: (s) => connection(s),
  snapshot: (s) => { state.newsAt = performance.now(); if (state.sel && matches(s)) { merge(s); paintSoon(); } else if (!state.sel) load(); },
  alert: (a) => { if (known(state.alerts, a, ALERT)) return; state.alerts.push(a); follow(a); paintSoon(); },
  calibrator: (c) => { if (known(state.calibrators, c, DECISION)) return; state.calibrators.push(c); paintSoon(); },
  status: (v) => { takeStatus(v); refreshModels(); },
  reset: () => load(),
});

function connection(s) {
  state.connection = s;
  const late = performance.now() - state.behindAt > BEHIND_MS ? behind(state.process) : 0;
  const p = pulse(s, state.latest ? (performance.now() - state.newsAt) / 1000 : 0, state.process, moved(), late);
  if ($("conn").textContent === p.text) return;
  $("conn").dataset.state = p.state;
  $("conn").textContent = p.text;
  $("conn").title = p.title || "";
}
setInterval(() => connection(state.connection), 1000);

// BEHIND_MS is how long a process must have been behind: one that keeps up may be for a moment.
const BEHIND_MS = 10_000;

// moved tells whether another process has the model that is shown.
const moved = () => isMoved(state.models, state.sel);

const matches = (s) => s.model === state.sel.model && s.version === state.sel.version && s.slice === state.sel.slice && s.window.name === state.sel.window;

// merge puts s into the series: a new moment, or a revision of a known one.
function merge(s) {
  const x = moment(s);
  let i = state.snaps.length;
  while (i > 0 && moment(state.snaps[i - 1]) >= x) i--;
  const known = i < state.snaps.length && moment(state.snaps[i]) === x;
  state.snaps.splice(i, known ? 1 : 0, s);
  state.snaps = state.snaps.slice(-KEEP);
  if (state.snaps[state.snaps.length - 1] === s) state.latest = s;
  if (state.pinned && state.pinned.x === x) state.pinned.snap = s;
}

// known tells whether a record is there already: an event may be of before the fetches that followed its position.
const known = (list, r, fields) => list.some((o) => fields.every((f) => o[f] === r[f]));

// follow keeps the list of current alerts, as the server does.
function follow(a) {
  state.current = state.current.filter((b) => !(b.slice === a.slice && b.rule === a.rule && b.version === a.version));
  if (a.state !== "resolved") state.current.push(a);
}

async function load() {
  const generation = ++state.generation;
  try {
    const want = state.sel || readURL();
    const models = await getModels(want.model);
    if (generation !== state.generation) return;
    const linked = !state.sel;
    state.sel = choose(state.models, want);
    if (!state.sel) {
      waiting();
      get("status").then((v) => takeStatus(v.data), () => {});
      return stream.open({}, models.id);
    }
    if (linked) follows(want);
    await loadSelection(generation, models.id);
  } catch (err) {
    failed(err, generation);
  }
}

// follows takes the moment that a link asks for, where what it was of is still there.
function follows(want) {
  state.linked = Boolean(want.model);
  state.gone = missing(want, state.sel);
  state.at = state.asked = state.gone ? "" : want.at;
}

async function loadSelection(generation, position) {
  const { model, version, slice, window } = state.sel;
  const [snaps, latest, alerts, calibrators, status, decided] = await Promise.all([
    get("snapshots", { model, version, slice, window, limit: KEEP, detail: "none" }),
    get("snapshots/latest", { model, version, slice, window }),
    get("alerts", { model, version, limit: ALERTS }),
    get("calibrators", { model, version, limit: 128 }),
    get("status"),
    past.load(state.sel),
  ]);
  if (generation !== state.generation) return;
  const first = !state.latest;
  state.snaps = snaps.data.snapshots;
  merge(latest.data);
  if (first) state.newsAt = performance.now();
  state.current = alerts.data.current;
  state.alerts = union(decided.alerts, alerts.data.alerts, ALERT, "at");
  state.calibrators = union(decided.calibrators, calibrators.data.calibrators, DECISION, "decided_at");
  state.pinned = null;
  fillSelectors($("selectors"), state.models, state.sel);
  drawOthers($("others"), state.models, state.sel);
  writeURL(state.sel, state.at);
  notice("", "");
  if (state.gone) notice("The link names what is gone", `The link asks for ${state.gone}. The page shows what is there.`);
  state.gone = "";
  $("content").hidden = false;
  takeStatus(status.data);
  if (state.at) await pinAt(generation);
  if (generation !== state.generation) return;
  paint();
  if (first) arrive();
  stream.open(state.sel, position);
}

// arrive puts the focus on what a link has opened: a page that was just loaded has it nowhere.
function arrive() {
  if (!state.linked || document.activeElement !== document.body) return;
  if (performance.getEntriesByType("navigation")[0]?.type !== "navigate") return; // a reload stays where it was
  $(state.pinned ? "h-rel" : "verdict").focus();
}

// older brings what was decided before.
async function older() {
  const generation = state.generation;
  const page = await past.older();
  if (generation !== state.generation) return;
  state.alerts = union(page.alerts, state.alerts, ALERT, "at");
  state.calibrators = union(page.calibrators, state.calibrators, DECISION, "decided_at");
  const held = document.activeElement === $("older");
  paint();
  if (held && $("older").hidden) $("log").focus();
}

// pinAt shows the window of state.at: the newest that ends then or before. The time line need not reach back so far.
async function pinAt(generation) {
  const asked = state.at;
  try {
    const { data } = await get("snapshots/latest", { ...state.sel, at: asked });
    if (generation !== state.generation) return;
    state.pinned = { x: moment(data), snap: data, time: Date.parse(asked) };
  } catch (err) {
    if (generation !== state.generation) return;
    state.at = "";
    writeURL(state.sel, "");
    notice("That moment is not kept", `No window ends at ${asked} or before: ${err.message}. The page shows the newest.`);
  }
}

// getModels asks for the versions that can be chosen: where they are many, those with most labels or a searched name,
// and those of the model that is shown. A version without a snapshot has nothing to show yet.
async function getModels(model) {
  const search = $("selectors").elements.search.value;
  const answer = await get("models", { ...(search && { search }), ...(model && { model }) });
  const { models, shown, matching, total } = answer.data;
  state.models = models.map((m) => ({ ...m, versions: m.versions.filter((v) => v.slices.length) })).filter((m) => m.versions.length);
  const n = (x) => x.toLocaleString("en");
  $("search").hidden = shown === total && !search;
  $("search").firstElementChild.textContent = shown < matching ? `First ${n(shown)} of ${n(matching)} versions` : `${n(matching)} of ${n(total)} versions`;
  return answer;
}

async function refreshModels() {
  const was = moved();
  try {
    await getModels(state.sel && state.sel.model);
    if (moved() !== was) return load(); // what is current has changed
    if (!state.sel) return;
    fillSelectors($("selectors"), state.models, state.sel);
    drawOthers($("others"), state.models, state.sel);
  } catch { /* the connection state tells */ }
}

function waiting() {
  fillSelectors($("selectors"), [], null);
  $("content").hidden = true;
  notice("Waiting for the first labels", "No window has a labelled row yet. Numbers appear once predictions have met their labels and the first pane has closed; the process status below shows what has arrived so far. Where several processes run, each shows the models of its own tasks only. ", "", el("span.num", { id: "arrived" }));
  $("statusbox").open = true;
}

// takeStatus shows the status of the process.
function takeStatus(status) {
  drawStatus($("status"), status);
  drawTrouble($("trouble"), status.process);
  state.process = status.process;
  state.behindAt = behind(status.process) ? Math.min(state.behindAt, performance.now()) : Infinity;
  connection(state.connection);
  if (!state.sel) arrived(status);
}

// arrived says how far the rows have come, as long as there is nothing to show of them.
function arrived(status) {
  const c = status.process?.counts;
  if (!c || !$("arrived")) return;
  const rows = c.rows || {};
  const none = !rows.logits && !rows.labels;
  const silent = status.process.waiting_for || [];
  const waits = [silent.map((w) => w.text).join(", "), ...new Set(silent.map((w) => w.mend).filter(Boolean))].join("; ");
  const far = `So far: ${count(rows.logits || 0)} predictions, ${count(rows.labels || 0)} late labels, ${count(c.joined || 0)} of them joined.`;
  $("arrived").textContent = none ? "So far no row has arrived, on either topic." : waits ? `${far} Now ${waits}.` : far;
}

function failed(err, generation) {
  if (generation !== state.generation) return;
  connection("lost");
  notice("Cannot load", `${err.message}. Trying again every few seconds.`, "error");
  setTimeout(() => generation === state.generation && load(), 5000);
}

function notice(title, text, kind = "", ...more) {
  $("notice").hidden = !title;
  $("notice").dataset.kind = kind;
  $("notice").replaceChildren(el("strong", {}, title), text, ...more);
}

function paintSoon() {
  if (!painting) painting = setTimeout(() => { painting = 0; paint(); }, PAINT_MS);
}

function paint() {
  if (!state.latest || !state.snaps.length) return;
  const snap = state.pinned ? state.pinned.snap : state.latest;
  const events = timeline(state.alerts, state.calibrators, headEvents(state.heads, state.sel));
  const gone = moved() && !state.pinned;
  const current = state.pinned ? alertsAt(state.alerts, state.pinned.time, state.alerts.length < ALERTS) : gone ? null : state.current;
  const to = (slice) => address({ ...state.sel, slice }, state.pinned ? state.at : "");
  drawVerdict($("verdict"), $("verdictnews"), gone ? movedAway(snap) : verdict(snap, current, state.pinned ? [] : state.heads), to, Boolean(state.pinned));
  drawTiles($("tiles"), snap, current, gone ? "in another process" : "not kept that far back", timedWindow());
  markFiring($("selectors"), own(state.current).filter((a) => a.state === "firing").map((a) => a.slice));
  const signals = [
    { key: "raw", name: "raw", bins: snap.raw.bins },
    { key: "cal", name: "calibrated", bins: snap.calibrated.bins },
  ].filter((s) => state.show[s.key]);
  drawDiagram($("diagram"), signals, (text) => { $("binread").textContent = text; });
  drawBinTable($("bintable"), signals);
  drawUnlabelled($("unlabelled"), snap.unlabelled);
  const index = state.pinned ? state.snaps.findIndex((s) => moment(s) === state.pinned.x) : null;
  const marks = events.filter((e) => (e.slice === null || e.slice === state.sel.slice) && e.kind !== "pending");
  chart.update(state.snaps, marks, state.show, index === -1 ? null : index);
  drawLog($("log"), events, state.sel, $("onlyslice").checked, state.latest.at, state.asked);
  $("older").hidden = !past.more;
  drawMoment(snap, index);
}

// timedWindow is the name of the selection's first window of time, "" where there is none.
function timedWindow() {
  const version = state.models.find((m) => m.model === state.sel.model)?.versions.find((v) => v.version === state.sel.version);
  return version?.slices.find((s) => s.slice === state.sel.slice)?.windows.find((w) => w.kind === "time")?.name || "";
}

function drawMoment(snap, index) {
  const scrub = $("scrub");
  scrub.max = String(state.snaps.length - 1);
  scrub.value = index === null ? scrub.max : String(index);
  const text = state.pinned ? clock(snap.at, state.latest.at) : "live";
  scrub.nextElementSibling.textContent = text;
  scrub.setAttribute("aria-valuetext", text);
  $("asof").textContent = `as of ${clock(state.latest.at)} UTC`;
  $("pinbar").hidden = !state.pinned;
  $("pinbar").firstElementChild.textContent = `Shown as of ${clock(snap.at)} UTC. The time line goes on.`;
  const firing = own(state.current).filter((a) => a.state === "firing").length;
  document.title = `${firing ? `▲ ${firing} ` : ""}${state.sel.model} ${state.sel.version} – plumbline`;
}

// pin shows the moment of snapshot i; its diagram comes from the server, since the time line holds numbers only.
async function pin(i) {
  const s = state.snaps[i];
  if (!s || i === state.snaps.length - 1) return unpin();
  const x = moment(s);
  state.pinned = { x, snap: s, time: x * 1000 };
  paintSoon();
  try {
    const at = new Date(x * 1000).toISOString();
    const { data } = await get("snapshots/latest", { ...state.sel, at });
    if (state.pinned && state.pinned.x === x) {
      state.pinned.snap = data;
      state.at = at;
      writeURL(state.sel, at);
      paintSoon();
    }
  } catch { /* the numbers stay, without the diagram */ }
}

function unpin() {
  state.pinned = null;
  state.at = state.asked = "";
  writeURL(state.sel, "");
  paintSoon();
}

function legend() {
  const names = { raw: "raw", cal: "calibrated" };
  $("legend").replaceChildren(...Object.keys(names).map((k) => {
    const b = el("button", { type: "button", "aria-pressed": String(state.show[k]) }, el(`i.key.${k}`), names[k]);
    b.addEventListener("click", () => {
      state.show[k] = !state.show[k];
      b.setAttribute("aria-pressed", String(state.show[k]));
      paint();
    });
    return b;
  }));
}

$("selectors").addEventListener("change", (e) => {
  if (e.target.name === "search") return refreshModels();
  state.sel = choose(state.models, { ...state.sel, [e.target.name]: e.target.value });
  state.pinned = null;
  state.at = state.asked = "";
  load();
});
$("selectors").addEventListener("submit", (e) => e.preventDefault());
$("scrub").addEventListener("input", (e) => pin(Number(e.target.value)));
$("pinbar").lastElementChild.addEventListener("click", () => { unpin(); $("scrub").focus(); }); // the button goes
$("onlyslice").addEventListener("change", paint);
$("older").addEventListener("click", older);
addEventListener("keydown", (e) => { if (e.key === "Escape" && state.pinned) unpin(); });
document.addEventListener("heads", (e) => { state.heads = e.detail; paintSoon(); });
legend();
load();
