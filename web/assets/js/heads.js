// The heads: what was asked for, what trains, what proves itself, and what is to be served. A part of its own, which asks
// every few seconds: trainings take minutes.
import { get } from "./api.js";
import { el, pct, fixed, count, DASH } from "./format.js";

const ASK_MS = 3000;
const WORDS = {
  waiting: "waiting for a trainer", running: "in training", shadow: "trained, runs as a shadow", ready: "ready to be served", rejected: "rejected",
  rolled_back: "rolled back", lost: "never ran", failed: "failed", unchanged: "nothing better was found", cancelled: "cancelled",
};

function progress(h) {
  const j = h.job;
  if (h.state !== "running" || !j) return "";
  const bar = el("progress", {}, "");
  bar.max = 1;
  bar.value = j.done;
  bar.setAttribute("aria-label", `progress of ${h.id}`);
  return el("span", {}, bar, ` ${Math.round(100 * j.done)} % ${j.step || ""}${j.nll ? `, validation NLL ${fixed(j.nll)}` : ""}, attempt ${j.attempt} on ${j.trainer}`);
}

function comparison(h) {
  const e = h.verdict && h.verdict.evidence;
  if (!e || !e.rows) return "";
  return `${count(e.rows)} rows: accuracy ${pct(e.serving.accuracy)} → ${pct(e.shadow.accuracy)}, NLL ${fixed(e.serving.nll)} → ${fixed(e.shadow.nll)}, ` +
    `ECE ${pct(e.serving.ece)} → ${pct(e.shadow.ece)} (calibrated: ${pct(e.shadow.ece_null)})`;
}

function line(h) {
  const asked = h.request ? h.request.decided_at : DASH;
  const row = el("tr", {}, el("th", {}, h.id), el("td", {}, WORDS[h.state] || h.state), el("td", {}, h.serve ? "to be served" : ""), el("td.num", {}, asked),
    el("td", {}, progress(h), h.why || "", comparison(h) ? el("div", {}, comparison(h)) : ""));
  row.dataset.state = h.state;
  return row;
}

async function draw() {
  const section = document.getElementById("heads");
  try {
    const { heads } = (await get("heads")).data;
    section.hidden = heads.length === 0;
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...["Head", "State", "", "Asked for", "Why"].map((t) => el("th", {}, t)))),
      el("tbody", {}, ...heads.slice().reverse().map(line)));
    section.querySelector(".scroll").replaceChildren(table);
  } catch (err) {
    if (err.status === 404) return; // nothing is asked for here
    section.querySelector(".scroll").replaceChildren(el("p", {}, err.message));
  }
  setTimeout(draw, ASK_MS);
}

draw();
