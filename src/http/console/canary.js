// The canary and the drift of a collection, from /metrics.

import { all } from "./history.js";
import { renew, value } from "./panels.js";
import { badge, card, count, fill, h, percent, table } from "./ui.js";

const RECALL = "hapax_canary_recall_ratio";
const LOW = "hapax_canary_recall_low_ratio";
const HIGH = "hapax_canary_recall_high_ratio";
const EXPECTED = "hapax_canary_recall_expected_ratio";
const LOST_BY_BAND = "hapax_canary_lost_postings_by_band_total";

const BEGINS = "It begins within a minute after the first documents.";

/** The value of a series now; NaN if there is none. */
const latest = (name, filter) => (all(name, filter)[0] ? value(all(name, filter)[0]) : NaN);
const sorted = (values) => [...new Set(values)].sort((a, b) => parseFloat(a) - parseFloat(b));
/** The values of a label of a metric of a collection, in the order of their numbers. */
const labelsOf = (name, collection, label) => sorted(all(name, { collection }).map(({ labels }) => labels[label]));

/** A part that is made again if the list that `names()` returns has changed. `make(group, names)` returns its content. */
function remade({ show, group }, names, make) {
  const place = h("div", {});
  const parts = group();
  let shown = null;
  show(() => {
    const now = names();
    if (JSON.stringify(now) === shown) return;
    shown = JSON.stringify(now);
    parts.clear();
    renew(place, make(parts, now));
  });
  return place;
}

/** A card about the canary: the share of made near-duplicates that is found, by similarity, and lost postings by band. */
export function canaryCard(parts, { collection, href }) {
  const buckets = h("a", { href: href("buckets", { collection }) }, "the fullest buckets");
  const bySimilarity = remade(parts, () => labelsOf(RECALL, collection, "similarity"), (group, similarities) =>
    similarities.length === 0
      ? h("p", {}, `The canary has looked up nothing yet. ${BEGINS}`)
      : canaryTable(group, collection, similarities),
  );
  const byBand = remade(parts, () => labelsOf(LOST_BY_BAND, collection, "band"), (group, bands) =>
    bands.length === 0 ? null : bandTable(group, collection, bands),
  );
  return card(
    "Canary",
    h(
      "p",
      {},
      "Each minute, the server makes near-duplicates of 20 stored documents and looks them up as a check does, with all limits. ",
      "Recall is the share of these lookups that find the document. If it is lower than expected, checks miss duplicates.",
    ),
    bySimilarity,
    h(
      "p",
      { class: "hint" },
      "Expected: what theory predicts for the bands and rows. From, to: the 95 % interval of the recall. In the picture, the bar",
      " is this interval, the mark is the recall, and the dashed line is the expected share. Lookups: since the server started. ",
      "Made from: text, if words of a stored text were replaced; slots, if the collection keeps no texts, so that parts ",
      "(slots) of the stored signature were replaced.",
    ),
    h("h3", {}, "Postings by band"),
    h(
      "p",
      {},
      "Documents looked up by each band: ",
      parts.number("hapax_canary_documents_total", { collection }),
      ". Lost postings: ",
      parts.number("hapax_canary_lost_postings_total", { collection }),
      " (must be 0). If there are any, restart the server: it then builds the index again.",
    ),
    byBand,
    h("p", { class: "hint" }, "If the recall is low and no posting is lost, limits hide documents: see ", buckets, "."),
  );
}

function canaryTable({ number, show }, collection, similarities) {
  const cell = (name, format) => (similarity) => number(name, { collection, similarity }, format);
  const lookups = (similarity) => all("hapax_canary_lookups_total", { collection, similarity });
  const columns = [
    { title: "Similarity", cell: (similarity) => similarity },
    { title: "Recall", number: true, cell: cell(RECALL, percent) },
    { title: "From", number: true, cell: cell(LOW, percent) },
    { title: "To", number: true, cell: cell(HIGH, percent) },
    { title: "Expected", number: true, cell: cell(EXPECTED, percent) },
    { title: "Interval and expected share", cell: (similarity) => recallBar(show, collection, similarity) },
    { title: "Lookups", number: true, cell: cell("hapax_canary_lookups_total", count) },
    { title: "Found", number: true, cell: cell("hapax_canary_found_total", count) },
    { title: "Made from", cell: (similarity) => lookups(similarity).map(({ labels }) => labels.source).join(", ") || "–" },
    { title: "State", cell: (similarity) => recallState(show, collection, similarity) },
  ];
  return table("Recall of the canary by similarity", columns, similarities);
}

/** The recall with its interval, beside the expected share, as a bar from 0 to 1. */
function recallBar(show, collection, similarity) {
  const bar = h("div", { class: "interval", role: "img" });
  show(() => {
    const [recall, low, high, expected] = [RECALL, LOW, HIGH, EXPECTED].map((name) => latest(name, { collection, similarity }));
    const at = (ratio) => `${(100 * ratio).toFixed(2)}%`;
    bar.hidden = Number.isNaN(recall);
    if (bar.hidden) return;
    const words = `recall ${percent(recall)}, between ${percent(low)} and ${percent(high)}, expected ${percent(expected)}`;
    bar.setAttribute("aria-label", words);
    fill(
      bar,
      h("span", { class: "range", style: { left: at(low), width: at(Math.max(high - low, 0.004)) } }),
      h("span", { class: "value", style: { left: at(recall) } }),
      h("span", { class: "threshold", style: { left: at(expected) } }),
    );
  });
  return bar;
}

/** What the recall means, in words. */
function recallState(show, collection, similarity) {
  const place = h("span", {});
  show(() => {
    const [recall, high, expected] = [RECALL, HIGH, EXPECTED].map((name) => latest(name, { collection, similarity }));
    if (Number.isNaN(expected)) fill(place, "not looked up: not above the threshold");
    else if (Number.isNaN(recall)) fill(place, "no lookup yet");
    else if (high < 0.95 && expected >= 0.99) fill(place, badge("too low", "bad"));
    else if (high < expected) fill(place, badge("lower than expected", "warn"));
    else fill(place, badge("as expected", "good"));
  });
  return place;
}

function bandTable({ number }, collection, bands) {
  const columns = [
    { title: "Band", cell: (band) => band },
    { title: "Lost postings", number: true, cell: (band) => number(LOST_BY_BAND, { collection, band }) },
  ];
  return table("Lost postings by band", columns, bands);
}

/** A number with its digits after the point. A number that is 0 with them has no sign. */
const rounded = (number, digits) => (Number.isFinite(number) ? number.toFixed(digits).replace(/^-(?=[0.]+$)/, "") : "–");
const twoDigits = (number) => rounded(number, 2);
const threeDigits = (number) => rounded(number, 3);
const signed = (words) => (number) => (/[1-9]/.test(words(number)) && number > 0 ? `+${words(number)}` : words(number));

/** A class of documents by their number of shingles, in words that stay on one line. */
function className(shingles) {
  const [from, to] = shingles.split("-").map(Number);
  return h("span", { class: "number" }, to > 0 ? `${count(from)} to ${count(to)}` : `${count(from)} and more`);
}

/** A card about the drift: whether documents have as many candidates, and as similar ones, as the S-curve predicts. */
export function driftCard(parts, collection) {
  const classes = () => labelsOf("hapax_drift_candidates_observed", collection, "shingles");
  const place = remade(parts, classes, (group, found) =>
    found.length === 0 ? h("p", {}, `There is no sample yet. ${BEGINS}`) : driftTable(group, collection, found),
  );
  return card(
    "Drift",
    h(
      "p",
      {},
      "For a sample of stored documents, the server counts the other documents that share a band with them. It compares ",
      "their number and their similarity with what the S-curve predicts, for each class of documents by their number of shingles.",
    ),
    place,
    h(
      "p",
      { class: "hint" },
      "Difference: found minus expected. It is never exactly 0, so watch how it changes. If there are more candidates than ",
      "expected and they are less similar, documents share single passages, such as boilerplate. Unrelated documents: the mean ",
      "similarity to the other documents of the sample. A dash: the sample has no such document.",
    ),
  );
}

function driftTable({ number }, collection, classes) {
  const cell = (name, format) => (shingles) => number(name, { collection, shingles }, format);
  const column = (title, name, format) => ({ title, number: true, cell: cell(name, format) });
  const columns = [
    { title: "Shingles", cell: className },
    column("Candidates found", "hapax_drift_candidates_observed", twoDigits),
    column("Candidates expected", "hapax_drift_candidates_expected", twoDigits),
    column("Difference", "hapax_drift_candidates_gap", signed(twoDigits)),
    column("Similarity found", "hapax_drift_similarity_observed_ratio", threeDigits),
    column("Similarity expected", "hapax_drift_similarity_expected_ratio", threeDigits),
    column("Difference", "hapax_drift_similarity_gap", signed(threeDigits)),
    column("Similarity of unrelated documents", "hapax_background_similarity_ratio", threeDigits),
  ];
  return table("Drift by number of shingles", columns, classes);
}
