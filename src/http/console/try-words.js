// A verdict in words. In: the answer to a check or an insert. Out: sentences, and the threshold that would change it.

import { shortId } from "./passages.js";
import { count, note, percent, similarity } from "./ui.js";

const SHORT_TEXT = 50;

const MEANINGS = {
  unique: "No stored document was found that is similar enough.",
  near_duplicate: "A stored document reaches the threshold.",
  exact_duplicate:
    "A stored document has the same text, after capital letters, white space and forms of characters are made equal.",
  empty: "There is no word or number in it, so there is nothing to compare. An empty document is never stored.",
};

const OUTCOMES = {
  inserted: "The document is stored.",
  skipped: "Nothing was stored or changed, because the document is a duplicate or is empty.",
  linked: "The id is stored as a link to the document that it duplicates.",
  replaced: "The new content replaced the old content of the id.",
  removed: "The old content of the id was deleted, and the new content was not stored.",
  unchanged: "This content was stored under this id before. The verdict is the one of that time.",
  updated: "This content was stored under this id before. Only its metadata or labels were changed.",
};

const UNREAD = {
  bucket: ["entries of full buckets were not read", "limits.bucket_read_max"],
  candidates: ["candidates were not compared", "limits.candidates_max"],
  exact_reads: ["documents were not compared by their shingles", "limits.exact_reads_max and limits.exact_bytes_max"],
  doubt: ["documents may no longer be stored, because the disk failed during a write", null],
};

const UNITS = { word: "word", char: "character" };

/** What a verdict means. */
export const meaning = (verdict) => MEANINGS[verdict] ?? "";

/** What an insert changed. */
export const outcomeWords = (outcome) => OUTCOMES[outcome] ?? outcome;

const INCOMPLETE =
  "The lookup is not complete: it reached a limit of the server, so a match may be missing. Exact copies are always found.";
const FULL = " Full buckets come from text that many documents share, such as a footer.";

/** The unit and the size of the shingles of a collection: ["word", 5]. */
export function shingleOf({ spec }) {
  const [, unit, size] = /shingle=([a-z]+)(\d+)/.exec(spec) ?? ["", "word", "5"];
  return [unit, Number(size)];
}

/** What a shingle of a collection is. */
export function shingleWords(info) {
  if (!info.spec) return "";
  const [unit, size] = shingleOf(info);
  const run = size === 1 ? `one ${UNITS[unit]}` : `a run of ${size} ${UNITS[unit]}s`;
  return `A shingle is ${run}.`;
}

// A similarity comes with six digits, so that a product such as 0.29 * 100 must not be taken for less than 29.
const hundredths = (value) => Math.floor(100 * value + 1e-9);

/** The lowest threshold above a similarity, in steps of 0.01; null if there is none. */
export const above = (value) => (hundredths(value) < 100 ? (hundredths(value) + 1) / 100 : null);
/** The highest threshold that a similarity reaches, in steps of 0.01; null if there is none. */
export const below = (value) => (hundredths(value) > 0 ? hundredths(value) / 100 : null);

/** Which threshold would change a verdict: a sentence, and the threshold if there is one. Null if this is not known. */
export function turningPoint(verdict, { verify, documents }, mayExplain) {
  const { matches, explanation } = verdict;
  if (!matches || verdict.verdict === "empty" || documents === 0) return null;
  if (verdict.verdict === "exact_duplicate") return { sentence: "No threshold changes this: an equal text is always found." };
  // If a candidate is compared by its shingles or not depends on the threshold, so its similarity may become another one.
  const isRough = ({ method }) => method === "estimate" && verify !== "estimate";
  const words = (threshold, row) => `${isRough(row) ? "about " : ""}${threshold.toFixed(2)}`;
  if (matches.length > 0) {
    const best = matches.reduce((a, b) => (b.similarity > a.similarity ? b : a));
    const threshold = above(best.similarity);
    if (threshold === null) return { sentence: "No threshold changes this: the best match has a similarity of 1." };
    const orMore = threshold < 1 ? " or more" : "";
    return { threshold, sentence: `With a threshold of ${words(threshold, best)}${orMore} this would be unique.` };
  }
  if (!mayExplain) return { sentence: "A key with the scope explain also sees which lower threshold makes this a duplicate." };
  const next = explanation?.lookup?.below_threshold[0];
  if (!next) {
    if (verdict.candidates > 0) return null;
    return { sentence: "No lower threshold changes this: no other stored document shares a band with it, so none was compared." };
  }
  const threshold = below(next.similarity);
  if (threshold === null) return { sentence: "No lower threshold changes this: the best similarity is near 0." };
  const start = `With a threshold of ${words(threshold, next)} or less this would be a near duplicate of `;
  return { threshold, sentence: [start, shortId(next.id), "."] };
}

function unreadNote({ unread, explanation }) {
  const reasons = Object.entries(explanation?.lookup?.unread ?? {}).filter(([, number]) => number > 0);
  const told = reasons.map(([reason, number]) => {
    const [words, limit] = UNREAD[reason] ?? [`were left out (${reason})`, null];
    return ` ${count(number)} ${words}${limit ? ` (${limit})` : ""}.`;
  });
  const sum = told.length === 0 && unread ? ` ${count(unread)} entries or candidates were left out.` : "";
  const isFull = reasons.some(([reason]) => reason === "bucket");
  return note("warn", INCOMPLETE, told, sum, isFull ? FULL : "");
}

function recallNote({ expected_recall: recall, threshold, warning }, { threshold: own }) {
  const words =
    `The bands of this collection are made for its threshold, ${similarity(own)}. Of the documents whose similarity is ` +
    `exactly ${similarity(threshold)}, ${percent(recall)} share a band; the others are not found.`;
  return note(warning ? "warn" : "info", words, warning ? ` The server warns: ${warning}.` : "");
}

function shortNote({ shingles }, info) {
  const [unit, size] = shingleOf(info);
  const words = `The text is short: it has ${count(shingles)} ${shingles === 1 ? "shingle" : "shingles"}.`;
  return note("info", `${words} One changed ${UNITS[unit]} changes up to ${size} of them, so the similarity falls fast.`);
}

function previousNote({ previous: { similarity: value, low, high }, verdict }) {
  const not = verdict === "unique" ? " It does not count as a match, because a document is never its own match." : "";
  const interval = `${similarity(low)} to ${similarity(high)}`;
  return note("info", `Other content is stored under this id. Its similarity is ${similarity(value)} (${interval}).${not}`);
}

function omittedNote({ omitted: { matches, metadata } }) {
  const words = `${count(matches)} matches and the metadata of ${count(metadata)} matches were left out`;
  return note("warn", `The answer would have been too long, so ${words}.`);
}

/** The notes about a verdict that need an explanation. */
export function notes(verdict, info) {
  const isLooked = verdict.verdict !== "empty";
  return [
    verdict.complete ? null : unreadNote(verdict),
    verdict.expected_recall === undefined ? null : recallNote(verdict, info),
    isLooked && info.documents === 0 ? note("info", "The collection is empty, so every text is unique.") : null,
    verdict.stored ? note("info", "This content is stored under this id. The document itself is left out of the matches.") : null,
    verdict.previous ? previousNote(verdict) : null,
    isLooked && verdict.shingles < SHORT_TEXT && info.spec ? shortNote(verdict, info) : null,
    verdict.omitted ? omittedNote(verdict) : null,
  ];
}
