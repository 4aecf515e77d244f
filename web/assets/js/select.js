// The four selectors, the selection in the address bar, and the choice where something is not given or is gone.
import { el, sliceName } from "./format.js";

const FIELDS = ["model", "version", "slice", "window"];
const newest = (windows) => windows.reduce((t, w) => (w.latest_at > t ? w.latest_at : t), "");

// A shadow head is shown where it is asked for: the version that serves is what people come for.
const shadow = (v) => /\+head[0-9]+$/.test(v.version);

/** The levels of the tree under a (partial) selection. */
function levels(models, want) {
  const model = models.find((m) => m.model === want.model) || models[0];
  if (!model) return null;
  const age = (v) => v.slices.reduce((t, s) => { const n = newest(s.windows); return n > t ? n : t; }, "");
  const version = model.versions.find((v) => v.version === want.version) || [...model.versions].sort((a, b) => shadow(a) - shadow(b) || (age(a) < age(b) ? 1 : age(a) > age(b) ? -1 : 0))[0];
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

export function fillSelectors(form, models, sel) {
  const l = sel && levels(models, sel);
  const options = l
    ? { model: models.map((m) => m.model), version: l.model.versions.map((v) => v.version), slice: l.version.slices.map((s) => s.slice), window: l.slice.windows.map((w) => w.name) }
    : { model: [], version: [], slice: [], window: [] };
  const firing = new Map((l ? l.model.versions : []).map((v) => [v.version, v.alerts_firing]));
  for (const f of FIELDS) {
    const select = form.elements[f];
    const label = (v) => (f === "slice" ? sliceName(v) : f === "version" && firing.get(v) ? `${v} ▲` : v);
    const want = JSON.stringify(options[f].map(label));
    if (select.dataset.options !== want) { // left alone otherwise: it may be open
      select.dataset.options = want;
      select.replaceChildren(...options[f].map((v) => el("option", { value: v }, label(v))));
      if (!options[f].length) select.append(el("option", { value: "" }, "none yet"));
    }
    if (sel) select.value = sel[f];
    select.disabled = options[f].length < 1;
  }
}

/** markFiring marks the slices that have an alarm, so that they are found among many. */
export function markFiring(form, slices) {
  for (const o of form.elements.slice.options) {
    const text = `${sliceName(o.value)}${slices.includes(o.value) ? " ▲" : ""}`;
    if (o.textContent !== text) o.textContent = text;
  }
}

export function readURL() {
  const q = new URLSearchParams(location.search);
  return Object.fromEntries([...FIELDS, "at"].map((f) => [f, q.get(f) || ""]));
}

/** address of a selection; at: the moment shown, "" for the newest. */
export const address = (sel, at) => "/?" + new URLSearchParams(at ? { ...sel, at } : sel);

export function writeURL(sel, at) {
  history.replaceState(null, "", address(sel, at));
}

/** missing says which of what a link asked for is not there, "" where all is. */
export function missing(want, sel) {
  const gone = FIELDS.filter((f) => (want[f] || (f === "slice" && want.model)) && want[f] !== sel[f]);
  return gone.map((f) => `${f} ${f === "slice" ? sliceName(want[f]) : want[f]}`).join(", ");
}
