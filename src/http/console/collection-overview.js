// What a collection is: its size, its spec, which cannot be changed, and what to do first if it is empty.

import { curl, of } from "./api.js";
import { explainedTable } from "./collection-controls.js";
import { lengthOf, partsOf, shapeOf } from "./collection-spec.js";
import { BITS, DIGITS, EXTRACT, FOLD, INDEX, KEEP, KEY, MARKS, SKETCH, SLOTS, option } from "./collection-words.js";
import { command, ofServer } from "./pieces.js";
import { badge, bytes, button, card, copy, count, duration, facts, h, percent, time } from "./ui.js";

export function showOverview(content, collection, context) {
  const { index, documents, linked, threshold, banding, banding_by_hand: byHand, ttl, created, verify } = collection;
  const compared = index !== "containment";
  content.append(
    card(
      "What is stored",
      linked === undefined ? badge("not open yet: the numbers are those of the last stop", "warn") : null,
      facts([
        ["Documents", count(documents)],
        ["Links", count(linked)],
        ["Index", index],
        compared && ["Threshold", threshold],
        compared && ["Bands × rows", `${banding.bands} × ${banding.rows}${byHand ? ", by hand" : ""}`],
        compared && ["Verification", verify],
        ["Stored (keep)", collection.keep],
        ["Time to live", ttl ? duration(ttl) : "forever"],
        ["Created", time(created)],
      ]),
      compared ? recallWords(collection) : null,
    ),
    documents === 0 ? firstSteps(collection, context) : nextSteps(collection, context),
    specCard(collection),
  );
}

function recallWords({ threshold, expected_recall: { candidate, verdict } }) {
  return h(
    "p",
    { class: "hint" },
    `Of the pairs exactly at the threshold ${threshold}, ${percent(candidate)} become candidates, and ${percent(verdict)} ` +
      "are reported as duplicates. A link is a duplicate that is stored only as a reference to its original; it counts as a " +
      "document.",
  );
}

/** What each part of the spec means. */
function specCard({ spec, fingerprint, signature, keep, extract, index }) {
  const parts = partsOf(spec);
  const choice = (title, options, value) => {
    const [, words, about] = option(options, value);
    return [title, h("code", {}, value), [words, ". ", about]];
  };
  const rows = parts.external ? [] : textRows(parts, choice);
  if (parts.external) {
    rows.push([
      "Signatures",
      h("code", {}, parts.external),
      `Made elsewhere: ${signature.slots} slots of ${signature.bits} bits.`,
    ]);
  }
  rows.unshift(choice("Index", INDEX, index));
  rows.push(choice("Stored (keep)", KEEP, keep));
  if (!parts.external) rows.push(choice("Text of pages (extract)", EXTRACT, extract));
  if (index === "similarity") {
    rows.push(["Signature", bytes(signature.bytes), "The memory that the signature of a document takes."]);
  }
  return card(
    "The spec, which cannot be changed",
    h(
      "p",
      { class: "hint" },
      "Signatures of different specs cannot be compared, so none of this can be changed. To use other settings, create a " +
        "new collection, and import the documents again.",
    ),
    h(
      "div",
      { class: "row" },
      h(
        "code",
        { class: "spec" },
        spec.split(/(?<=;)/).flatMap((part) => [part, h("wbr")]),
      ),
      button("Copy the spec", () => copy(spec, "The spec"), { kind: "quiet" }),
    ),
    h(
      "p",
      { class: "hint" },
      "Fingerprint: ",
      h("code", {}, fingerprint),
      ". Two signatures can be compared if their fingerprints are equal.",
    ),
    explainedTable("The parts of the spec", rows),
  );
}

function textRows(parts, choice) {
  const { unit, length } = lengthOf(parts.shingle);
  const shape = shapeOf(parts.sketch);
  const rows = [
    choice("Fold", FOLD, parts.fold),
    choice("Marks", MARKS, parts.marks),
    choice("Digits", DIGITS, parts.digits),
    [
      "Shingle",
      h("code", {}, parts.shingle),
      `The unit of comparison: a run of ${length} ${unit === "word" ? "words" : "characters"}.`,
    ],
  ];
  if (shape) {
    rows.push([
      "Sketch",
      h("code", {}, parts.sketch),
      [option(SKETCH, shape.kind)[2], " ", option(SLOTS, shape.slots)[2], " ", option(BITS, shape.bits)[2]],
    ]);
  } else rows.push(["Sketch", h("code", {}, "none"), "Nothing is estimated: the runs of words themselves are compared."]);
  const [, words, about] = option(KEY, parts.key === "none" ? "none" : "configured");
  rows.push(["Secret", h("code", {}, parts.key), [words, ". ", about]]);
  return rows;
}

/** What to do with an empty collection. */
function firstSteps({ name, index, spec, signature }, { may, href }) {
  let body = { id: "https://a.example/1", text: "The text of the document." };
  if (spec.startsWith("hapax1;external:")) body = { id: "1", signature: `BASE64 of ${signature.bytes} bytes` };
  else if (index === "containment") body = { id: "exam/1", text: "The text of an item, of at least 8 words." };
  const store = curl("POST", of(name, "/documents"), { body });
  const load = `hapax import documents.jsonl --collection ${name} ${ofServer()}`;
  const loads = spec.startsWith("hapax1;external:")
    ? "Each line is an object with an id and a signature."
    : "It reads lines of JSON with an id and a text, CSV, WARC, Parquet, texts and pages.";
  const next = index === "containment" ? "Look for items in a text" : "Try a text";
  return card(
    "First, store documents",
    h("p", {}, "The collection is empty. ", may("insert") ? null : "Storing needs a key with the scope insert."),
    h("h3", {}, "One document"),
    command(store),
    h("h3", {}, "A file of documents"),
    h("p", { class: "hint" }, loads),
    command(load),
    h("p", {}, "Then: ", h("a", { href: href("try", { collection: name }) }, next)),
  );
}

function nextSteps({ name, index }, { href, may }) {
  const links = [may("check") && ["Try a text", "try"]];
  if (index === "similarity") {
    links.push(
      may("read") && ["See the clusters", "clusters"],
      may("read") && ["See the fullest buckets", "buckets"],
      may("read") && ["Measure the quality", "quality"],
    );
  }
  const shown = links
    .filter(Boolean)
    .map(([text, view]) => h("li", {}, h("a", { href: href(view, { collection: name }) }, text)));
  return shown.length > 0 ? card("What next?", h("ul", { class: "links" }, shown)) : null;
}
