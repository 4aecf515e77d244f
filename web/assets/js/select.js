// The four selectors, the selection in the address bar, and the choice where something is not given or is gone.
import { el, sliceName } from "./format.js";

const FIELDS = ["model", "version", "slice", "window"];
const newest = (windows) => windows.reduce((t, w) => (w.latest_at > t ? w.latest_at : t), "");

// A shadow head is shown where it is asked for: the version that serves is what people come for.
const shadow = (v) => /\+head[0-9]+$/.test(v.version);

// Who asks for nothing is shown an alarm, if there is one; else what is served here.
const alarms = (m) => m.versions.reduce((n, v) => n + v.alerts_firing, 0);
const moved = (m) => m.versions.every((v) => v.moved);
const first = (models) => models.find(alarms) || models.find((m) => !moved(m)) || models[0];

/** The levels of the tree under a (partial) selection. */
function levels(models, want) {
  const model = models.find((m) => m.model === want.model) || first(models);
  if (!model) return null;
  const age = (v) => v.slices.reduce((t, s) => { const n = newest(s.windows); return n > t ? n : t; }, "");
  const version = model.versions.find((v) => v.version === want.version) || [...model.versions].sort((a, b) => shadow(a) - shadow(b) || Boolean(b.alerts_firing) - Boolean(a.alerts_firing) || (age(a) < age(b) ? 1 : age(a) > age(b) ? -1 : 0))[0];
  const whole = version.slices.find((s) => s.slice === "");
  const slice = version.slices.find((s) => s.slice === want.slice) || whole;
  if (!slice) return null; // of a pane the slices come first: the whole, which most come for, is there in a moment
  const window = slice.windows.find((w) => w.name === want.window) || slice.windows.find((w) => w.kind === "rows") || slice.windows[0];
  return { model, version, slice, window };
}

/** choose completes want to a selection that exists, or null where there is nothing at all. */
export function choose(models, want) {
  const l = levels(models, want || {});
  return l && { model: l.model.model, version: l.version.version, slice: l.slice.slice, window: l.window.name };
}

// marked says beside a name what is to be known of it before it is chosen.
const marked = (name, alarm, gone) => name + (alarm ? " ▲ alarm" : gone ? " (elsewhere)" : "");

export function fillSelectors(form, models, sel) {
  const l = sel && levels(models, sel);
  const options = l
    ? { model: models.map((m) => m.model), version: l.model.versions.map((v) => v.version), slice: l.version.slices.map((s) => s.slice), window: l.slice.windows.map((w) => w.name) }
    : { model: [], version: [], slice: [], window: [] };
  const labels = { // those of slices get their mark from markFiring
    model: new Map(models.map((m) => [m.model, marked(m.model, alarms(m), moved(m))])),
    version: new Map((l ? l.model.versions : []).map((v) => [v.version, marked(v.version, v.alerts_firing)])),
  };
  for (const f of FIELDS) {
    const select = form.elements[f];
    const want = JSON.stringify(options[f]);
    if (select.dataset.options !== want) { // left alone otherwise: it may be open
      select.dataset.options = want;
      select.replaceChildren(...options[f].map((v) => el("option", { value: v }, f === "slice" ? sliceName(v) : v)));
      if (!options[f].length) select.append(el("option", { value: "" }, "none yet"));
    }
    if (labels[f] && options[f].length) rename(select, (v) => labels[f].get(v));
    if (sel) select.value = sel[f];
    select.disabled = options[f].length < 1;
  }
}

function rename(select, text) {
  for (const o of select.options) if (o.textContent !== text(o.value)) o.textContent = text(o.value);
}

/** markFiring marks the slices that have an alarm, so that they are found among many. */
export function markFiring(form, slices) {
  rename(form.elements.slice, (s) => marked(sliceName(s), slices.includes(s)));
}

/** isMoved tells whether another process has the model of a selection now. */
export const isMoved = (models, sel) => Boolean(sel && models.find((m) => m.model === sel.model)?.versions.find((v) => v.version === sel.version)?.moved);

const NAMED = 3; // other versions that are named

/** drawOthers tells of alarms in versions that are not shown: a list that is closed tells of none. */
export function drawOthers(root, models, sel) {
  const firing = models.flatMap((m) => m.versions.filter((v) => v.alerts_firing).map((v) => ({ model: m.model, version: v.version })))
    .filter((o) => o.model !== sel.model || o.version !== sel.version);
  const links = firing.slice(0, NAMED).flatMap((o, i) => [i ? ", " : "", el("a", { href: address({ ...o, slice: "", window: "" }, "") }, `${o.model} ${o.version}`)]);
  const more = firing.length > NAMED ? ` and ${firing.length - NAMED} more` : "";
  root.hidden = !firing.length;
  const said = JSON.stringify(firing);
  if (root.dataset.said === said) return; // a link that has the focus keeps it
  root.dataset.said = said;
  root.replaceChildren(el("strong", {}, "▲ Alarm in another model or version: "), ...links.filter(Boolean), `${more}.`);
}

export function readURL() {
  const q = new URLSearchParams(location.search);
  return Object.fromEntries([...FIELDS, "at"].map((f) => [f, q.get(f) || ""]));
}

/** address of a selection; at: the moment shown, "" for the newest. */
export const address = (sel, at) => "?" + new URLSearchParams(at ? { ...sel, at } : sel);

export function writeURL(sel, at) {
  history.replaceState(null, "", address(sel, at));
}

/** missing says which of what a link asked for is not there, "" where all is. */
export function missing(want, sel) {
  const gone = FIELDS.filter((f) => (want[f] || (f === "slice" && want.model)) && want[f] !== sel[f]);
  return gone.map((f) => `${f} ${f === "slice" ? sliceName(want[f]) : want[f]}`).join(", ");
}
