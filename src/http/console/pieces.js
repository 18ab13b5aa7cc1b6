// Parts that several views share: content that arrives later, long lists, commands to copy, and work that is repeated.

import { ROOT, key, quoted } from "./api.js";
import { latest } from "./history.js";
import { button, copy, count, failure, fill, h, idText, table } from "./ui.js";

const ID_SHOWN = 120;
const ROWS_SHOWN = 50;

/** An id or a name, of which only the beginning is shown if it is long. */
export function briefId(id) {
  const letters = [...id];
  return letters.length > ID_SHOWN
    ? idText(`${letters.slice(0, ID_SHOWN).join("")}… (${letters.length} characters)`)
    : idText(id);
}

/** The latest value of a metric, in words that `format` makes. Attributes name the metric and its value. */
export function measured(name, labels = {}, format = count) {
  const value = latest(name, labels);
  const inside = Object.entries(labels)
    .map(([label, text]) => `${label}="${text}"`)
    .join(",");
  return h("span", { "data-metric": inside ? `${name}{${inside}}` : name, "data-value": String(value) }, format(value));
}

/** The beginning of an id, for the label of a control. */
export const spoken = (id) => [...id].slice(0, ID_SHOWN).join("");

/**
 * An element whose content arrives later. `load` returns a promise of the content. If it fails with a Problem, the
 * element shows it, or what `explain(problem)` returns for it.
 */
export function later(load, signal, explain = () => null) {
  const place = h("div", { class: "later" });
  const run = async () => {
    fill(place, h("p", { class: "hint", role: "status" }, "Loading…"));
    try {
      const content = await load();
      if (!signal.aborted) fill(place, content);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.name !== "Problem") throw problem;
      fill(place, explain(problem) ?? failure(problem, run));
    }
  };
  run();
  return place;
}

/** A table that begins with 50 rows, and a button that shows more of them. */
export function longTable(caption, columns, rows) {
  const place = h("div");
  const show = (shown) => {
    const rest = rows.length - shown;
    const more = button(`Show ${Math.min(rest, ROWS_SHOWN)} more of ${rows.length}`, () => show(shown + ROWS_SHOWN));
    fill(place, table(caption, columns, rows.slice(0, shown)), rest > 0 ? h("div", { class: "row end" }, more) : null);
  };
  show(ROWS_SHOWN);
  return place;
}

/** A command for a shell, with a button that copies it. */
export function command(text) {
  return h(
    "div",
    { class: "command" },
    h("pre", { dir: "ltr" }, text),
    button("Copy", () => copy(text, "The command"), { kind: "quiet", "aria-label": "Copy the command" }),
  );
}

/** A text as one word of a shell, without quotes if it needs none. */
export const word = (text) => (/^[\w./:@%+,=-]+$/.test(text) ? text : quoted(text));

/** The options with which a command of hapax asks this server. */
export const ofServer = () =>
  `--server ${word(ROOT.href.replace(/\/$/, ""))}${key.get() ? " --api-key-file hapax.key" : ""}`;

/** A choice of at most two values of a list: a third choice replaces the older one. `changed` gets the chosen values. */
export function pairOf(chosen, changed) {
  const boxes = new Map();
  let values = chosen;
  const tell = () => {
    for (const [value, box] of boxes) box.checked = values.includes(value);
    changed(values);
  };
  return {
    values: () => values,
    /** A checkbox for a value. `label` says to a screen reader what it chooses. */
    box(value, label) {
      const box = h("input", { type: "checkbox", "aria-label": label, checked: values.includes(value) });
      box.addEventListener("change", () => {
        values = box.checked ? [...values, value].slice(-2) : values.filter((one) => one !== value);
        tell();
      });
      boxes.set(value, box);
      return box;
    },
  };
}

/**
 * Calls `act` now, and again and again, until `signal` is aborted. `act` returns a promise of the pause until the next
 * call, in milliseconds. Nothing is called while the page is not visible.
 */
export function repeat(act, signal) {
  let timer;
  const run = async () => {
    const pause = document.hidden ? 2000 : await act();
    if (!signal.aborted) timer = setTimeout(run, pause);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
}

/** Whether the key of this tab may use all collections. */
export const allCollections = (access) => !access.key?.collections;

/** The links to the two views of one collection's duplicates, for `tabs()`. */
export function duplicateTabs({ collection, href }, current) {
  const of = (view, title) => [href(view, { collection }), title, view === current];
  return [of("clusters", "Clusters"), of("buckets", "Buckets and boilerplate")];
}
