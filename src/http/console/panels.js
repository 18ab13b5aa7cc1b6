// Numbers, bars and charts of /metrics that stay current while a view is open. In: the samples of history.js.
// Out: elements. A number that is one series of /metrics names it in `data-metric`, and its value in `data-value`.

import { lineChart } from "./chart.js";
import { all, growth, onSample, quantiles, rates, sums, times } from "./history.js";
import { quantile } from "./metrics.js";
import { badge, count, fill, h, percent } from "./ui.js";

/** Samples that are further apart than this are not joined by a line. A browser may read each minute in a hidden tab. */
const GAP_SECONDS = 90;

/** The latest value of a series; NaN if /metrics does not have it any more. */
export const value = ({ values }) => values[times().length - 1] ?? NaN;

/** The series of a metric that have a number now. */
export const known = (name, filter) => all(name, filter).filter((one) => !Number.isNaN(value(one)));

/** The name of a series with its labels, as /metrics has it. */
export function keyOf({ name, labels }) {
  const escaped = (text) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
  const inside = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return inside.length === 0 ? name : `${name}{${inside.join(",")}}`;
}

/** The time of the latest sample, in seconds since 1970; NaN before the first. */
export const sampledAt = () => times().at(-1) ?? NaN;

/** For how many seconds the page has samples. */
export const seen = () => (times().length === 0 ? 0 : sampledAt() - times()[0]);

/** How much a counter grew in the last `seconds`, as far as the page has seen it. */
export function grown({ values }, seconds) {
  const at = times();
  const last = at.length - 1;
  let sum = 0;
  for (let place = last; place > 0 && at[last] - at[place - 1] <= seconds + 1; place -= 1) {
    const [before, after] = [values[place - 1], values[place]];
    if (!Number.isNaN(after)) sum += growth(before, after);
  }
  return sum;
}

/** How much the counters of a metric grew in the last `seconds`. */
export const grew = (name, filter, seconds) => all(name, filter).reduce((sum, one) => sum + grown(one, seconds), 0);

/** A quantile of what a histogram observed in the last `seconds`; NaN if it observed nothing. */
export function quantileOver(q, name, filter, seconds) {
  const buckets = new Map();
  for (const one of all(`${name}_bucket`, filter)) {
    const bound = one.labels.le === "+Inf" ? Infinity : Number(one.labels.le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + grown(one, seconds));
  }
  return quantile(q, [...buckets].sort(([a], [b]) => a - b));
}

/** A column for a chart: the mean of what a histogram observed in the 30 seconds before each sample. */
export function means(name, filter) {
  const counts = rates(`${name}_count`, filter);
  return rates(`${name}_sum`, filter).map((sum, place) => (counts[place] > 0 ? sum / counts[place] : NaN));
}

/** A column for a chart: the share of one rate in another. */
export function shares(part, whole) {
  return part.map((rate, place) => (whole[place] > 0 ? rate / whole[place] : NaN));
}

/** A column for a chart: the highest value of the series of a metric at each sample. */
export function highest(name, filter) {
  const found = all(name, filter);
  const higher = (most, value) => (value > most || Number.isNaN(most) ? value : most);
  return times().map((_, place) => found.reduce((most, { values }) => higher(most, values[place]), NaN));
}

/** Lines of a chart: quantiles of a histogram, over the minute before each sample. */
export const quantileLines = (name, filter, list) =>
  list.map((q) => ({ name: q === 0.5 ? "median" : `p${+(100 * q).toFixed(1)}`, column: () => quantiles(q, name, filter) }));

/** A bar whose parts are shares of a whole. `parts`: objects with `name`, `value` and `line`, the number of a colour. */
export function mixBar(label, parts) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  const share = (part) => percent(part.value / whole);
  const words = parts.map((part) => `${part.name} ${share(part)}`).join(", ");
  const line = (part) => h("li", { class: `line-${part.line}` }, part.name, " ", h("strong", {}, share(part)));
  const piece = (part) => h("span", { class: `fill-${part.line}`, style: { "flex-grow": part.value / whole } });
  return h(
    "figure",
    { class: "mix" },
    h("div", { class: "mix-bar", role: "img", "aria-label": `${label}: ${words}` }, parts.map(piece)),
    h("ul", { class: "legend" }, parts.map(line)),
  );
}

/** Replaces what an element contains, but keeps how far its table is scrolled, and the focus on that table. */
export function renew(element, ...children) {
  const before = element.querySelector(".scroll");
  const [left, focused] = [before?.scrollLeft ?? 0, before !== null && before === document.activeElement];
  fill(element, ...children);
  const after = element.querySelector(".scroll");
  if (after) after.scrollLeft = left;
  if (focused) after?.focus({ preventScroll: true });
}

/**
 * Makes parts that are brought up to date with each sample, until `signal` is aborted. `minutes`: the period of charts.
 * While the tab is hidden, nothing is drawn.
 */
export function board(signal, minutes = 5) {
  const updates = [];
  const ready = () => times().length > 0 && !document.hidden;
  const refresh = () => ready() && updates.forEach((update) => update());

  /** Calls `update` now and after each sample. `list`: the updates to which it is added. */
  function show(update, list = updates) {
    list.push(update);
    if (ready()) update();
  }

  /** A number: the value of a series, or the sum of several. */
  function number(name, filter, format = count, list = updates) {
    const shown = h("span", { class: "metric" }, "–");
    show(() => {
      const [every, found] = [all(name, filter), known(name, filter)];
      const one = every.length === 1 ? every[0] : found.length === 1 ? found[0] : null;
      const sum = one ? value(one) : found.reduce((total, each) => (total || 0) + value(each), NaN);
      shown.textContent = format(sum);
      for (const attribute of ["data-metric", "data-value"]) shown.toggleAttribute(attribute, one !== null);
      if (one) Object.assign(shown.dataset, { metric: keyOf(one), value: String(sum) });
    }, list);
    return shown;
  }

  /** Parts that are replaced together: `number` and `show` as above, and `clear()`, which ends all of them. */
  function group() {
    const list = [];
    show(() => list.forEach((update) => update()));
    return {
      number: (name, filter, format) => number(name, filter, format, list),
      show: (update) => show(update, list),
      clear: () => (list.length = 0),
    };
  }

  /** How much of a maximum is used. `used`, `max`: names of metrics without labels. `high`: from where it is a warning. */
  function gauge({ title, used, max, format = count, hint, high = 0.8 }) {
    const bar = h("progress", { max: "1", value: "0", "aria-label": `${title}: the share that is used` });
    const share = h("strong", {});
    const state = h("span", {});
    show(() => {
      const ratio = sums(used).at(-1) / sums(max).at(-1);
      bar.value = Number.isFinite(ratio) ? Math.min(1, ratio) : 0;
      share.textContent = percent(ratio);
      fill(state, ratio > high ? badge("high", "warn") : null);
    });
    const words = h("p", {}, number(used, {}, format), " of ", number(max, {}, format), " · ", share, " ", state);
    return h("div", { class: "gauge" }, h("h3", {}, title), bar, words, h("p", { class: "hint" }, hint));
  }

  /**
   * A chart. `lines`: objects with `name` and `column()`, which has a number for each sample. It is drawn only while it is
   * near what the person sees: an hour of many collections takes long to add up.
   */
  function chart({ title, format, lines, hint }) {
    const made = lineChart({ title, format, names: lines.map((line) => line.name), signal });
    let near = false;
    const draw = () => near && made.update(...inPeriod(lines.map((line) => line.column()), minutes), minutes * 60);
    const seeing = new IntersectionObserver((entries) => {
      near = entries.at(-1).isIntersecting;
      if (ready()) draw();
    }, { rootMargin: "300px" });
    seeing.observe(made.element);
    signal.addEventListener("abort", () => seeing.disconnect());
    show(draw);
    return h("div", { class: "panel" }, made.element, hint ? h("p", { class: "hint" }, hint) : null);
  }

  /** Changes the period of the charts. */
  function setPeriod(next) {
    minutes = next;
    refresh();
  }

  onSample(refresh, signal);
  document.addEventListener("visibilitychange", refresh, { signal });
  return { show, number, group, gauge, chart, setPeriod, period: () => minutes };
}

/** The times and the columns of the last minutes, with a gap where the server was not read for long. */
function inPeriod(columns, minutes) {
  const at = times();
  const first = Math.max(0, at.findIndex((time) => time >= at.at(-1) - minutes * 60));
  const [shown, parts] = [[], columns.map(() => [])];
  for (let place = first; place < at.length; place += 1) {
    if (place > first && at[place] - at[place - 1] > GAP_SECONDS) {
      shown.push((at[place] + at[place - 1]) / 2);
      parts.forEach((part) => part.push(NaN));
    }
    shown.push(at[place]);
    parts.forEach((part, line) => part.push(columns[line][place]));
  }
  return [shown, parts];
}
