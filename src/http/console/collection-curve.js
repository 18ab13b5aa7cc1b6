// What two bandings of a collection find and take, as curves and as numbers. In: the collection with its banding, and another
// banding. Out: the S-curves of both, and a table.

import { post } from "./api.js";
import { CURVE_SLOTS, partsOf, shapeOf } from "./collection-spec.js";
import { at, sCurve } from "./curve.js";
import { bytes, count, failure, h, note, percent, short, similarity, table } from "./ui.js";

/** The curve that the server computes has this number of steps. */
export const POINTS = 20;
const CANDIDATES_MAX = 4096;
/** So many shingles that more of them change nothing in the estimates. */
const LONG = 100000;

export const same = (a, b) => a.bands === b.bands && a.rows === b.rows;
const named = ({ bands, rows }) => `${bands} × ${rows}`;

/** Computes both bandings, and shows the curves and the numbers in their places. */
export async function compare(collection, state, { curve, numbers }, { may, signal, access }) {
  const { slots } = collection.signature;
  const lacking = missing(slots, { may, access });
  if (lacking) return curve.show(note("warn", lacking));
  const wrong = wrongNumbers(collection, state);
  if (wrong) return numbers.show(note("warn", wrong));
  const asked = JSON.stringify(state);
  try {
    const [before, after] = await Promise.all(
      [collection.banding, state].map((banding) => post("/v1/tune", tuneBody(collection, banding, state), {}, signal)),
    );
    if (asked !== JSON.stringify(state)) return;
    const [old, now] = [before, after].map((one) => verified(one, collection));
    const isNew = !same(collection.banding, state);
    curve.show(
      sCurve({
        threshold: collection.threshold,
        curves: isNew ? [{ points: old, kind: "before" }, { points: now }] : [{ points: now }],
      }),
      recallNote(collection),
    );
    numbers.show(
      numbersTable(collection, state, [
        { ...before, points: old },
        { ...after, points: now },
      ]),
      costNote(after),
    );
  } catch (problem) {
    if (signal.aborted) return;
    if (problem.name !== "Problem") throw problem;
    curve.show(failure(problem));
    numbers.show();
  }
}

/** Why there are no curves; null if there are. */
function missing(slots, { may, access }) {
  if (!may("check")) return `The curves need a key with the scope check; the key ${access.key.name} lacks it.`;
  if (CURVE_SLOTS.includes(slots)) return null;
  return (
    `The server computes curves only for signatures with ${CURVE_SLOTS.join(", ")} slots; those of this collection have ` +
    `${slots}.`
  );
}

/** Why the numbers of the person have no answer; null if they have one. */
function wrongNumbers({ threshold }, { j, documents, unrelated }) {
  if (![j, documents, unrelated].every(Number.isFinite)) return "Each of the fields needs a number.";
  if (documents < 1) return "A collection has at least one document.";
  return unrelated < threshold ? null : "The similarity of unrelated documents must be below the threshold.";
}

/** The request about one banding of a collection. The documents are long, as for the numbers in the tab Overview. */
export function tuneBody({ threshold, signature, spec }, { bands, rows }, { documents, unrelated }) {
  const sketch = shapeOf(partsOf(spec).sketch ?? "")?.kind;
  return {
    threshold,
    k: signature.slots,
    bits: signature.bits,
    sketch,
    shingles: LONG,
    documents,
    s_hi: Math.max(0.01, threshold),
    s_bg: unrelated,
    banding: { bands, rows },
  };
}

/**
 * The curve of a collection. The server computes it for estimates. If shingles verify the matches, the reported pairs are
 * those of the candidates that are at the threshold or above it.
 */
function verified({ curve: points, recall_at_s_hi: candidate }, { verify, threshold }) {
  if (verify === "estimate") return points;
  const edge = [
    { jaccard: threshold - 1e-9, candidate, verdict: 0 },
    { jaccard: threshold, candidate, verdict: candidate },
  ];
  const rest = points.filter(({ jaccard }) => jaccard !== threshold);
  const shown = [...rest.map((point) => ({ ...point, verdict: point.jaccard < threshold ? 0 : point.candidate })), ...edge];
  return shown.sort((a, b) => a.jaccard - b.jaccard);
}

function recallNote({ verify, threshold }) {
  const words =
    verify === "estimate"
      ? "The reported pairs are those of the candidates whose estimate reaches the threshold. Estimates vary, so some pairs " +
        "a little below the threshold are reported, and some above it are not. Those of short documents vary a little less " +
        "than this curve says."
      : `This collection verifies its matches by their shingles. Therefore nearly all candidates of similarity ${threshold} ` +
        "or more are reported, and nearly none below it.";
  return h("p", { class: "hint" }, words);
}

function numbersTable({ threshold, banding }, state, both) {
  const rows = [
    [
      `Pairs of similarity ${similarity(state.j)} that become candidates`,
      ({ points }) => percent(at(points, state.j, "candidate"), 2),
    ],
    [
      `Pairs of similarity ${similarity(state.j)} that are reported`,
      ({ points }) => percent(at(points, state.j, "verdict"), 2),
    ],
    [`Pairs at the threshold ${threshold} that become candidates`, ({ recall_at_s_hi: recall }) => percent(recall, 2)],
    [
      `Unrelated candidates of a lookup among ${count(state.documents)} documents`,
      ({ background_candidates: candidates }) => (candidates >= 100 ? count(candidates) : short(candidates)),
    ],
    ["Memory of the index for a document", ({ index_bytes_per_document: each }) => bytes(each)],
    [`Memory of the index for ${count(state.documents)} documents`, ({ index_bytes: all }) => bytes(all)],
  ];
  const column = (title, one) => ({ title, number: true, cell: ([, value]) => value(one) });
  return table(
    "The present banding and the chosen one",
    [
      { title: "What", cell: ([name]) => name },
      column(`Before: ${named(banding)}`, both[0]),
      column(`After: ${named(state)}`, both[1]),
    ],
    rows,
  );
}

function costNote({ background_candidates: candidates }) {
  const words =
    "A candidate is a stored document that is compared with the one that is looked up. Unrelated candidates only cost time. " +
    "They are computed as if all unrelated pairs had the same similarity.";
  const limit =
    `A lookup compares at most ${count(CANDIDATES_MAX)} candidates, unless limits.candidates_max says otherwise. ` +
    "With more, its verdict says that it is not complete, and duplicates may be missed.";
  return [h("p", { class: "hint" }, words), candidates > CANDIDATES_MAX ? note("warn", limit) : null];
}
