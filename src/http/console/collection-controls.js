// Controls for the settings of collections: choices with their meaning, numbers, sliders, durations.

import { field, fill, h, newId, select } from "./ui.js";

const UNITS = [
  ["86400", "days"],
  ["3600", "hours"],
  ["60", "minutes"],
  ["1", "seconds"],
];

/**
 * A group of radio buttons, each with its meaning below it. `options`: [value, name, sentences]. `change` gets the value.
 * `barred`: values that cannot be chosen, with the reason. Returns { element, set(value) }, where `set` only shows a value.
 */
export function choices(legend, options, value, change, { hint, barred = {} } = {}) {
  const name = newId("choice");
  const inputs = new Map();
  const lines = options.map(([one, label, about]) => {
    const id = newId("choice");
    const input = h("input", {
      type: "radio",
      id,
      name,
      value: one,
      "aria-describedby": `${id}-about`,
      disabled: one in barred,
      on: { change: () => change(one) },
    });
    input.checked = one === String(value);
    inputs.set(one, input);
    const why = one in barred ? ` ${barred[one]}` : "";
    return h(
      "div",
      { class: "choice" },
      input,
      h("label", { for: id }, label),
      h("p", { class: "hint", id: `${id}-about` }, about + why),
    );
  });
  const about = hint ? h("p", { class: "hint" }, hint) : null;
  return {
    element: h("fieldset", { class: "choices" }, h("legend", {}, legend), about, lines),
    set: (next) => (inputs.get(String(next)).checked = true),
  };
}

/** A select whose hint says what the chosen option means. `options`: [value, name, sentences]. */
export function explained(label, options, value, change) {
  const about = (one) => options.find(([of]) => of === one)?.[2] ?? "";
  const control = select(options, String(value), (next) => {
    hint.textContent = about(next);
    change(next);
  });
  const element = field(label, control, about(String(value)));
  const hint = element.querySelector(".hint");
  return element;
}

/** A field for a number. `change` gets the number, or NaN. */
export function number(label, value, change, { hint, min, max, step = "any" } = {}) {
  const input = h("input", { type: "number", value: String(value), min, max, step, inputmode: "decimal" });
  input.addEventListener("input", () => change(input.value === "" ? NaN : Number(input.value)));
  return field(label, input, hint);
}

/** A field for a duration. `change` gets seconds; 0 if there is no number, NaN if it is not one. */
export function lifetime(label, seconds, change, hint) {
  const [unit] = UNITS.find(([size]) => seconds > 0 && seconds % Number(size) === 0) ?? UNITS[0];
  const input = h("input", {
    type: "number",
    min: "0",
    step: "any",
    value: seconds > 0 ? String(seconds / Number(unit)) : "",
    placeholder: "forever",
  });
  const units = select(UNITS, seconds > 0 ? unit : UNITS[0][0]);
  units.setAttribute("aria-label", `Unit of: ${label}`);
  const tell = () => change(input.validity.badInput ? NaN : Number(input.value) * Number(units.value));
  input.addEventListener("input", tell);
  units.addEventListener("change", tell);
  const element = field(label, input, hint);
  const pair = h("div", { class: "pair" });
  input.replaceWith(pair);
  pair.append(input, units);
  return element;
}

/**
 * A slider with a field for the same number. `change` gets the number, or NaN. Returns { element, set(value) }, where `set`
 * also calls `change`.
 */
export function slider(label, { min, max, sliderMax = max, step = 1, value, hint, change }) {
  const exact = h("input", { type: "number", min, max, step, value: String(value), "aria-label": `${label}, as a number` });
  const range = h("input", { type: "range", min, max: Math.max(sliderMax, value), step });
  range.value = String(value);
  const tell = (from, to) => {
    to.value = from.value;
    change(from.value === "" ? NaN : Number(from.value));
  };
  range.addEventListener("input", () => tell(range, exact));
  exact.addEventListener("input", () => tell(exact, range));
  const element = field(label, range, hint);
  const pair = h("div", { class: "pair slide" });
  range.replaceWith(pair);
  pair.append(range, exact);
  return {
    element,
    set(next) {
      range.max = Math.max(Number(range.max), next);
      range.value = exact.value = String(next);
      change(next);
    },
  };
}

/** Facts about each part of something, as a table with a heading for each row. `rows`: [name, value, meaning]. */
export function explainedTable(caption, rows) {
  const line = ([name, value, meaning]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value), h("td", { class: "meaning" }, meaning));
  const head = ["Setting", "Value", "What it means"].map((title) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "explained" },
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, rows.map(line)),
    ),
  );
}

/** Shows an element or not. */
export const shown = (element, whether) => ((element.hidden = !whether), element);

/** A place that is filled later: { element, show(...children) }. It tells screen readers what is filled in. */
export function place(kind = "place") {
  const element = h("div", { class: kind, "aria-live": "polite" });
  return { element, show: (...children) => fill(element, ...children) };
}
