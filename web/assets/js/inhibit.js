// One alert stands for those that follow from it: they are shown under it, never as alarms of their own.
export const keyOf = (a) => [a.model, a.version, a.slice, a.rule].join("/");

/** own leaves out the alerts that another one, or a calibrator, stands for. */
export const own = (alerts) => alerts.filter((a) => !a.inhibited_by);

/** silent tells an alert of a version that has no predictions any more: nothing can be judged. */
export const silent = (a) => (a.inhibited_by || "").startsWith("no predictions since ");

/**
 * adopt takes the inhibited changes out of events and puts each under its root: the newest firing of the alert that inhibits it
 * which is not later, or the calibrator that answers it; where that alert was itself inhibited all along, its own root. Of one
 * rule and slice only the newest change stands there. Where the root is not kept any more the change stays in the list, as one
 * that is inhibited.
 */
export function adopt(events) {
  const roots = [], orphans = [];
  for (const e of events) if (!e.inhibitedBy) roots.push({ ...e, under: [] });
  for (const e of events) {
    if (!e.inhibitedBy) continue;
    const at = Date.parse(e.at);
    const root = rootOf(e.inhibitedBy, at, roots, events);
    if (!root) {
      orphans.push({ ...e, kind: "inhibited", title: `${e.kind === "resolved" ? "Over" : silent(e.alert) ? "No predictions" : "Part of another alarm"}: ${e.rule}`, under: [] });
      continue;
    }
    const same = root.under.findIndex((u) => u.key === e.key);
    if (same < 0) root.under.push(e);
    else if (Date.parse(root.under[same].at) < at) root.under[same] = e;
  }
  return [...roots, ...orphans];
}

const DEPTH = 8; // of inhibitors that are inhibited

function rootOf(key, at, roots, events, depth = DEPTH) {
  const newest = (list) => list.reduce((b, e) => (!b || Date.parse(e.at) >= Date.parse(b.at) ? e : b), null);
  const before = (e) => e.key === key && Date.parse(e.at) <= at;
  const root = newest(roots.filter((r) => before(r) && (r.kind === "firing" || r.kind === "published")));
  if (root || depth === 0) return root;
  const via = newest(events.filter((e) => before(e) && e.inhibitedBy && e.kind !== "resolved"));
  return via && via.inhibitedBy !== key ? rootOf(via.inhibitedBy, Date.parse(via.at), roots, events, depth - 1) : null;
}
