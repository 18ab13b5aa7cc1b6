// The text of /metrics -> its samples. In: the text format of Prometheus. Out: names, labels, values.

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { n: "\n", '"': '"', "\\": "\\" };

function number(text) {
  if (text === "+Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  return Number(text);
}

/** Calls `each(key, name, labels, value)` for each sample. `key` is the name with its labels; `labels()` reads them. */
export function parse(text, each) {
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const [, name, inside = "", value] = found;
    each(inside === "" ? name : `${name}{${inside}}`, name, () => labelsOf(inside), number(value));
  }
}

function labelsOf(inside) {
  const labels = {};
  for (const [, name, value] of inside.matchAll(LABEL)) {
    labels[name] = value.replace(/\\(.)/g, (_, char) => ESCAPES[char] ?? char);
  }
  return labels;
}

/**
 * The value below which a share `q` of the observations lies, as `histogram_quantile` of Prometheus computes it.
 * `buckets`: pairs of an upper bound and the number of observations up to it, in order of the bounds.
 */
export function quantile(q, buckets) {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return NaN;
  const rank = q * total;
  let [below, before] = [0, 0];
  for (const [bound, upTo] of buckets) {
    if (upTo >= rank) {
      if (bound === Infinity) return below;
      return upTo === before ? bound : below + ((bound - below) * (rank - before)) / (upTo - before);
    }
    [below, before] = [bound, upTo];
  }
  return below;
}
