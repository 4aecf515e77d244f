// The heads: what was asked for, what trains, what proves itself, and what is to be served. A part of its own, which asks
// every few seconds: trainings take minutes.
import { get } from "./api.js";
import { el, chance, pct, fixed, count, duration, clock, DASH } from "./format.js";
import { curves } from "./curves.js";
import { ask } from "./headorder.js";

const ASK_MS = 3000;
const STATES = {
  waiting: ["◌", "waiting for a trainer"], running: ["▶", "in training"], shadow: ["◐", "trained, runs as a shadow"], ready: ["●", "ready to be served"],
  rejected: ["✕", "rejected"], rolled_back: ["↩", "rolled back"], lost: ["✕", "never ran"], failed: ["✕", "failed"],
  unchanged: ["–", "nothing better was found"], cancelled: ["✕", "cancelled"],
};
const NUMERALS = { one: "st", two: "nd", few: "rd", other: "th" };
const place = (n) => `${n}${NUMERALS[new Intl.PluralRules("en", { type: "ordinal" }).select(n)]}`;

const $ = (id) => document.getElementById(id);
let drawn = ""; // what is on the page, as text
let before = new Map(); // states by id

const stateOf = (h) => (h.lost ? ["⚠", "its trainer is lost"] : STATES[h.state] || ["", h.state]);

function line(h) {
  const [glyph, words] = stateOf(h);
  const item = el("li.head-item", { "data-state": h.lost ? "silent" : h.state },
    el("div.headline", {}, el("h3", {}, h.id), el("span.state", {}, el("span", { "aria-hidden": "true" }, glyph), ` ${words}`),
      h.serve ? el("span.chip", {}, "to be served") : null, orders(h)),
    work(h), h.why ? el("p", {}, h.why) : null, decided(h), proof(h), training(h));
  return item;
}

// work is what is being done: the place in the queue, the progress, or that nobody does it any more.
function work(h) {
  const asked = h.request ? `requested at ${clock(h.request.decided_at)}` : "";
  if (h.state === "waiting") return el("p", {}, `${h.queue ? `${place(h.queue)} in the queue, ` : ""}${asked}`);
  const j = h.job;
  if (h.state !== "running" || !j) return null;
  const bar = el("progress", { max: "1", value: String(j.done), "aria-label": `Progress of ${h.id}` });
  const at = `${Math.round(100 * j.done)} % ${j.step || ""}${j.nll ? `, validation NLL ${fixed(j.nll)}` : ""}`;
  return el("div", {}, el("p", {}, bar, ` ${at}, attempt ${j.attempt} on ${j.trainer}, ${asked}`),
    h.lost ? el("p.warning", {}, `No sign of life of ${j.trainer} for ${duration(h.silent_seconds)}. Another trainer takes the job over at its last checkpoint; where none runs, start one.`) : null);
}

// decided is a person's order.
function decided(h) {
  const o = h.order;
  if (!o) return null;
  const did = { pin: "Published", rollback: "Rolled back", auto: "Order withdrawn" }[o.action] || o.action;
  return el("p", {}, `${did} by ${o.by}, ${clock(o.at)}${o.why ? `: ${o.why}` : ""}`);
}

// proof compares the head with the one that serves: on the stream's rows where there is a verdict, else on those that validated it.
function proof(h) {
  const v = h.verdict && h.verdict.evidence;
  const t = h.result && h.result.evidence;
  if (v && v.rows) {
    const tests = `Chance that it is no better: at most ${chance(v.log_e_better)}; no worse: ${chance(v.log_e_worse)}; that its accuracy has dropped: ` +
      `${chance(v.log_e_accuracy)}; proved from ${chance(-Math.log(v.alpha))}. NLL gain ${fixed(v.nll_gain, 4)} ± ${fixed(1.96 * v.nll_gain_se, 4)}.`;
    return el("div.proof", {}, scores(`${count(v.rows)} rows of the stream`, v.serving, v.shadow, "shadow"), el("p.soft", {}, tests));
  }
  if (h.state === "shadow" && t && t.after) return el("div.proof", {}, scores(`${count(t.after.n)} validation rows`, t.before, t.after, "new head"));
  return null;
}

function scores(rows, a, b, name) {
  const lines = [["accuracy", pct, "accuracy"], ["NLL", fixed, "nll"], ["ECE", pct, "ece"], ["ECE if calibrated", pct, "ece_null"], ["AURC", fixed, "aurc"]];
  return el("table", {},
    el("caption", {}, `On ${rows}`),
    el("thead", {}, el("tr", {}, el("td", {}), ...["serving", name].map((t) => el("th", { scope: "col" }, t)))),
    el("tbody", {}, ...lines.map(([text, form, key]) => el("tr", {}, el("th", { scope: "row" }, text), el("td", {}, a ? form(a[key]) : DASH), el("td", {}, form(b[key]))))));
}

// training is the validation NLL over the work, as far as it is told.
function training(h) {
  if (h.state === "running" && h.curve && h.curve.length > 1) {
    return curves([{ name: "", points: h.curve.map((p) => ({ x: p.done, y: p.nll, step: p.step })) }], `Validation NLL of ${h.id} so far`, "share of the work");
  }
  const auto = h.result && h.result.evidence && h.result.evidence.auto;
  const tried = ((auto && auto.tried) || []).filter((s) => s.report && s.report.epochs && s.report.epochs.length > 1);
  if (!tried.length) return null;
  const lines = tried.map((s) => ({ name: s.name, chosen: s.name === auto.chosen, points: s.report.epochs.map((e) => ({ x: e.epoch, y: e.valid.nll })) }));
  return el("details", { "data-key": h.id }, el("summary", {}, `Curves of ${tried.length === 1 ? tried[0].name : `${tried.length} trainings`}; taken: ${auto.chosen}`),
    curves(lines, `Validation NLL by epoch of ${h.id}`, "epoch"));
}

function orders(h) {
  const list = [];
  const trained = h.result && h.result.outcome === "trained";
  if (trained && !(h.order && h.order.action === "pin")) list.push(["pin", "Publish"]);
  if (trained && !(h.order && h.order.action === "rollback")) list.push(["rollback", "Roll back"]);
  if (trained && h.order && h.order.action !== "auto") list.push(["auto", "Withdraw the order"]);
  if (!h.result && h.state !== "cancelled") list.push(["cancel", "Cancel"]);
  return el("span.orders", {}, ...list.map(([action, text]) => {
    const b = el("button", { type: "button", "data-key": `${action} ${h.id}`, "aria-haspopup": "dialog", "aria-label": `${text}: ${h.id}` }, text);
    b.addEventListener("click", () => ask(action, text, h.id, () => load()));
    return b;
  }));
}

// news says what has changed, to those who do not see it.
function news(heads) {
  const now = new Map(heads.map((h) => [h.id, stateOf(h)[1]]));
  const changed = [...now].filter(([id, words]) => before.size && before.get(id) !== words).map(([id, words]) => `${id}: ${words}`);
  if (changed.length) $("headsnews").textContent = changed.join("; ");
  before = now;
}

function draw(heads) {
  const section = $("heads");
  section.hidden = heads.length === 0;
  const text = JSON.stringify(heads, (key, v) => (key === "silent_seconds" ? undefined : v)); // grows all the time
  news(heads);
  if (text === drawn) return;
  drawn = text;
  const list = $("headlist");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Set([...list.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  list.replaceChildren(...heads.slice().reverse().map(line));
  for (const d of list.querySelectorAll("details")) d.open = open.has(d.dataset.key);
  if (focused) [...list.querySelectorAll("[data-key]")].find((b) => b.dataset.key === focused)?.focus();
}

async function load() {
  try {
    const { heads } = (await get("heads")).data;
    $("headserror").hidden = true;
    draw(heads);
    document.dispatchEvent(new CustomEvent("heads", { detail: heads })); // they are in the list of events too
  } catch (err) {
    if (err.status === 404) return false; // nothing is asked for here
    $("headserror").hidden = false;
    $("headserror").textContent = `Not up to date: ${err.message}.`;
  }
  return true;
}

async function follow() {
  if (await load()) setTimeout(follow, ASK_MS);
}

// begin follows heads where the process does.
async function begin() {
  try {
    if ((await get("status")).data.follows_heads) follow();
  } catch {
    setTimeout(begin, ASK_MS);
  }
}

begin();
