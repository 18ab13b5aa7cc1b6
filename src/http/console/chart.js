// Charts of numbers over time. In: times and columns of numbers. Out: an element with a chart and a legend of the latest
// values. The lines are drawn by uPlot (uplot-license.txt).

import uPlot from "./uplot.js";
import { fill, h } from "./ui.js";

const HEIGHT = 170;
const COLOURS = 6;

/** The colour that a variable has in the present theme. A canvas knows no variables. */
function colour(name, element) {
  element.style.color = `var(${name})`;
  return getComputedStyle(element).color;
}

/** The clock times of ticks; with seconds if the ticks are closer than a minute. */
function clock(ticks, step) {
  const shown = { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined, hourCycle: "h23" };
  return ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString("en-GB", shown));
}

/**
 * Makes a chart. `format` turns a number into words. `names` are the names of the lines. `update(times, columns, seconds)`
 * draws; the axis of the time has the last `seconds`. `signal` ends it.
 */
export function lineChart({ title, format, names, signal }) {
  const canvas = h("div", { class: "canvas", "aria-hidden": "true" });
  const legend = h("ul", { class: "legend" });
  const element = h("figure", { class: "chart" }, h("figcaption", {}, title), canvas, legend);
  let plot = null;
  let data = [[], ...names.map(() => [])];
  let period = 300;

  /** The first and the last time of the axis. */
  function range() {
    const last = data[0].at(-1) ?? Date.now() / 1000;
    return [last - period, last];
  }

  function draw() {
    plot?.destroy();
    const width = canvas.clientWidth;
    if (width === 0) return;
    const axis = { stroke: colour("--soft", canvas), grid: { stroke: colour("--grid", canvas), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    plot = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { range }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.1 : 1] } },
        axes: [{ ...axis, space: 70, values: (_, ticks, _axis, _space, step) => clock(ticks, step) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => format(tick)) }],
        series: [{}, ...names.map((name, at) => ({ label: name, stroke: colour(`--line-${(at % COLOURS) + 1}`, canvas), width: 1.5, spanGaps: false, points: { show: false } }))],
        hooks: { setCursor: [({ cursor }) => tell(cursor.idx ?? data[0].length - 1)] },
      },
      data,
      canvas,
    );
  }

  function tell(place) {
    fill(legend, names.map((name, at) => h("li", { class: `line-${(at % COLOURS) + 1}` }, h("bdi", {}, name), " ", h("strong", {}, format(data[at + 1][place] ?? NaN)))));
  }

  const resized = new ResizeObserver(draw);
  resized.observe(canvas);
  document.addEventListener("themechange", draw, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal });
  signal?.addEventListener("abort", () => {
    resized.disconnect();
    plot?.destroy();
  });
  return {
    element,
    update(times, columns, seconds) {
      period = seconds;
      // uPlot leaves a gap for null.
      data = [times, ...columns.map((column) => column.map((value) => (Number.isFinite(value) ? value : null)))];
      if (plot) plot.setData(data);
      else draw();
      tell(times.length - 1);
    },
  };
}
