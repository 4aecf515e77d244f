// The process status: whatever the server reports, flattened to a table of names and values.
import { el, count } from "./format.js";

export function drawStatus(root, value) {
  const rows = [];
  flatten("", value, rows);
  root.replaceChildren(el("table", {}, el("tbody", {}, ...rows.map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v))))));
}

/** drawTrouble says which tasks fail and which records were skipped; it is hidden where there are none. */
export function drawTrouble(root, process) {
  const place = (p) => `${p.topic} partition ${p.partition} offset ${p.offset}`;
  const failing = (process?.failing || []).map((f) => `${f.task} ${f.partition} fails since ${f.since}${f.at ? ` at ${place(f.at)}` : ""}: ${f.cause}. Next try at ${f.next_try}.`);
  const skipped = (process?.skipped || []).map((s) => `${s.task.task} ${s.task.partition} skipped a record at ${s.when}, ${place(s.at)}, which ended it again and again: ${s.cause}.`);
  const lines = [...failing, ...skipped];
  root.hidden = lines.length === 0;
  if (root.dataset.said === lines.join("\n")) return; // screen readers hear it once
  root.dataset.said = lines.join("\n");
  root.replaceChildren(el("strong", {}, failing.length ? "A task fails" : "A record was skipped"), ...lines.map((l) => el("p", {}, l)));
}

function flatten(name, v, rows) {
  if (v !== null && typeof v === "object") {
    for (const [k, x] of Object.entries(v)) flatten(name ? `${name} / ${k}` : k, x, rows);
  } else if (v !== null) {
    rows.push([name.replaceAll("_", " "), Number.isInteger(v) && v >= 0 ? count(v) : String(v)]);
  }
}
