// The answer to a comparison. Out: how similar the two documents are, and their texts with the passages that they share.

import { gaps, spansOf } from "./bytes.js";
import { hint, markedText, noTexts } from "./passages.js";
import { shingleWords } from "./try-words.js";
import { card, count, facts, fill, h, intervalBar, marked, percent, progress, select, similarity } from "./ui.js";

const MARKS = [
  ["shared", "Mark what both have"],
  ["different", "Mark what differs"],
];
const LEGENDS = {
  shared: "Marked and underlined: the other document has it, too.",
  different:
    "Marked and underlined: the other document does not have it. A mark without words is a place where the other document " +
    "has something.",
};
const LINE =
  "The line goes from 0 to 1. The thick part is the interval, the tick in it is the estimate, and the dashed line is the " +
  "threshold.";
const JACCARD =
  "A shingle that occurs several times counts once. The Jaccard similarity is the number of shingles in both, divided by " +
  "the number in at least one.";
const NO_SHINGLES =
  "This needs the shingles of both documents, and so does the exact similarity. This collection keeps only the signatures " +
  "of its documents. A collection with keep=shingles or keep=text has the shingles.";
const NO_TEXT =
  "The server has no text of at least one of the documents: it was stored as a set or as a signature, so only the numbers " +
  "are known.";
const CANONICAL = "Of a stored document, the text is shown as hapax compares it, for example without capital letters.";

function verdictWords({ estimate, exact }, { threshold, verify }) {
  const isExact = verify !== "estimate" && exact !== undefined;
  const value = isExact ? exact.jaccard : estimate.similarity;
  const decides = verify === "estimate" ? "This collection decides by signatures (verification: estimate). " : "";
  const isDuplicate = value >= threshold;
  const number = isExact ? "The exact similarity" : "The estimate";
  const place = `${isDuplicate ? "reaches" : "is below"} the threshold of the collection, ${similarity(threshold)}`;
  return `${decides}${number} ${place}, so the two are ${isDuplicate ? "duplicates" : "not duplicates"}.`;
}

function share(name, value, shared, all) {
  return h(
    "div",
    {},
    h("p", {}, h("strong", {}, percent(value)), ` of ${name}: ${count(shared)} of ${count(all)} shingles`),
    progress(value, `${percent(value)} of ${name}`),
  );
}

function numbers(answer, info) {
  const { estimate, exact } = answer;
  const { similarity: value, low, high } = estimate;
  return card(
    "How similar they are",
    h("p", {}, verdictWords(answer, info)),
    facts([
      ["Jaccard, exact", exact ? similarity(exact.jaccard) : "not available"],
      ["Jaccard, estimated", similarity(value)],
      ["95 % interval of the estimate", `${similarity(low)} to ${similarity(high)}`],
      exact ? ["Shingles in both", count(exact.intersection)] : null,
      exact ? ["Shingles of A", count(exact.shingles_a)] : null,
      exact ? ["Shingles of B", count(exact.shingles_b)] : null,
    ]),
    intervalBar({ ...estimate, threshold: info.threshold }),
    hint(LINE),
    hint(`${shingleWords(info)} ${JACCARD}`),
  );
}

function containment({ exact }) {
  const words = exact
    ? [
        share("A is in B", exact.containment_a_in_b, exact.intersection, exact.shingles_a),
        share("B is in A", exact.containment_b_in_a, exact.intersection, exact.shingles_b),
        hint("If nearly all of one document is in the other, it is a part of it, even if the similarity is low."),
      ]
    : h("p", {}, NO_SHINGLES);
  return card("How much of each is in the other", words);
}

/** Says why there are no passages. */
function whyNone({ refused }, { may }, info, drafts) {
  if (!may("read")) return h("p", {}, "Passages are shown to keys with the scope read.");
  if (refused !== undefined) return h("p", {}, "The passages cannot be shown. The server says: ", h("bdi", {}, marked(refused)), ".");
  const isStored = [drafts.a, drafts.b].some(({ kind }) => kind === "id");
  if (isStored && info.keep !== "text") return noTexts(info);
  return h("p", {}, NO_TEXT);
}

function sideBySide({ a, b }, { params, setParams }) {
  const place = h("div", { class: "columns" });
  const legend = h("p", { class: "hint" });
  const choice = select(MARKS, params.get("mark") === "different" ? "different" : "shared", (value) => {
    setParams({ mark: value === "different" ? value : null });
    show();
  });
  choice.setAttribute("aria-label", "What is marked");

  function side(name, { text, shared }) {
    const spans = spansOf(text, shared);
    const marked = choice.value === "shared" ? spans : gaps(text, spans);
    return h("div", {}, h("h3", {}, name), markedText(`The text of ${name}`, text, marked));
  }

  function show() {
    legend.textContent = `${LEGENDS[choice.value]} ${CANONICAL}`;
    fill(place, side("A", a), side("B", b));
  }

  show();
  return [h("div", { class: "row" }, choice), legend, place];
}

/** Shows an answer of `compare`. `drafts`: the two sides that were compared. */
export function compared(answer, info, context, drafts) {
  const passages = answer.passages ? sideBySide(answer.passages, context) : whyNone(answer, context, info, drafts);
  return [h("div", { class: "columns" }, numbers(answer, info), containment(answer)), card("Passages", passages)];
}
