// What was decided about heads, as events of the time line: asked for, trained, and the verdict.
import { sentence } from "./format.js";

const VERDICTS = { ready: "Head ready", rejected: "Head rejected", rolled_back: "Head rolled back", lost: "Head never ran" };

/** headEvents are those of the selection's version, and of the version that a selected shadow head stands for. */
export function headEvents(heads, sel) {
  return heads.filter((h) => h.model === sel.model && (h.version === sel.version || h.shadow_version === sel.version)).flatMap(of);
}

function of(h) {
  const event = (kind, at, title, why) => ({ kind, at, slice: null, key: `head ${h.id} ${kind}`, title: `${title}: ${h.shadow_version}`, text: sentence(why), note: "" });
  const out = [];
  if (h.request) out.push(event("asked", h.request.decided_at, "New head requested", h.request.why || (h.state === "waiting" ? h.why : "")));
  if (h.verdict?.decided_at) {
    const ready = h.verdict.state === "ready";
    out.push(event(ready ? "ready" : "unfit", h.verdict.decided_at, VERDICTS[h.verdict.state] || h.verdict.state, h.verdict.why));
  }
  return out.filter((e) => !Number.isNaN(Date.parse(e.at)));
}
