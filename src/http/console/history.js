// The metrics of the last hour, held in this page. In: /metrics, read every five seconds. Out: values, rates and
// quantiles, one for each time at which the metrics were read. After a reload, the hour begins again.

import { get } from "./api.js";
import { parse, quantile } from "./metrics.js";

const EVERY_MS = 5000;
const SAMPLES_MAX = 3600_000 / EVERY_MS;

/** The times of the samples, in seconds since 1970. */
const at = [];
/** Each series by its name with labels: { name, labels, values }, where `values` has NaN before its first sample. */
const series = new Map();
const byName = new Map();
const listeners = new Set();
let timer = null;

/** Begins to read the metrics, unless they are read already. */
export function start() {
  if (timer === null) {
    timer = setInterval(read, EVERY_MS);
    read();
  }
}

/** Calls `listener` after each sample, until `signal` is aborted. */
export function onSample(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener("abort", () => listeners.delete(listener));
  if (at.length > 0) listener();
}

async function read() {
  let text;
  try {
    text = await get("/metrics");
  } catch {
    // The frame of the page says that the server does not answer. The time without samples is a gap in the charts.
    return;
  }
  add(Date.now() / 1000, text);
  for (const listener of listeners) listener();
}

/** Adds a sample. Exported for tests. */
export function add(seconds, text) {
  if (at.length === SAMPLES_MAX) {
    at.shift();
    for (const one of series.values()) one.values.copyWithin(0, 1);
  }
  const place = at.push(seconds) - 1;
  for (const one of series.values()) one.values[place] = NaN;
  parse(text, (key, name, labels, value) => {
    let one = series.get(key);
    if (!one) {
      one = { name, labels: labels(), values: new Float64Array(SAMPLES_MAX).fill(NaN) };
      series.set(key, one);
      byName.set(name, [...(byName.get(name) ?? []), one]);
    }
    one.values[place] = value;
  });
}

export const times = () => at;

/** The series of a metric whose labels are those of `filter`. A value of `filter` may be a function. */
export function all(name, filter = {}) {
  const fits = ({ labels }) => Object.entries(filter).every(([label, value]) => (typeof value === "function" ? value(labels[label]) : labels[label] === value));
  return (byName.get(name) ?? []).filter(fits);
}

/** The values of a label, sorted. */
export const labelValues = (name, label) => [...new Set((byName.get(name) ?? []).map(({ labels }) => labels[label]))].sort();

/** The latest sum of the series; NaN if there are none. */
export function latest(name, filter) {
  const found = all(name, filter).map(({ values }) => values[at.length - 1]).filter((value) => !Number.isNaN(value));
  return found.length === 0 ? NaN : found.reduce((sum, value) => sum + value, 0);
}

/** The sums of the series, one for each sample. */
export function sums(name, filter) {
  const found = all(name, filter);
  return at.map((_, place) => {
    const values = found.map(({ values }) => values[place]).filter((value) => !Number.isNaN(value));
    return values.length === 0 ? NaN : values.reduce((sum, value) => sum + value, 0);
  });
}

/**
 * How much a counter grew from one sample to the next. If it fell, the server was started again, and it began at 0. If it
 * was not there before, it began at 0, too: many counters appear when they count for the first time.
 */
export const growth = (before, after) => (after >= before ? after - before : after);

/** How much counters grew together up to each sample. */
function grownUpTo(found) {
  const grown = new Float64Array(at.length);
  for (const { values } of found) {
    for (let place = 1; place < at.length; place += 1) {
      const [before, after] = [values[place - 1], values[place]];
      if (!Number.isNaN(after)) grown[place] += growth(before, after);
    }
  }
  for (let place = 1; place < at.length; place += 1) grown[place] += grown[place - 1];
  return grown;
}

/** The first sample of the window that ends with `place`. */
function begin(place, window) {
  let first = place;
  while (first > 0 && at[place] - at[first] < window) first -= 1;
  return first;
}

/** How fast counters grow, in 1/s, over the window before each sample. */
export function rates(name, filter, window = 30) {
  const grown = grownUpTo(all(name, filter));
  return at.map((_, place) => {
    const first = begin(place, window);
    return first === place ? NaN : (grown[place] - grown[first]) / (at[place] - at[first]);
  });
}

/** A quantile of a histogram, over the window before each sample. NaN if nothing was observed in it. */
export function quantiles(q, name, filter, window = 60) {
  const found = all(`${name}_bucket`, filter);
  const bounds = [...new Set(found.map(({ labels }) => labels.le))].map((le) => [le === "+Inf" ? Infinity : Number(le), le]);
  bounds.sort(([a], [b]) => a - b);
  const of = bounds.map(([bound, le]) => [bound, grownUpTo(found.filter(({ labels }) => labels.le === le))]);
  return at.map((_, place) => {
    const first = begin(place, window);
    if (first === place) return NaN;
    return quantile(q, of.map(([bound, grown]) => [bound, grown[place] - grown[first]]));
  });
}
