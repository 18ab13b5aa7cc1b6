// The view Quality: whether duplicates of a collection are found. The golden set says it for pairs that a person has
// labelled, the canary for copies that the server makes, and the drift says whether the S-curve still fits the documents.

import { curl, get, of } from "./api.js";
import { attempt } from "./attempt.js";
import { canaryCard, driftCard } from "./canary.js";
import { goldenPart } from "./golden.js";
import { board, known } from "./panels.js";
import { curlButton, fill, h, heading, note } from "./ui.js";

const ITEMS =
  "This collection finds items in texts. It has no similarity, so there is no golden set, canary or drift.";

export async function render(page, context) {
  const { collection, signal, chooser } = context;
  const place = h("div", { class: "page-part" });
  let path = of(collection, "/golden");
  page.append(
    heading(
      "Quality",
      "A verdict cannot say that a duplicate was missed. This page says how often that happens.",
      chooser(),
      curlButton(() => curl("GET", path)),
    ),
    place,
  );
  await attempt(place, async () => {
    const { index } = await get(of(collection), {}, signal);
    if (index === "containment") {
      path = of(collection);
      fill(place, note("info", ITEMS));
    } else {
      fill(place, goldenPart(context), surveyPart(context));
    }
  });
}

/** The canary and the drift, or the scope that they need. */
function surveyPart(context) {
  const { collection, signal, may, access } = context;
  if (may("metrics")) {
    const parts = board(signal);
    const cards = h("div", { class: "page-part" }, canaryCard(parts, context), driftCard(parts, collection));
    // /metrics names each collection that exists.
    parts.show(() => (cards.hidden = known("hapax_collection_open", { collection }).length === 0));
    return cards;
  }
  const scopes = access.scopes.join(", ");
  const needs = "The canary and the drift are in /metrics. They need a key with the scope metrics; ";
  return note("info", needs, `this key has only: ${scopes}.`);
}
