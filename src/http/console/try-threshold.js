// The threshold of a check, in the address as `threshold`. Without it, the collection's own threshold is used.

import { button, field, h } from "./ui.js";

/**
 * Makes the control. `change()` is called after each change. Returns the element, `value()` and `become(value)`; null is
 * the collection's threshold.
 */
export function thresholdField({ params, setParams }, { threshold: own }, change) {
  const slider = h("input", { type: "range", min: "0.01", max: "1", step: "0.01" });
  const output = h("output", {});
  const reset = button("Use the collection's", () => become(null), { kind: "quiet" });

  /** A threshold in the address that is not possible counts as none. */
  function value() {
    const given = Number(params.get("threshold") ?? NaN);
    return given > 0 && given <= 1 ? given : null;
  }

  function show() {
    const other = value();
    slider.value = String(other ?? own);
    output.textContent = `${other ?? own}${other === null ? ", the collection's threshold" : `; the collection has ${own}`}`;
    slider.setAttribute("aria-valuetext", output.textContent);
    reset.hidden = other === null;
  }

  function become(next) {
    setParams({ threshold: next === null || next === own ? null : String(next) });
    show();
    if (document.activeElement !== slider) slider.focus();
    change();
  }

  slider.addEventListener("input", () => become(Number(slider.value)));
  const hint = "A document matches if its similarity is at least this. It changes only the check, not the collection.";
  const element = field("Threshold", slider, hint);
  element.querySelector("label").after(h("div", { class: "row threshold-now" }, output, reset));
  show();
  return { element, value, become };
}
