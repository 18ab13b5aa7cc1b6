// The matches of a text, and the passages that it shares with one of them. In: a verdict. Out: two elements.

import { of, post } from "./api.js";
import { attempt } from "./attempt.js";
import { spansOf } from "./bytes.js";
import { hint, markedText, noTexts, press, shortId } from "./passages.js";
import { contentOf, drafts } from "./source.js";
import { button, fill, h, intervalBar, marked, percent, similarity, time } from "./ui.js";

const LEGEND =
  "Each line goes from similarity 0 to 1. The thick part is the 95 % interval, the tick in it is the similarity, and the " +
  "dashed line is the threshold.";
const MARKED =
  "Marked and underlined: the other text has it, too. A stored document is shown as hapax compares it, for " +
  "example without capital letters.";

/** The documents that a verdict lists: the matches, and those below the threshold. */
export const rowsOf = ({ matches = [], explanation }) => [...matches, ...(explanation?.lookup?.below_threshold ?? [])];

function howKnown({ method, low, high, containment_in_match: inMatch, containment_of_match: ofMatch, first_seen: seen }) {
  const estimate = `Estimate: in 95 of 100 cases, the similarity is between ${similarity(low)} and ${similarity(high)}.`;
  return [
    method === "exact" ? "Exact: computed from the contents." : estimate,
    inMatch === undefined ? null : ` The match has ${percent(inMatch)} of the shingles of the text,`,
    inMatch === undefined ? null : ` and the text has ${percent(ofMatch)} of those of the match.`,
    seen ? [" First seen ", time(seen), "."] : null,
  ];
}

const metadataOf = ({ metadata }) =>
  h("details", {}, h("summary", {}, "Metadata"), h("pre", { dir: "auto" }, JSON.stringify(metadata, null, 2)));

/** Makes the two elements, `list` and `passages`. `show(verdict, signal)` fills them. `limit`: the most matches. */
export function matchesOf(context, info, draft, limit) {
  const { collection, may, href } = context;
  const list = h("div", {});
  const passages = h("div", { class: "stack" });
  let chosen = null;

  function show(verdict, signal) {
    const { matches = [], threshold } = verdict;
    const near = rowsOf(verdict).slice(matches.length);
    if (!rowsOf(verdict).some(({ id }) => id === chosen)) chosen = rowsOf(verdict)[0]?.id ?? null;
    const rows = (all) => h("ul", { class: "matches" }, all.map((row) => line(row, threshold, signal)));
    fill(
      list,
      hint(matches.length + near.length > 0 ? LEGEND : "There is no match, and no document that was compared."),
      matches.length > 0 ? rows(matches) : null,
      matches.length === limit ? hint(`Only the best ${limit} matches are listed.`) : null,
      near.length > 0 ? [h("h3", {}, "Compared, but below the threshold"), rows(near)] : null,
    );
    showPassages(signal);
  }

  function line(row, threshold, signal) {
    const pick = button("Show passages", choose, { "aria-pressed": String(row.id === chosen) });
    function choose() {
      chosen = row.id;
      press(list, pick);
      showPassages(signal);
    }
    const keepDraft = () => Object.assign(drafts.a, draft);
    return h(
      "li",
      { class: "match" },
      h("div", { class: "match-head" }, shortId(row.id), h("strong", {}, similarity(row.similarity))),
      intervalBar({ ...row, threshold }),
      hint(howKnown(row)),
      h(
        "div",
        { class: "row" },
        may("read") && info.keep === "text" ? pick : null,
        h("a", { href: href("compare", { collection, b: row.id }), on: { click: keepDraft } }, "Compare"),
        may("read") ? h("a", { href: href("clusters", { collection, id: row.id }) }, "Cluster") : null,
      ),
      row.metadata ? metadataOf(row) : null,
    );
  }

  function showPassages(signal) {
    const id = chosen;
    if (id === null) return fill(passages);
    if (!may("read")) return fill(passages, h("p", {}, "Passages are shown to keys with the scope read."));
    if (info.keep !== "text") return fill(passages, noTexts(info));
    if (draft.file) return fill(passages, h("p", {}, "The file is too long to show its passages."));
    return attempt(passages, async () => {
      const sides = { a: await contentOf(draft), b: { id } };
      const parts = await textsOf(sides, signal);
      if (id === chosen) fill(passages, parts);
    });
  }

  /** The texts with their passages. A text that is too long is refused, and the server says how long it may be. */
  async function textsOf(sides, signal) {
    try {
      const answer = await post(of(collection, "/compare"), sides, { with: "passages" }, signal);
      return twoTexts(sides.b.id, answer.passages);
    } catch (problem) {
      if (problem.code !== "invalid_value") throw problem;
      return h("p", {}, "The passages cannot be shown. The server says: ", h("bdi", {}, marked(problem.message)), ".");
    }
  }

  return { list, passages, show };
}

function twoTexts(id, passages) {
  if (!passages) return h("p", {}, "The server has no text of this document: it was stored as a set or as a signature.");
  const side = (title, label, { text, shared }) =>
    h("div", {}, h("h3", {}, title), markedText(label, text, spansOf(text, shared)));
  const [a, b] = [passages.a, passages.b];
  return [
    hint(MARKED),
    h(
      "div",
      { class: "columns" },
      side("This text", "This text with the shared passages", a),
      side(["The document ", shortId(id)], "The stored document with the shared passages", b),
    ),
  ];
}
