// One alert stands for those that follow from it: they are shown under it, never as alarms of their own.
export const keyOf = (a) => [a.model, a.version, a.slice, a.rule].join("/");

/** own leaves out the alerts that another one, or a calibrator, stands for. */
export const own = (alerts) => alerts.filter((a) => !a.inhibited_by);

/**
 * adopt takes the inhibited changes out of events and puts each under its root: the newest firing of the alert that inhibits it
 * which is not later, or the calibrator that answers it. Of one rule and slice only the newest change stands there. Where the root is
 * not kept any more the change stays in the list, as one that is inhibited.
 */
export function adopt(events) {
  const roots = [], orphans = [];
  for (const e of events) if (!e.inhibitedBy) roots.push({ ...e, under: [] });
  for (const e of events) {
    if (!e.inhibitedBy) continue;
    const at = Date.parse(e.at);
    const mine = roots.filter((r) => (r.kind === "firing" || r.kind === "published") && r.key === e.inhibitedBy && Date.parse(r.at) <= at);
    const root = mine.reduce((b, r) => (!b || Date.parse(r.at) > Date.parse(b.at) ? r : b), null);
    if (!root) {
      orphans.push({ ...e, kind: "inhibited", title: `Inhibited: ${e.rule}`, under: [] });
      continue;
    }
    const same = root.under.findIndex((u) => u.key === e.key);
    if (same < 0) root.under.push(e);
    else if (Date.parse(root.under[same].at) < at) root.under[same] = e;
  }
  return [...roots, ...orphans];
}
