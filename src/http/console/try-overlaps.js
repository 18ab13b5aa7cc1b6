// "Try it" for collections of items that other texts may contain. In: a document that a person gave. Out: the items that
// it contains, and their passages in it.

import { ask, of } from "./api.js";
import { attempt, commandOf } from "./attempt.js";
import { spansOf, wellFormed } from "./bytes.js";
import { hint, markedText, press, shortId } from "./passages.js";
import { bodyOf } from "./source.js";
import { shingleOf } from "./try-words.js";
import { badge, button, card, count, field, fill, h, note, percent, progress } from "./ui.js";

const LIMIT = 50;
/** Longer files are not shown. */
const FILE_MAX = 8 << 20;
const CAPPED =
  "The lookup is not complete: some runs of words are in more items than the server reads (limits.bucket_read_max), so an " +
  "item may be missing. The values of the listed items are exact.";
const LEAST =
  "Only items are listed of which the text has at least this share. With 0, one shared n-gram is enough; 0.5 is usual for " +
  "benchmarks.";
const PURPOSE =
  "This collection has items, such as the questions of a benchmark. It finds those that a text contains, even if the text " +
  "is much longer.";

function found({ overlaps, found }) {
  if (found === 0) return [badge("nothing found", "good"), " The text contains no passage of a stored item."];
  const items = found === 1 ? "1 stored item shares" : `${count(found)} stored items share`;
  const best = overlaps.length > 0 ? ` The text has ${percent(overlaps[0].containment, 0)} of the first one.` : "";
  return [badge(found === 1 ? "1 item" : `${count(found)} items`, "warn"), ` ${items} a passage with the text.${best}`];
}

/** Makes this part of the view. `info`: the collection. `draft`: the document. `again()` checks it. */
export function overlaps(context, info, draft, again) {
  const { collection, params, setParams, signal } = context;
  const [, size] = shingleOf(info);
  const sizes =
    `An n-gram is a run of ${size} words here. The containment of an item is the share of its n-grams that the text has. ` +
    `An item of 8 words or more, but fewer than ${size}, is one n-gram.`;
  const headline = h("div", { class: "headline", role: "status" });
  const about = h("div", { class: "stack" });
  const items = h("div", {});
  const passages = h("div", { class: "stack" });
  const rest = h("div", { class: "columns" }, card("Items", items), card("Passages in the text", passages));
  const least = h("input", { type: "number", min: "0", max: "1", step: "0.05", value: params.get("min") ?? "0" });
  least.addEventListener("change", () => {
    setParams({ min: Number(least.value) > 0 ? least.value : null });
    again();
  });
  let chosen = null;

  const request = () => bodyOf(draft, null, { min_containment: params.get("min"), limit: LIMIT });

  async function run(signal) {
    const answer = await ask("POST", of(collection, "/overlaps"), { ...request(), signal });
    if (!answer.overlaps.some(({ id }) => id === chosen)) chosen = answer.overlaps[0]?.id ?? null;
    fill(headline, found(answer));
    fill(
      about,
      info.documents === 0 ? note("info", "The collection is empty, so nothing can be found.") : null,
      answer.complete ? null : note("warn", CAPPED),
      hint(sizes),
    );
    rest.hidden = answer.overlaps.length === 0;
    const listed = answer.overlaps.length;
    fill(
      items,
      h("ul", { class: "matches" }, answer.overlaps.map((item) => line(item, answer.overlaps))),
      answer.found > listed ? hint(`Only the first ${count(listed)} are listed.`) : null,
    );
    showPassages(answer.overlaps, signal);
  }

  function line(item, all) {
    const { id, containment, shared, ngrams } = item;
    const pick = button("Show in the text", choose, { "aria-pressed": String(id === chosen) });
    function choose() {
      chosen = id;
      press(items, pick);
      showPassages(all, signal);
    }
    return h(
      "li",
      { class: "match" },
      h("div", { class: "match-head" }, shortId(id), h("strong", {}, percent(containment, 0))),
      progress(containment, `containment ${percent(containment, 0)}`),
      hint(`The text has ${count(shared)} of the ${count(ngrams)} n-grams of this item.`),
      h("div", { class: "row" }, pick),
    );
  }

  /** The text to which the passages belong: that of a page is extracted by the server. */
  async function textOf(signal) {
    if (draft.kind !== "html") return draft.file ? draft.file.text() : wellFormed(draft.text);
    const extracted = await ask("POST", of(collection, "/extract"), { ...bodyOf(draft, null, {}), signal });
    return extracted.text;
  }

  function showPassages(all, signal) {
    const item = all.find(({ id }) => id === chosen);
    if (!item) return;
    if (draft.file?.size > FILE_MAX) return fill(passages, h("p", {}, "The file is too long to be shown."));
    return attempt(passages, async () => {
      const text = await textOf(signal);
      if (item.id !== chosen || signal.aborted) return;
      const left = item.spans_omitted ?? 0;
      fill(
        passages,
        hint("Marked and underlined: the words of the text that are n-grams of ", shortId(item.id), "."),
        left > 0 ? note("warn", `The server lists at most 100 passages. ${count(left)} more are not marked.`) : null,
        markedText("The text with the passages of the item", text, spansOf(text, item.spans)),
      );
    });
  }

  return {
    fields: [field("Minimum containment, from 0 to 1", least, LEAST)],
    first: [card("Items in the text", headline, about)],
    rest,
    run,
    idle() {
      fill(headline, badge("no text yet"), " The items that the text contains appear here while you type.");
      fill(about, hint(PURPOSE));
      rest.hidden = true;
    },
    waiting: () => fill(headline, badge("waiting"), " The server has not answered yet."),
    failed(problem) {
      fill(headline);
      fill(about, problem);
      rest.hidden = true;
    },
    command: () => commandOf(of(collection, "/overlaps"), request()),
  };
}
