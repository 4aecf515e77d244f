// What was decided, from the database of the history: it reaches back beyond this process, and is the same whichever one is asked.
import { get } from "./api.js";

const PAGE = 300; // entries asked for at once

/** Past reads pages of a model version's alerts and refit decisions, newest first; without a database it has none. */
export class Past {
  constructor() {
    this.cursor = "";
    this.kept = null; // whether there is a database; null = not asked yet
  }

  /** load starts anew: {alerts, calibrators}, oldest first. */
  async load(sel) {
    this.sel = sel;
    this.cursor = "";
    return this.page();
  }

  /** more tells whether there are older entries. */
  get more() {
    return this.cursor !== "";
  }

  /** older is the next page. */
  async older() {
    return this.page();
  }

  async page() {
    const { model, version } = this.sel;
    const none = { alerts: [], calibrators: [] };
    try {
      this.kept ??= (await get("status")).data.keeps_history;
      if (!this.kept) return none;
      const { data } = await get(`models/${encodeURIComponent(model)}/history`,
        { version, kind: "alert,calibrator", limit: PAGE, ...(this.cursor ? { cursor: this.cursor } : {}) });
      this.cursor = data.next || "";
      const of = (kind) => data.entries.filter((e) => e.kind === kind).map((e) => e.record).reverse();
      return { alerts: of("alert"), calibrators: of("calibrator") };
    } catch (err) {
      if (err.status === 404) this.cursor = ""; // no database is configured
      return none; // what this process has in memory is shown
    }
  }
}

/** union puts two lists, each oldest first, into one; records that have the same fields are one record. */
export function union(a, b, fields, at) {
  const key = (r) => JSON.stringify(fields.map((f) => r[f]));
  const known = new Map([...a, ...b].map((r) => [key(r), r]));
  return [...known.values()].sort((x, y) => Date.parse(x[at]) - Date.parse(y[at]));
}
