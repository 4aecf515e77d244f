// The time series: ECE with its interval and null expectation, and accuracy against mean confidence. Canvas by uPlot.
import { clock, pct, pctBare, el } from "./format.js";
import { Markers } from "./markers.js";

/* global uPlot */
const SYNC = "plumbline";

/** seconds since 1970 of a snapshot on the time axis: the window's end, or the pane's for windows of rows. */
export const moment = (s) => Date.parse(s.window.kind === "time" ? s.window.end : s.at) / 1000;

// label is the field of a snapshot, too.
const ECE = [
  { label: "raw", key: "raw", of: (s) => s.raw.ece, lo: (s) => s.raw.ece_lo, hi: (s) => s.raw.ece_hi, null: (s) => s.raw.ece_null },
  { label: "calibrated", key: "cal", of: (s) => s.calibrated.ece, lo: (s) => s.calibrated.ece_lo, hi: (s) => s.calibrated.ece_hi, null: (s) => s.calibrated.ece_null },
];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const opt = (v) => (v === undefined ? null : v);

// One moment makes no line.
const LONE = { show: (u) => u.data[0].length < 2, size: 6 };

export class Timeline {
  /** roots: {ece, acc, eceRead, eceAt, accRead}; onPick(index) is called when a moment is clicked. */
  constructor(roots, tip, onPick) {
    this.roots = roots;
    this.onPick = onPick;
    this.markers = new Markers(tip);
    this.pin = el("div.pin", { hidden: "" });
    this.snaps = [];
    this.show = { raw: true, cal: true };
    new ResizeObserver(() => this.resize()).observe(roots.ece);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  /** update draws snaps (oldest first) with events as markers; pinned is the pinned index or null. */
  update(snaps, events, show, pinned) {
    const rebuild = !this.ece || show.raw !== this.show.raw || show.cal !== this.show.cal;
    Object.assign(this, { snaps, show: { ...show }, pinned });
    this.markers.events = events;
    if (rebuild) return this.rebuild();
    this.ece.setData(this.eceData());
    this.acc.setData(this.accData());
    this.readout(this.ece.cursor.idx); // setData leaves the cursor alone
  }

  signals() {
    return ECE.filter((s) => this.show[s.key]);
  }

  eceData() {
    const cols = this.signals().flatMap((s) => [s.lo, s.hi, s.null, s.of]);
    return [this.snaps.map(moment), ...cols.map((f) => this.snaps.map((x) => opt(f(x))))];
  }

  accData() {
    const cols = this.signals().flatMap((d) => [(s) => s[d.label].accuracy, (s) => s[d.label].mean_confidence]);
    return [this.snaps.map(moment), ...cols.map((f) => this.snaps.map((x) => opt(f(x))))];
  }

  rebuild() {
    if (this.ece) this.ece.destroy();
    if (this.acc) this.acc.destroy();
    const { ece, acc } = this.roots;
    this.ece = new uPlot(this.options(ece, 280, this.eceSeries(), true), this.eceData(), ece);
    this.acc = new uPlot(this.options(acc, 150, this.accSeries(), false), this.accData(), acc);
    this.ece.over.append(this.pin);
    this.readout(null);
  }

  eceSeries() {
    const hidden = { width: 0, points: { show: false } };
    return this.signals().flatMap((s) => [
      { ...hidden }, { ...hidden },
      { stroke: css(`--${s.key}`), width: 1, dash: [4, 4], alpha: 0.8, points: { show: false } },
      { stroke: css(`--${s.key}`), width: 2, points: LONE },
    ]);
  }

  accSeries() {
    return this.signals().flatMap((s) => [
      { stroke: css(`--${s.key}`), width: 2, points: LONE },
      { stroke: css(`--${s.key}`), width: 1.5, dash: [4, 4], points: LONE },
    ]);
  }

  options(root, height, series, isECE) {
    const axis = { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const percent = (u, splits) => splits.map((v) => +(100 * v).toFixed(2) + "%");
    return {
      width: Math.max(200, root.clientWidth), height, legend: { show: false },
      padding: [isECE ? 22 : 8, 24, 0, 0],
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      scales: { x: { range: around }, y: { range: isECE ? (u, lo, hi) => [0, Math.max(0.02, hi * 1.08)] : (u, lo, hi) => padded(lo, hi) } },
      axes: [{ ...axis, size: 28, space: 70, values: timeLabels }, { ...axis, size: 46, space: 28, values: percent }],
      series: [{}, ...series],
      bands: isECE ? this.signals().map((s, i) => ({ series: [4 * i + 2, 4 * i + 1], fill: css(`--${s.key}-fill`) })) : [],
      cursor: { y: false, sync: { key: SYNC }, drag: { x: false, y: false }, points: { size: 6 }, bind: { click: (u) => () => this.pick(u) } },
      hooks: {
        setCursor: [(u) => isECE && this.readout(u.cursor.idx)],
        draw: isECE ? [(u) => { this.markers.draw(u); this.placePin(u); }] : [],
      },
    };
  }

  pick(u) {
    if (u.cursor.idx !== null && u.cursor.idx !== undefined) this.onPick(u.cursor.idx);
  }

  placePin(u) {
    const at = this.pinned === null || this.pinned === undefined ? null : this.snaps[this.pinned];
    this.pin.hidden = !at;
    if (at) this.pin.style.left = u.valToPos(moment(at), "x") + "px";
  }

  /** readout writes the numbers under the cursor, or the newest ones; it is the legend too. */
  readout(idx) {
    const s = this.snaps[idx === null || idx === undefined ? (this.pinned ?? this.snaps.length - 1) : idx];
    const at = s ? clock(new Date(moment(s) * 1000).toISOString()).slice(11) : "";
    const item = (swatch, text) => el("span.item", {}, el("i.swatch" + swatch), text);
    const eceText = this.signals().flatMap((d) => [
      item(`.${d.key}`, `${d.label} ${s ? `${pct(d.of(s))} [${pctBare(d.lo(s))}, ${pctBare(d.hi(s))}]` : ""}`),
      item(`.dash.${d.key}`, s ? pctBare(d.null(s)) : ""), // the heading says what is dashed
    ]);
    this.roots.eceAt.textContent = at;
    this.roots.eceRead.replaceChildren(...eceText);
    const accText = this.signals().flatMap((d) => [
      item(`.${d.key}`, `${d.label}: accuracy ${pct(s?.[d.label].accuracy)}`), item(`.dash.${d.key}`, `confidence ${pct(s?.[d.label].mean_confidence)}`),
    ]);
    this.roots.accRead.replaceChildren(...accText);
  }

  resize() {
    for (const [u, root] of [[this.ece, this.roots.ece], [this.acc, this.roots.acc]]) {
      if (u && root.clientWidth && root.clientWidth !== u.width) u.setSize({ width: root.clientWidth, height: u.height });
    }
  }
}

// One moment stands amid four minutes: uPlot would show the years after it.
const around = (u, lo, hi) => (u.data[0].length === 1 ? [lo - 120, lo + 120] : [lo, hi]);

function padded(lo, hi) {
  if (lo === null || hi === null) return [0, 1];
  const pad = Math.max(0.01, (hi - lo) * 0.15);
  return [Math.max(0, lo - pad), Math.min(1, hi + pad)];
}

// 24-hour labels; the date where the day changes and at the first one, seconds only below a minute.
function timeLabels(u, splits, axis, space, step) {
  let day = "";
  return splits.map((t) => {
    const iso = new Date(t * 1000).toISOString();
    const date = iso.slice(5, 10);
    const text = step >= 86400 ? date : iso.slice(11, step < 60 ? 19 : 16);
    const first = date !== day && step < 86400 && (day !== "" || splits.length > 1);
    const withDate = first && day !== "" ? `${date} ${text}` : text;
    day = date;
    return withDate;
  });
}
