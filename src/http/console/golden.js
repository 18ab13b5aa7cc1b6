// The golden set of a collection: its report, and the form that stores another one.

import { ask, curl, get, of } from "./api.js";
import { EXAMPLE, setForm } from "./golden-set.js";
import { briefId, longTable } from "./pieces.js";
import { button, card, confirm, copy, count, curlButton, facts, failure, fill, h, percent, progress } from "./ui.js";
import { select, similarity, table, toast } from "./ui.js";

const BORDERLINE = "verification “Exactly, if in doubt” (borderline)";

/** The reasons why a pair fails: in words, and what to do about a pair at a threshold. */
const REASONS = {
  not_proposed: {
    words: "duplicate, but the two share no band",
    todo: ({ jaccard }, threshold) =>
      jaccard < threshold
        ? "The texts are less similar than the threshold: lower it first. Then use more bands, or fewer rows in a band."
        : "Use more bands, or fewer rows in a band.",
  },
  below_threshold: {
    words: "duplicate, but below the threshold",
    todo: ({ jaccard }, threshold) =>
      jaccard < threshold
        ? "The texts are less similar than the threshold. Lower the threshold, or use shorter shingles in a new collection."
        : `The estimate is too low: use the ${BORDERLINE}.`,
  },
  not_a_duplicate: {
    words: "different, but reported",
    todo: ({ jaccard }, threshold) =>
      jaccard < threshold
        ? `The estimate is too high: use the ${BORDERLINE}, or a higher threshold.`
        : "Use a higher threshold, if the label is right.",
  },
};

/** The report on the golden set, and what a person may do with the set. */
export function goldenPart(context) {
  const { collection, signal, may } = context;
  const place = h("div", { class: "page-part" });
  const path = of(collection, "/golden");

  async function load() {
    fill(place, card("Golden set", h("p", { class: "hint", role: "status" }, "The server judges the pairs…")));
    try {
      show(await get(path, {}, signal));
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      fill(place, failure(problem, load));
    }
  }

  function show(report) {
    if (signal.aborted) return;
    const parts = report.pairs === 0 ? [noSet(context)] : [reportCard(report, context, remove)];
    const form = may("admin") ? setForm(report.pairs, store) : null;
    fill(place, ...parts, form);
  }

  /** Shows a report after a change, and moves the focus to it, because what had the focus is gone. */
  function changed(report, words) {
    show(report);
    toast(words);
    const title = place.querySelector("h2");
    title?.setAttribute("tabindex", "-1");
    title?.focus();
  }

  async function store(pairs) {
    changed(await ask("PUT", path, { body: { pairs } }), "The golden set was stored");
  }

  async function remove() {
    const sentence = "The server deletes the pairs and their texts. It cannot give them back: keep the file that you stored.";
    if (!(await confirm("Delete the golden set?", sentence, "Delete the golden set"))) return;
    try {
      changed(await ask("DELETE", path), "The golden set was deleted");
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      toast(problem.message, "bad");
    }
  }

  load().catch((error) => {
    if (error.name !== "AbortError") throw error;
  });
  return place;
}

/** What a golden set is, and how to make one. */
function noSet({ collection, may }) {
  const lines = EXAMPLE.map((pair) => JSON.stringify(pair)).join("\n");
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "There is no golden set yet"),
    h(
      "p",
      {},
      "A golden set is a list of pairs of texts that you have labelled as duplicates or as different. With the settings of the ",
      "collection, the server judges each pair as a check would, and reports how often the verdicts agree with your labels: the ",
      "recall and the precision. The texts are not documents, and no check finds them.",
    ),
    h(
      "p",
      {},
      "To make one, take a few hundred pairs of your own documents, and judge each pair yourself. Most pairs should be about as ",
      "similar as the threshold, because verdicts are hardest there. Write one JSON object in a line:",
    ),
    h("pre", { dir: "ltr" }, lines),
    h(
      "div",
      { class: "row" },
      button("Copy the example", () => copy(lines, "The example")),
      curlButton(() => curl("PUT", of(collection, "/golden"), { body: { pairs: EXAMPLE } })),
    ),
    may("admin") ? null : h("p", { class: "hint" }, "To store a golden set, a key needs the scope admin."),
  );
}

function reportCard(report, { params, setParams, may }, remove) {
  const { pairs, duplicates, reported, found, recall, precision, threshold, banding, verify } = report;
  return card(
    "Golden set",
    facts([
      ["Recall", percent(recall)],
      ["Precision", percent(precision)],
      ["Pairs", count(pairs)],
      ["Labelled as duplicates", count(duplicates)],
      ["Reported", count(reported)],
      ["Found", count(found)],
      ["Threshold", threshold],
      ["Bands × rows", `${banding.bands} × ${banding.rows}`],
      ["Verification", verify],
    ]),
    h(
      "p",
      { class: "hint" },
      "Recall: the share of the labelled duplicates that a check would report. Precision: the share of the reported pairs that ",
      "are labelled as duplicates. Found: the pairs that are reported and are labelled as duplicates. ",
      "For each pair, a is stored alone, and b is looked up.",
    ),
    h("h3", {}, "By similarity"),
    bySimilarity(report),
    h("h3", {}, "Pairs whose verdict differs from the label"),
    failedPart(report, params, setParams),
    may("admin") ? h("div", { class: "row end" }, button("Delete the golden set", remove, { kind: "danger" })) : null,
  );
}

const signed = (number) => `${number > 0 ? "+" : ""}${similarity(number)}`;

function bySimilarity({ by_similarity: ranges }) {
  const range = ({ from, to }) => `${from.toFixed(2)} to ${to.toFixed(2)}`;
  const recall = (row) => {
    if (row.duplicates === 0) return "no duplicate";
    const ratio = row.found / row.duplicates;
    return h("div", { class: "with-bar" }, progress(ratio, `recall from ${range(row)}`), percent(ratio, 0));
  };
  const columns = [
    { title: "Similarity", cell: (row) => h("span", { class: "number" }, range(row)) },
    { title: "Recall", cell: recall },
    { title: "Pairs", number: true, cell: (row) => count(row.pairs) },
    { title: "Duplicates", number: true, cell: (row) => count(row.duplicates) },
    { title: "Candidates", number: true, cell: (row) => count(row.proposed) },
    { title: "Reported", number: true, cell: (row) => count(row.reported) },
    { title: "Found", number: true, cell: (row) => count(row.found) },
    { title: "Mean error", number: true, cell: (row) => signed(row.error_mean) },
    { title: "Mean distance", number: true, cell: (row) => similarity(row.error_abs_mean) },
  ];
  return [
    table("The golden set by exact similarity", columns, ranges),
    h(
      "p",
      { class: "hint" },
      "Candidates: pairs that share a band, so that they are compared. Mean error: estimate minus exact ",
      "similarity; if it is far from 0, the estimates are biased. Mean distance: how far the two are apart.",
    ),
  ];
}

/** The failing pairs: all, or those with the reason that the address names. */
function failedPart({ failed, threshold }, params, setParams) {
  if (failed.length === 0) return h("p", {}, "There are none: each verdict agrees with its label.");
  const reasons = Object.keys(REASONS).filter((reason) => failed.some((pair) => pair.reason === reason));
  const place = h("div", { class: "failed-pairs" });
  const show = (reason) => {
    const rows = failed.filter((pair) => reason === "" || pair.reason === reason);
    fill(place, longTable("Pairs whose verdict differs from the label", failedColumns(threshold), rows));
  };
  const many = (reason) => failed.filter((pair) => pair.reason === reason).length;
  const option = (reason) => [reason, `${REASONS[reason].words}: ${count(many(reason))}`];
  const options = [["", `all ${count(failed.length)}`], ...reasons.map(option)];
  const asked = reasons.includes(params.get("reason")) ? params.get("reason") : "";
  const choice = select(options, asked, (reason) => {
    setParams({ reason });
    show(reason);
  });
  choice.setAttribute("aria-label", "Pairs that are shown");
  show(asked);
  return [h("div", { class: "row" }, choice), place];
}

function failedColumns(threshold) {
  return [
    { title: "Pair", number: true, cell: ({ pair }) => count(pair) },
    { title: "Name", cell: ({ name }) => (name === undefined ? "–" : briefId(name)) },
    { title: "Reason", cell: ({ reason }) => REASONS[reason]?.words ?? reason },
    { title: "Estimate", number: true, cell: ({ estimate }) => similarity(estimate) },
    { title: "Exact (Jaccard)", number: true, cell: ({ jaccard }) => similarity(jaccard) },
    { title: "What to do", cell: (pair) => REASONS[pair.reason]?.todo(pair, threshold) ?? "–" },
  ];
}
