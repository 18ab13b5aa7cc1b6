// What the form for a new collection will create: the spec, which cannot be changed later, the request, and the button
// that sends it.

import { ask, curl, of, post } from "./api.js";
import { place } from "./collection-controls.js";
import { CURVE_SLOTS, draftShape } from "./collection-spec.js";
import { button, bytes, card, curlButton, failure, h, note, percent, toast } from "./ui.js";

/** The card: { element, show(draft, {faults, line, body}), cost(draft) }. */
export function summaryOf(context) {
  const spec = h("code", { class: "spec" });
  const fixed = h("p", { class: "hint" });
  const later = h("p", { class: "hint" });
  const [faults, memory, answer] = [place(), place(), place()];
  const request = h("pre", {});
  const create = button("Create the collection", () => send(), { kind: "primary" });
  let now = null;

  async function send() {
    create.disabled = true;
    const { body, line } = now;
    const draft = { ...now.draft };
    try {
      const made = await ask("PUT", of(draft.name), { body });
      const others = differences(draft, line, made);
      toast(
        others.length === 0
          ? `Created ${draft.name}`
          : `Created ${draft.name}. The configuration of the server has other defaults: ${others.join(", ")}.`,
      );
      if (!context.signal.aborted) context.go("collection", { collection: draft.name });
    } catch (problem) {
      create.disabled = false;
      if (problem.name !== "Problem") throw problem;
      answer.show(failure(problem));
    }
  }

  return {
    element: card(
      "What will be created",
      h("h3", {}, "The spec, which cannot be changed"),
      spec,
      fixed,
      later,
      memory.element,
      h("h3", {}, "The request"),
      request,
      h(
        "p",
        { class: "hint" },
        "Only what differs from the defaults is sent. The server takes the rest from [default_collection] of its configuration.",
      ),
      faults.element,
      h(
        "div",
        { class: "row" },
        create,
        curlButton(() => curl("PUT", of(now.draft.name || "NAME"), { body: now.body })),
      ),
      answer.element,
    ),
    show(draft, { faults: found, line, body }) {
      now = { draft, body, line };
      spec.replaceChildren(...line.split(/(?<=;)/).flatMap((part) => [part, h("wbr")]));
      const index = draft.index === "containment" ? "containment" : "similarity";
      fixed.textContent =
        `Cannot be changed later: the spec, the name, the index (${index}), what is stored ` +
        `(keep: ${draft.keep}), and the text of pages (extract: ${draft.extract}).`;
      later.textContent =
        draft.index === "containment"
          ? "Can be changed later: the time to live."
          : "Can be changed later: the threshold, the verification, the bands and rows, and the time to live.";
      request.textContent = `PUT /v1/collections/${draft.name || "NAME"}\n\n${JSON.stringify(body, null, 1)}`;
      const words = found.map((fault) => h("p", {}, fault));
      if (found.length === 0) faults.show();
      else {
        faults.show(
          draft.name === "" ? h("p", { class: "hint" }, "Enter a name for the collection.") : note("warn", words),
        );
      }
      create.disabled = found.length > 0;
      answer.show();
    },
    cost: (draft) => showCost(memory, draft, context),
  };
}

/** Says which bands the collection gets, what they find, and what a document takes. */
async function showCost(memory, draft, { may, signal }) {
  if (signal.aborted) return;
  if (draft.index === "containment") {
    return memory.show(h("p", {}, "Each run of words takes 30 to 50 bytes of memory, and 8 bytes on disk."));
  }
  const shape = draftShape(draft);
  const valid = shape && CURVE_SLOTS.includes(shape.slots) && draft.threshold > 0 && draft.threshold <= 1;
  if (!may("check") || !valid || draft.banding !== "") return memory.show();
  const asked = JSON.stringify(draft);
  try {
    const {
      banding,
      recall_at_s_hi: recall,
      s_hi: at,
      index_bytes_per_document: each,
      index_bytes: all,
      documents,
    } = await post(
      "/v1/tune",
      { threshold: draft.threshold, k: shape.slots, bits: shape.bits, sketch: shape.kind },
      {},
      signal,
    );
    if (asked !== JSON.stringify(draft)) return;
    memory.show(
      h(
        "p",
        {},
        `hapax chooses ${banding.bands} bands of ${banding.rows} rows: ${percent(recall)} of the pairs of similarity ${at} ` +
          `become candidates. The index takes ${each} bytes of memory for a document, and ${bytes(all)} for ` +
          `${documents / 1e6} million documents.`,
      ),
    );
  } catch (problem) {
    if (problem.name !== "Problem") return;
    memory.show(h("p", { class: "hint" }, problem.message));
  }
}

/** What the server filled in otherwise than the form showed. */
function differences(draft, line, made) {
  const same = (name, shown) => made[name] === shown || (name === "spec" && shown.includes("…"));
  const compared = [
    ["spec", line],
    ["keep", draft.keep],
    ["extract", draft.extract],
    ["touch", draft.touch],
  ];
  if (made.index !== "containment") compared.push(["threshold", draft.threshold], ["verify", draft.verify]);
  if ((made.ttl ?? 0) !== draft.ttl) compared.push(["ttl", draft.ttl]);
  return compared.filter(([name, shown]) => !same(name, shown)).map(([name]) => `${name} ${made[name] ?? "none"}`);
}
