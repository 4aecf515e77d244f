// The process status: whatever the server reports, flattened to a table of names and values.
import { el, clocks, count } from "./format.js";

export function drawStatus(root, value) {
  const rows = [];
  flatten("", value, rows);
  root.replaceChildren(el("table", {}, el("tbody", {}, ...rows.map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v))))));
}

let known; // rows ahead of the time, by model, when the page was opened: what is over is no trouble

/** drawTrouble says which tasks fail, which records were skipped, whose clock is ahead, what of the inputs is lost, and whom a change of the number of shards waits for; it is hidden where none is. */
export function drawTrouble(root, process) {
  const ahead = process?.counts?.ahead_by_model || {};
  if (process) known ??= ahead;
  const early = Object.keys(ahead).filter((m) => ahead[m] > (known[m] || 0)).map((m) => `Rows of ${m} were rejected since this page was opened: their time is ahead, so a clock is wrong.`);
  const place = (p) => `${p.topic} partition ${p.partition} offset ${p.offset}`;
  const failing = (process?.failing || []).map((f) => `${f.task} ${f.partition} fails since ${f.since}${f.at ? ` at ${place(f.at)}` : ""}: ${f.cause}. Next try at ${f.next_try}.`);
  const skipped = (process?.skipped || []).map((s) => `${s.task.task} ${s.task.partition} skipped a record at ${s.when}, ${place(s.at)}, which ended it again and again: ${s.cause}.`);
  const scale = process?.scale;
  const change = scale ? [`From ${scale.from} to ${scale.to} shards since ${scale.since}, by ${scale.by}: ${scale.why}. ${scale.step}; waits for shards: ${(scale.waits_for_shards || []).join(", ") || "none"}.`] : [];
  const troubles = process?.troubles || [];
  const lost = troubles.map((t) => `${t.title}${t.kind === "scores" ? "" : `, ${t.count}`} since ${t.since}: ${t.text}. To mend it: ${t.mend}.`);
  const lines = [...failing, ...lost, ...skipped, ...early, ...change].map((l) => clocks(l, new Date().toISOString()));
  root.hidden = lines.length === 0;
  if (root.dataset.said === lines.join("\n")) return; // screen readers hear it once
  root.dataset.said = lines.join("\n");
  root.replaceChildren(el("strong", {}, failing.length ? "A task fails" : lost.length ? troubles.every((t) => t.kind === "scores") ? "Scores look wrong" : "Rows are lost" : skipped.length ? "A record was skipped" : early.length ? "A clock is ahead" : "The number of shards changes"), ...folded(root, lines.map((l) => el("p", {}, l))));
}

// folded shows the first of many lines: the alarm below is to be seen, too. What was opened stays so.
function folded(root, lines) {
  if (lines.length < 3) return lines;
  const open = root.querySelector("details")?.open ? { open: "" } : {};
  return [lines[0], el("details", open, el("summary", {}, `${lines.length - 1} more`), ...lines.slice(1))];
}

function flatten(name, v, rows) {
  if (v !== null && typeof v === "object") {
    for (const [k, x] of Object.entries(v)) flatten(name ? `${name} / ${k}` : k, x, rows);
  } else if (v !== null) {
    rows.push([name.replaceAll("_", " "), Number.isInteger(v) && v >= 0 ? count(v) : String(v)]);
  }
}
