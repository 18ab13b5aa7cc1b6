// The S-curve: the share of pairs that become candidates, and the share that is reported, for each similarity.
// In: points as `POST /v1/tune` returns them. Out: an image (SVG).

import { h, percent, similarity, svg } from "./ui.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [560, 260, 44, 12, 12, 34];
/** How many marks have a height of their own, below the zero line. */
export const MARKS = 8;
const MARK_HEIGHT = 10;
const x = (jaccard) => LEFT + jaccard * (WIDTH - LEFT - RIGHT);
const y = (ratio) => HEIGHT - BOTTOM - ratio * (HEIGHT - TOP - BOTTOM);

/**
 * A smooth path through points that goes up only where the points do (Fritsch and Carlson, "Monotone piecewise cubic
 * interpolation", 1980).
 */
function path(points, of) {
  const [xs, ys] = [points.map((point) => x(point.jaccard)), points.map((point) => y(of(point)))];
  const slopes = xs.slice(1).map((right, at) => (ys[at + 1] - ys[at]) / (right - xs[at]));
  const tangent = (at) => {
    const [before, after] = [slopes[at - 1] ?? slopes[at], slopes[at] ?? slopes[at - 1]];
    return before * after <= 0 ? 0 : (2 * before * after) / (before + after);
  };
  const place = (left, top) => `${left.toFixed(1)} ${top.toFixed(1)}`;
  const piece = (at) => {
    const third = (xs[at + 1] - xs[at]) / 3;
    const near = place(xs[at] + third, ys[at] + third * tangent(at));
    const far = place(xs[at + 1] - third, ys[at + 1] - third * tangent(at + 1));
    return `C${near} ${far} ${place(xs[at + 1], ys[at + 1])}`;
  };
  return `M${place(xs[0], ys[0])}${slopes.map((_, at) => piece(at)).join("")}`;
}

/** The lines and the labels of the axes. `strip`: the height of the space for marks below the zero line. */
function axes(strip) {
  const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return [
    ...ticks.map((tick) => svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) })),
    ...ticks.map((tick) => svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick, 0))),
    ...ticks.map((tick) => svg("text", { class: "tick", x: x(tick), y: HEIGHT - BOTTOM + strip + 16, "text-anchor": "middle" }, tick)),
    svg("text", { class: "tick", x: x(0.5), y: HEIGHT + strip - 4, "text-anchor": "middle" }, "similarity (Jaccard)"),
  ];
}

/**
 * Draws curves. `curves`: objects with `points` and a `kind`, "now" or "before". `threshold`: a line.
 * `marks`: objects with `similarity`, `low`, `high` and `label`, drawn below the zero line, with a thin line up to the curve of the verdict.
 */
export function sCurve({ curves, threshold, marks = [], label }) {
  const words =
    label ?? `The share of pairs that become candidates and the share that is reported, over their similarity. Threshold ${similarity(threshold)}.`;
  const strip = marks.length === 0 ? 0 : Math.min(marks.length, MARKS) * MARK_HEIGHT + 4;
  const image = svg(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT + strip}`, role: "img", "aria-label": words },
    axes(strip),
    curves.flatMap(({ points, kind = "now" }) => [
      svg("path", { class: `candidate ${kind}`, d: path(points, (point) => point.candidate) }),
      svg("path", { class: `verdict ${kind}`, d: path(points, (point) => point.verdict) }),
    ]),
    threshold === undefined ? null : svg("line", { class: "threshold", x1: x(threshold), x2: x(threshold), y1: y(0), y2: y(1) }),
    marks.map(({ similarity: value, low, high, label }, place) => {
      const height = y(0) + 8 + (place % MARKS) * MARK_HEIGHT;
      return svg(
        "g",
        { class: "mark" },
        svg("title", {}, `\u2068${label}\u2069: ${similarity(value)} (${similarity(low)} to ${similarity(high)})`),
        svg("line", { class: "rise", x1: x(value), x2: x(value), y1: height, y2: y(at(curves[0].points, value, "verdict")) }),
        svg("line", { x1: x(low), x2: x(high), y1: height, y2: height }),
        svg("circle", { cx: x(value), cy: height, r: 4 }),
      );
    }),
  );
  const before = curves.some(({ kind }) => kind === "before");
  return h(
    "figure",
    { class: "curves" },
    image,
    h(
      "figcaption",
      { class: "legend" },
      h("span", { class: "key candidate" }, "becomes a candidate"),
      h("span", { class: "key verdict" }, "is reported as a duplicate"),
      threshold === undefined ? null : h("span", { class: "key threshold" }, "threshold"),
      before ? h("span", { class: "key before" }, "thin: before the change") : null,
    ),
  );
}

/** The value of a curve at a similarity, between its points. */
export function at(points, jaccard, of) {
  const after = points.findIndex((point) => point.jaccard >= jaccard);
  if (after < 0) return points.at(-1)?.[of] ?? NaN;
  if (after === 0 || points[after].jaccard === jaccard) return points[after][of];
  const [a, b] = [points[after - 1], points[after]];
  return a[of] + ((b[of] - a[of]) * (jaccard - a.jaccard)) / (b.jaccard - a.jaccard);
}
