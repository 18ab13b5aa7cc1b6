// Texts with passages that are marked, and ids that may be long. All of it is inert text.

import { cut } from "./bytes.js";
import { command } from "./pieces.js";
import { curl, of } from "./api.js";
import { button, count, h, idText, percent } from "./ui.js";

/** How many units of a text are shown at once. */
const STEP = 50_000;
const ID_SHORT = 160;
const NO_TEXTS =
  "This collection keeps no texts, so the passages of its documents cannot be shown. Only a new collection can keep texts. " +
  "Create one, and store the documents there:";

/** An id in at most three lines. The whole of a long one is shown if the person asks for it. */
export function shortId(id) {
  const letters = id.length > ID_SHORT ? [...id] : [];
  if (letters.length <= ID_SHORT) return idText(id);
  const start = letters.slice(0, ID_SHORT - 40).join("");
  const summary = h("summary", {}, idText(`${start}…`), ` (${count(letters.length)} characters)`);
  return h("details", { class: "long-id" }, summary, idText(id));
}

/**
 * A text whose `spans` (places in the string) are marked, with buttons that go from one to the next. A long text is shown
 * in parts. `label`: what the text is, in words.
 */
export function markedText(label, text, spans) {
  const box = h("div", { class: "text marked", dir: "auto", tabindex: "0", role: "group", "aria-label": label });
  const rest = button("", more, { kind: "quiet" });
  const place = h("span", { class: "hint", "aria-live": "polite" });
  const marks = [];
  let shown = 0;
  let current = -1;

  function more() {
    const low = text.charCodeAt(shown + STEP);
    const to = Math.min(text.length, shown + STEP + (low >= 0xdc00 && low < 0xe000 ? 1 : 0));
    for (const [piece, number] of cut(text, spans, shown, to)) {
      const part = number < 0 ? piece : h("mark", {}, piece);
      if (number >= 0) marks[number] ??= part;
      box.append(part);
    }
    shown = to;
    rest.textContent = `Show more of the text (${count(text.length - shown)} characters are left)`;
    rest.hidden = shown >= text.length;
  }

  function step(by) {
    marks[current]?.classList.remove("current");
    current = (Math.max(current, by < 0 ? 0 : -1) + by + spans.length) % spans.length;
    while (!marks[current]) more();
    marks[current].classList.add("current");
    box.scrollTop = marks[current].offsetTop - box.clientHeight / 3;
    place.textContent = `Passage ${count(current + 1)} of ${count(spans.length)}`;
  }

  more();
  const length = spans.reduce((sum, [from, to]) => sum + to - from, 0);
  place.textContent = `${passagesWords(spans.length)}: ${percent(text.length ? length / text.length : 0, 0)} of the text`;
  const walk = spans.length > 1 ? [button("Previous", () => step(-1)), button("Next", () => step(1))] : [];
  return h("div", { class: "marked-text" }, h("div", { class: "row" }, place, walk), box, rest);
}

const passagesWords = (number) => (number === 1 ? "1 marked passage" : `${number === 0 ? "No" : count(number)} marked passages`);

/** Says why passages cannot be shown, and how to get them. */
export function noTexts({ name, threshold, spec }) {
  const shingle = /shingle=(\w+)/.exec(spec)?.[1];
  const create = curl("PUT", of(`${name.slice(0, 56)}-texts`), { body: { keep: "text", threshold, shingle } });
  return [h("p", {}, NO_TEXTS), command(create)];
}

/** A paragraph in small letters. */
export const hint = (...words) => h("p", { class: "hint" }, ...words);

/** Shows which of the buttons in a list is the pressed one. */
export function press(list, pressed) {
  for (const one of list.querySelectorAll("button[aria-pressed]")) one.setAttribute("aria-pressed", String(one === pressed));
}
