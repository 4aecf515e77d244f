// Curves of trainings: lines over one axis each, with what they say in words for those who do not see them.
import { el, svg, fixed } from "./format.js";

const [W, H, LEFT, BOTTOM, TOP, RIGHT] = [420, 120, 46, 20, 6, 8];

/** curves draws lines [{name, chosen, points: [{x, y}]}]; under names the horizontal axis. */
export function curves(lines, title, under) {
  const all = lines.flatMap((l) => l.points).filter((p) => Number.isFinite(p.y));
  const span = (f) => [Math.min(...all.map(f)), Math.max(...all.map(f))];
  const [[x0, x1], [y0, y1]] = [span((p) => p.x), span((p) => p.y)];
  const x = (v) => LEFT + ((v - x0) / (x1 - x0 || 1)) * (W - LEFT - RIGHT);
  const y = (v) => H - BOTTOM - ((v - y0) / (y1 - y0 || 1)) * (H - BOTTOM - TOP);
  const root = svg("svg.curves", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${lines.map(words).join("; ")}` });
  for (const v of y0 === y1 ? [y0] : [y0, (y0 + y1) / 2, y1]) {
    root.append(svg("line.grid", { x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v) }), svg("text", { x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, fixed(v)));
  }
  const end = (v) => (under === "epoch" ? String(v) : `${Math.round(100 * v)} %`);
  root.append(svg("text", { x: LEFT, y: H - 5 }, end(x0)), svg("text", { x: W - RIGHT, y: H - 5, "text-anchor": "end" }, end(x1)),
    svg("text", { x: (LEFT + W - RIGHT) / 2, y: H - 5, "text-anchor": "middle" }, under));
  const several = lines.length > 1;
  for (const l of lines) {
    const d = l.points.filter((p) => Number.isFinite(p.y)).map((p, i) => `${i ? "L" : "M"}${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("");
    root.append(svg(!several || l.chosen ? "path.line.chosen" : "path.line", { d }, svg("title", {}, l.name || title)));
  }
  return el("figure", {}, root, el("figcaption", {}, `Validation NLL${several ? "; the bold line is the recipe that was taken" : ""}`));
}

const words = (l) => {
  const ys = l.points.map((p) => p.y).filter(Number.isFinite);
  return `${l.name ? `${l.name} ` : ""}from ${fixed(ys[0])} to ${fixed(ys[ys.length - 1])}, lowest ${fixed(Math.min(...ys))}`;
};
