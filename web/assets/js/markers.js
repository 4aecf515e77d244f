// Alarms and refits as buttons above the plot, so that keyboard and screen reader reach them; near ones are grouped.
import { el, clock } from "./format.js";
import { GLYPHS } from "./events.js";

const APART = 30; // pixels: a marker with its count of two digits
const RANK = { firing: 6, published: 5, ready: 4, unfit: 4, resolved: 3, asked: 2, pending: 1, kept: 0, inhibited: 0 };

export class Markers {
  constructor(tip) {
    this.tip = tip;
    this.events = [];
    this.layer = el("div.marks");
  }

  /** draw places the markers that are inside the plot's time range. */
  draw(u) {
    const open = this.tip.hidden ? null : this.shownAt; // a pointer that rests on a marker keeps its tip
    const focused = this.layer.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    if (this.layer.parentNode !== u.over) u.over.append(this.layer);
    u.over.style.setProperty("--plot-height", u.over.clientHeight + "px");
    const buttons = this.groups(u).map((g) => this.button(g));
    this.layer.replaceChildren(...buttons);
    if (focused) buttons.find((b) => b.dataset.at === focused)?.focus();
    const again = open && buttons.find((b) => b.dataset.at === open);
    if (again) again.dispatchEvent(new Event("tip"));
    else this.tip.hidden = true;
  }

  groups(u) {
    const { min, max } = u.scales.x;
    const out = [];
    for (const e of [...this.events].reverse()) { // oldest first
      const t = Date.parse(e.at) / 1000;
      if (!(t >= min && t <= max)) continue;
      const x = u.valToPos(t, "x");
      const last = out[out.length - 1];
      if (last && x - last.x < APART) {
        last.events.push(e);
        if (RANK[e.kind] > RANK[last.lead.kind]) last.lead = e;
      } else out.push({ x, lead: e, events: [e] });
    }
    return out;
  }

  button(g) {
    const label = g.events.map((e) => `${clock(e.at)} ${e.title}`).join("; ");
    const b = el("button.mark.glyph", { type: "button", "data-kind": g.lead.kind, "data-at": g.lead.at, "aria-label": label }, GLYPHS[g.lead.kind]);
    if (g.events.length > 1) b.append(el("sub", {}, g.events.length > 99 ? "99+" : String(g.events.length)));
    b.style.left = g.x + "px";
    const show = () => this.showTip(b, g.events);
    const hide = () => { this.tip.hidden = true; };
    b.addEventListener("tip", show);
    b.addEventListener("pointerenter", show);
    b.addEventListener("focus", show);
    b.addEventListener("pointerleave", hide);
    b.addEventListener("blur", hide);
    b.addEventListener("keydown", (e) => e.key === "Escape" && hide());
    b.addEventListener("click", (e) => { e.stopPropagation(); show(); });
    return b;
  }

  showTip(button, events) {
    this.shownAt = button.dataset.at;
    const shown = events.slice(-4);
    const rest = events.length - shown.length;
    this.tip.replaceChildren(...shown.map((e) => el("p", {}, el("strong", {}, `${GLYPHS[e.kind]} ${e.title}`), el("br"), `${clock(e.at)} UTC. ${e.text}`)));
    if (rest > 0) this.tip.prepend(el("p", {}, `${rest} earlier, in the list.`));
    this.tip.hidden = false;
    const at = button.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left + at.width / 2 - this.tip.offsetWidth / 2, document.documentElement.clientWidth - this.tip.offsetWidth - 8));
    this.tip.style.left = left + scrollX + "px";
    this.tip.style.top = at.bottom + scrollY + 6 + "px";
  }
}
