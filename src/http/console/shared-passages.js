// What two stored documents share. In: the answer of POST …/compare. Out: the shared passages as quotes, or, if the
// collection keeps no texts, the numbers of the comparison.

import { spansOf } from "./bytes.js";
import { noTexts } from "./passages.js";
import { count, facts, h, intervalBar, percent, similarity } from "./ui.js";

const QUOTES_SHOWN = 5;
const LETTERS_SHOWN = 800;

/** The shared parts of a text, the longest first, and which share of the text they are. */
function passages({ text, shared }) {
  const parts = spansOf(text, shared)
    .map(([from, to]) => text.slice(from, to).trim())
    .sort((a, b) => b.length - a.length);
  return { parts, ratio: text.length === 0 ? 0 : parts.reduce((sum, part) => sum + part.length, 0) / text.length };
}

/** Shows an answer of `compare` in a collection. `about` describes the collection. */
export function sharedBy(answer, about) {
  return answer.passages ? quotes(answer.passages) : numbers(answer, about);
}

function quotes({ a, b }) {
  const [one, other] = [passages(a), passages(b)];
  const rest = one.parts.slice(QUOTES_SHOWN);
  if (one.parts.length === 0) {
    return h("p", {}, "These two documents share no shingle. They are in one bucket only by chance.");
  }
  return [
    h(
      "p",
      {},
      `Together, the shared passages are ${percent(one.ratio, 0)} of the first document and ${percent(other.ratio, 0)} ` +
        "of the second one. The longest is shown first.",
    ),
    one.parts.slice(0, QUOTES_SHOWN).map(quote),
    rest.length > 0
      ? h(
          "details",
          { class: "more" },
          h("summary", {}, `${count(rest.length)} shorter passages`),
          rest.slice(0, 100).map(quote),
        )
      : null,
    h("p", { class: "hint" }, "The text is shown as hapax compares it: for example, without capital letters."),
  ];
}

function quote(text) {
  const letters = [...text];
  const long = letters.length > LETTERS_SHOWN;
  return h(
    "figure",
    { class: "quote" },
    h("blockquote", { dir: "auto" }, long ? `${letters.slice(0, LETTERS_SHOWN).join("")}…` : text),
    h(
      "figcaption",
      { class: "hint" },
      `${count(text.split(/\s+/).length)} words, ${count(letters.length)} characters`,
      long ? `, of which the first ${LETTERS_SHOWN} are shown` : null,
    ),
  );
}

function numbers({ estimate, exact }, about) {
  const { similarity: value, low, high } = estimate;
  return [
    intervalBar({ low, similarity: value, high, threshold: about.threshold }),
    facts([
      ["Similarity by the signatures", similarity(value)],
      ["In 95 of 100 cases", `${similarity(low)} to ${similarity(high)}`],
      exact ? ["Similarity by the shingles", similarity(exact.jaccard)] : null,
      exact ? ["Shingles in both", count(exact.intersection)] : null,
      exact ? ["Of the first document", percent(exact.containment_a_in_b)] : null,
      exact ? ["Of the second document", percent(exact.containment_b_in_a)] : null,
    ]),
    noTexts(about),
  ];
}
