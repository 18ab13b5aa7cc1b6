// The view Quality: whether duplicates of a collection are found. The golden set says it for pairs that a person has
// labelled, the canary for copies that the server makes, and the drift says whether the S-curve still fits the documents.

import { curl, of } from "./api.js";
import { canaryCard, driftCard } from "./canary.js";
import { goldenPart } from "./golden.js";
import { board, known } from "./panels.js";
import { curlButton, h, heading, note } from "./ui.js";

export async function render(page, context) {
  const { collection, signal, may, access, chooser } = context;
  page.append(
    heading(
      "Quality",
      "A verdict cannot say that a duplicate was missed. This page says how often that happens.",
      chooser(),
      curlButton(() => curl("GET", of(collection, "/golden"))),
    ),
    goldenPart(context),
  );
  if (may("metrics")) {
    const parts = board(signal);
    const cards = h("div", { class: "page-part" }, canaryCard(parts, context), driftCard(parts, collection));
    // /metrics names each collection that exists.
    parts.show(() => (cards.hidden = known("hapax_collection_open", { collection }).length === 0));
    page.append(cards);
  } else {
    const scopes = access.scopes.join(", ");
    const needs = "The canary and the drift are in /metrics. They need a key with the scope metrics; ";
    page.append(note("info", needs, `this key has only: ${scopes}.`));
  }
}
