// The process status: whatever the server reports, flattened to a table of names and values.
import { el, count } from "./format.js";

export function drawStatus(root, value) {
  const rows = [];
  flatten("", value, rows);
  root.replaceChildren(el("table", {}, el("tbody", {}, ...rows.map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v))))));
}

function flatten(name, v, rows) {
  if (v !== null && typeof v === "object") {
    for (const [k, x] of Object.entries(v)) flatten(name ? `${name} / ${k}` : k, x, rows);
  } else if (v !== null) {
    rows.push([name.replaceAll("_", " "), Number.isInteger(v) && v >= 0 ? count(v) : String(v)]);
  }
}
