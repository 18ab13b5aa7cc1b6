// "Try it" for collections that find documents by similarity. In: a document that a person gave. Out: the verdict with
// all that belongs to it.

import { ask, of } from "./api.js";
import { attempt, commandOf } from "./attempt.js";
import { hint, markedText, shortId } from "./passages.js";
import { bodyOf } from "./source.js";
import { curveOf } from "./try-curve.js";
import { matchesOf, rowsOf } from "./try-matches.js";
import { thresholdField } from "./try-threshold.js";
import { timesOf } from "./try-times.js";
import { meaning, notes, shingleWords, turningPoint } from "./try-words.js";
import { badge, button, card, count, facts, field, fill, h, note, similarity, verdictBadge } from "./ui.js";

const LIMIT = 20;
const NUMBERS =
  "The similarity is the number of shingles that both documents have, divided by the number that at least one of them has. " +
  "Only documents that share a band with the text are compared; those with equal signatures count as one.";
const NO_TIMES = "Times, and the documents below the threshold, are shown to keys with the scope explain.";

function numbers(verdict, info) {
  const { matches, threshold, shingles, candidates } = verdict;
  if (!matches) return note("info", "This key sees only verdicts: no matches and no similarities.");
  return [
    facts([
      ["Best similarity", matches.length > 0 ? similarity(verdict.similarity) : "no match"],
      ["Threshold", similarity(threshold)],
      ["Shingles of the text", count(shingles)],
      ["Documents compared", count(candidates)],
    ]),
    hint(`${shingleWords(info)} ${NUMBERS}`),
  ];
}

/** What the server read from a page. `load()` fills the text that is compared into an element. */
function pageOf({ page }, load) {
  if (!page) return null;
  const text = h("div", {});
  const opened = (event) => event.target.open && text.childElementCount === 0 && load(text);
  return [
    facts([
      ["Title of the page", page.title ? h("bdi", {}, page.title) : "none"],
      ["Address in the page", page.canonical_url ? shortId(page.canonical_url) : "none"],
      ["Language", page.language ? h("bdi", {}, page.language) : "not given"],
      ["Compared", page.extracted === "article" ? "the main text" : "all visible text"],
    ]),
    h("details", { on: { toggle: opened } }, h("summary", {}, "The text that is compared"), text),
  ];
}

/** Makes this part of the view. `info`: the collection. `draft`: the document. `again()` checks it. */
export function checks(context, info, draft, again) {
  const { collection, params, setParams, signal, may, access } = context;
  const seesAll = access.key?.scores !== "verdict";
  const headline = h("div", { class: "headline", role: "status" });
  const about = h("div", { class: "stack" });
  const times = h("div", {});
  const { list, passages, show: showMatches } = matchesOf(context, info, draft, LIMIT);
  const curve = seesAll ? curveOf(info, signal) : null;
  const threshold = seesAll ? thresholdField(context, info, again) : null;
  const id = h("input", { type: "text", value: params.get("id") ?? "", autocomplete: "off", spellcheck: "false", dir: "auto" });
  id.addEventListener("change", () => {
    setParams({ id: id.value });
    again();
  });
  const both = card("Passages that both have", passages);
  const pair = h("div", { class: "columns" }, card("Matches", list), card("Where the time went", times));
  const rest = h("div", { class: "stack" }, pair, both);

  const request = () =>
    bodyOf(draft, params.get("id"), {
      threshold: threshold?.value(),
      limit: seesAll ? LIMIT : null,
      with: seesAll && may("read") ? "metadata" : null,
      explain: seesAll && may("explain") ? "true" : null,
    });

  async function run(signal) {
    const verdict = await ask("POST", of(collection, "/check"), { ...request(), signal });
    const point = turningPoint(verdict, info, may("explain"));
    fill(headline, verdictBadge(verdict.verdict), " ", meaning(verdict.verdict));
    fill(about, point ? turning(point) : null, notes(verdict, info), numbers(verdict, info), pageOf(verdict, extract));
    rest.hidden = !seesAll || verdict.verdict === "empty";
    if (!seesAll) return;
    showMatches(verdict, signal);
    both.hidden = rowsOf(verdict).length === 0;
    curve.show(verdict.threshold, rowsOf(verdict));
    fill(times, verdict.explanation ? timesOf(verdict.explanation) : NO_TIMES);
  }

  function turning({ sentence, threshold: other }) {
    const offer = other === undefined ? null : button(`Check with ${other.toFixed(2)}`, () => threshold.become(other));
    return h("div", { class: "row turning" }, h("p", {}, sentence), offer);
  }

  function extract(place) {
    return attempt(place, async () => {
      const { text } = await ask("POST", of(collection, "/extract"), { ...bodyOf(draft, null, {}), signal });
      fill(place, markedText("The text that is compared", text, []));
    });
  }

  function idle() {
    fill(headline, badge("no text yet"), " The verdict appears here while you type.");
    fill(about);
    rest.hidden = true;
    curve?.show(threshold.value() ?? info.threshold, []);
  }

  const aboutId = "A stored document with this id is left out of the matches, and is compared with the text.";
  return {
    fields: [threshold?.element, field("Id of the text (optional)", id, aboutId)],
    first: [card("Verdict", headline, about), curve ? card("How likely a similar document is found", curve.element) : null],
    rest,
    run,
    idle,
    waiting: () => fill(headline, badge("waiting"), " The server has not answered yet."),
    failed(problem) {
      fill(headline);
      fill(about, problem);
      rest.hidden = true;
    },
    command: () => commandOf(of(collection, "/check"), request()),
  };
}
