// A card that stores the document of "Try it".

import { ask, of } from "./api.js";
import { attempt, commandOf } from "./attempt.js";
import { hint, shortId } from "./passages.js";
import { bodyOf, isMissing } from "./source.js";
import { meaning, outcomeWords } from "./try-words.js";
import { badge, button, card, curlButton, field, fill, h, note, select, verdictBadge } from "./ui.js";

const CHOICES = [
  ["skip", "Skip it: store nothing"],
  ["link", "Store it as a link to the original"],
  ["store", "Store it like any other document"],
];
const CHOICE_HINT = "A link belongs to the cluster of the original; later, only exact copies match it.";

/** Shows what an insert did. */
function outcomeOf(answer) {
  const stored = badge(answer.stored ? "stored" : "not stored", answer.stored ? "good" : "");
  const original = answer.duplicate_of === undefined ? null : h("p", {}, "The best match is ", shortId(answer.duplicate_of), ".");
  const verdict = h("p", {}, verdictBadge(answer.verdict), " ", meaning(answer.verdict));
  return note("info", h("p", {}, stored, " ", outcomeWords(answer.outcome)), verdict, original);
}

/** Makes the card. `draft`: the document. `stored()` is called after something was stored. */
export function storeCard({ collection, params, signal }, info, draft, stored) {
  const id = h("input", { type: "text", value: params.get("id") ?? "", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const onDuplicate = select(CHOICES, "skip");
  const outcome = h("div", { role: "status" });
  const store = button("Store it", insert, { kind: "primary" });
  const path = of(collection, "/documents");
  const request = () => bodyOf(draft, id.value, { on_duplicate: onDuplicate.value });

  async function insert() {
    if (isMissing(draft)) return fill(outcome, note("warn", "Enter a text first."));
    if (id.value === "") {
      id.focus();
      return fill(outcome, note("warn", "Enter an id first. It names the document in this collection."));
    }
    store.disabled = true;
    await attempt(outcome, async () => {
      const answer = await ask("POST", path, { ...request(), signal });
      fill(outcome, outcomeOf(answer));
      if (answer.stored) stored();
    });
    store.disabled = false;
  }

  const hasItems = info.index === "containment";
  const hasThreshold = info.threshold !== undefined && !hasItems;
  const threshold = hasThreshold ? ` The collection's threshold (${info.threshold}) applies, not the one above.` : "";
  return card(
    "Store it",
    hint(`This stores the text in the collection for other requests to find.${threshold}`),
    h(
      "div",
      { class: "fields" },
      field("Id of the new document", id, "For example its address."),
      hasItems
        ? field("If the same text is stored already", onDuplicate)
        : field("If it is a duplicate", onDuplicate, CHOICE_HINT),
    ),
    h("div", { class: "row end" }, curlButton(() => commandOf(path, request())), store),
    outcome,
  );
}
