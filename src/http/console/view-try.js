// Try it: what the collection says about a text, a page or a file.

import { curl, get, of } from "./api.js";
import { attempt, patiently } from "./attempt.js";
import { command } from "./pieces.js";
import { sampleFor } from "./samples.js";
import { drafts, isMissing, nothing, source } from "./source.js";
import { checks } from "./try-check.js";
import { overlaps } from "./try-overlaps.js";
import { storeCard } from "./try-store.js";
import { button, card, curlButton, empty, failure, fill, h, heading, note } from "./ui.js";

const LEAD = "Paste a text, and see at once whether the collection has it, or a similar one. This stores nothing.";
const LEAD_ITEMS = "Paste a text, and see at once which items of the collection it contains. This stores nothing.";
const NO_INSERT = "To store a text, you need a key with the scope insert.";

/** The settings of the collection. A key that sees only verdicts may not read them. */
async function describe({ collection, access, signal }) {
  if (access.key?.scores === "verdict") return {};
  return get(of(collection), {}, signal);
}

/** What to do first in a collection without documents. */
function firstSteps({ collection, may }) {
  const body = { id: "https://a.example/keeper", text: "The text of a page, as your crawler or your program has it." };
  const sentence = may("insert")
    ? "Store a document first: with this command, or with the sample and the button “Store it” below."
    : "Someone with a key with the scope insert must store a document first, with this command:";
  const store = command(curl("POST", of(collection, "/documents"), { body }));
  return empty("This collection has no documents yet", `So every text is new to it. ${sentence}`, store);
}

export async function render(page, context) {
  const { collection, may, signal, chooser } = context;
  const draft = drafts.try;
  const lead = h("span", {}, LEAD);
  const first = h("div", {});
  const told = h("div", { role: "status" });
  const options = h("div", { class: "fields" });
  const beside = h("div", { class: "stack" });
  const below = h("div", { class: "stack" });
  const later = h("div", { class: "stack" });
  const sample = button("Use a sample", useSample);
  const input = source({ label: "Text", value: draft, kinds: ["text", "html"], change: check, beside: [sample], rows: 14 });
  const copy = curlButton(() => part.command());
  copy.disabled = true;
  sample.disabled = true;
  page.append(
    heading("Try it", lead, chooser(), copy),
    first,
    h("div", { class: "columns" }, card("Your text", input.element, told, options), beside),
    below,
    later,
  );

  let info = null;
  let part = null;
  let running = null;
  signal.addEventListener("abort", () => running?.abort());

  /** Asks about the draft. An older question that has no answer yet is given up. */
  async function check() {
    if (part === null || signal.aborted) return;
    running?.abort();
    running = new AbortController();
    if (isMissing(draft)) return part.idle();
    const mine = running;
    try {
      await patiently(part.run(mine.signal), () => mine.signal.aborted || part.waiting());
    } catch (problem) {
      if (mine.signal.aborted || problem.name === "AbortError") return;
      if (problem.name !== "Problem") throw problem;
      part.failed(failure(problem, check));
    }
  }

  async function useSample() {
    await attempt(told, async () => {
      const { text, about } = await sampleFor(context, info);
      Object.assign(draft, nothing(), { text });
      input.show();
      fill(told, note("info", about));
      await check();
    });
  }

  async function stored() {
    await attempt(first, async () => {
      Object.assign(info, await describe(context));
      showFirst();
    });
    check();
  }

  const showFirst = () => fill(first, info.documents === 0 ? firstSteps(context) : null);

  await attempt(beside, async () => {
    info = await describe(context);
    if (info.index === "containment") lead.textContent = LEAD_ITEMS;
    part = (info.index === "containment" ? overlaps : checks)(context, info, draft, check);
    fill(options, part.fields);
    fill(beside, part.first);
    fill(below, part.rest);
    fill(later, may("insert") ? storeCard(context, info, draft, stored) : note("info", NO_INSERT));
    copy.disabled = sample.disabled = false;
    showFirst();
    await check();
  });
}
