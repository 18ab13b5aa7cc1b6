// Compare: two texts, pages or stored documents side by side.

import { curl, get, of, post } from "./api.js";
import { attempt, patiently } from "./attempt.js";
import { compared } from "./comparison.js";
import { SAMPLE, SAMPLE_COPY } from "./samples.js";
import { contentOf, drafts, isMissing, nothing, source } from "./source.js";
import { button, card, curlButton, empty, failure, fill, h, heading, note } from "./ui.js";

const LEAD = "Which passages do two documents share, and how similar are they? Nothing is stored.";
const COMPARING = "The server compares the two documents.";
const CONTAINMENT =
  "This collection finds items that a text contains, and compares nothing by similarity. See which items a text contains: ";
const KINDS = ["id", "text", "html"];
const SIDES = ["a", "b"];
/** How many documents are looked through for a pair of duplicates. */
const READ_MAX = 1000;

/** Lets the drafts of the two sides begin with the ids in the address. */
function begin(params) {
  for (const side of SIDES) {
    const id = params.get(side);
    if (id !== null) Object.assign(drafts[side], nothing("id"), { id });
    else if (drafts[side].kind === "id") drafts[side].id = "";
  }
}

/** A Problem whose title says which side is missing, if a stored document was not found. */
function named(problem) {
  const isMissing = ({ kind, id }) => kind === "id" && problem.message.includes(`\`${id}\``);
  const side = problem.code === "document_not_found" ? SIDES.find((side) => isMissing(drafts[side])) : undefined;
  return side ? Object.assign(problem, { title: `Document ${side.toUpperCase()} was not found` }) : problem;
}

export async function render(page, context) {
  const { collection, params, setParams, signal, may, chooser, href } = context;
  begin(params);
  const first = h("div", {});
  const result = h("div", { class: "stack" });
  const sides = SIDES.map((side) =>
    source({ label: `Document ${side.toUpperCase()}`, value: drafts[side], kinds: KINDS, change: changed, rows: 9 }),
  );
  const [a, b] = sides;
  page.append(
    heading("Compare", LEAD, chooser(), button("Swap A and B", swap), curlButton(command)),
    first,
    h("div", { class: "columns" }, card("A", a.element), card("B", b.element)),
    h("div", { class: "row end" }, button("Compare", changed, { kind: "primary" })),
    result,
  );

  let info = null;
  let running = null;
  signal.addEventListener("abort", () => running?.abort());

  function changed() {
    if (signal.aborted) return;
    const idOf = ({ kind, id }) => (kind === "id" && id !== "" ? id : null);
    setParams({ a: idOf(drafts.a), b: idOf(drafts.b) });
    compare();
  }

  function swap() {
    const before = { ...drafts.a };
    Object.assign(drafts.a, drafts.b);
    Object.assign(drafts.b, before);
    for (const side of sides) side.show();
    changed();
  }

  function use(one, other) {
    Object.assign(drafts.a, nothing(), one);
    Object.assign(drafts.b, nothing(), other);
    for (const side of sides) side.show();
    changed();
  }

  const path = of(collection, "/compare");
  const query = { with: may("read") ? "passages" : null };

  /** The command has the contents of the two sides, unless one of them is a file that is too long to be shown. */
  function command() {
    const shown = ({ kind, id, text, file }) => ({ [kind]: kind === "id" ? id : file ? "…" : text });
    return curl("POST", path, { query, body: { a: shown(drafts.a), b: shown(drafts.b) } });
  }

  /** Compares the two sides. If their passages cannot be found, the answer has the reason instead, as `refused`. */
  async function answerTo(body, mine) {
    try {
      return await post(path, body, query, mine);
    } catch (problem) {
      if (problem.code !== "invalid_value" || query.with === null) throw problem;
      return { ...(await post(path, body, {}, mine)), refused: problem.message };
    }
  }

  async function compare() {
    running?.abort();
    running = new AbortController();
    const mine = running.signal;
    if (info === null) return;
    const isReady = SIDES.every((side) => !isMissing(drafts[side]));
    fill(first, isReady ? null : start());
    if (!isReady) return fill(result);
    try {
      const body = { a: await contentOf(drafts.a), b: await contentOf(drafts.b) };
      const answer = await patiently(answerTo(body, mine), () => mine.aborted || fill(result, note("info", COMPARING)));
      if (!mine.aborted) fill(result, compared(answer, info, context, drafts));
    } catch (problem) {
      if (mine.aborted || problem.name === "AbortError") return;
      if (problem.name !== "Problem") throw problem;
      fill(result, failure(named(problem), compare));
    }
  }

  /** What to do if a side is missing. */
  function start() {
    const hasPairs = may("read") && info.documents > 1;
    return empty(
      "Choose two documents",
      "Enter a stored document, a text or a page on each side. The comparison appears below as soon as both are there.",
      button("Use two sample texts", () => use({ text: SAMPLE }, { text: SAMPLE_COPY })),
      hasPairs ? button("Use a stored pair", () => attempt(result, storedPair)) : null,
    );
  }

  async function storedPair() {
    const { documents } = await get(of(collection, "/documents"), { limit: READ_MAX }, signal);
    const isNear = ({ verdict, duplicate_of: original }) => verdict === "near_duplicate" && original !== undefined;
    const found = documents.find(isNear) ?? documents.find(({ duplicate_of: original }) => original !== undefined);
    if (found) return use({ kind: "id", id: found.duplicate_of }, { kind: "id", id: found.id });
    fill(result, note("info", `None of the first ${READ_MAX} documents is a stored duplicate, so there is no pair to show.`));
  }

  await attempt(result, async () => {
    const found = await get(of(collection), {}, signal);
    if (found.index === "containment") {
      const link = h("a", { href: href("try", { collection }) }, "Try it");
      return fill(first, note("info", CONTAINMENT, link, ". To compare two texts, choose another collection."));
    }
    info = found;
    await compare();
  });
}
