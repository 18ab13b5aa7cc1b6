// The form that starts a merge of a collection into another one.

import { get, of, post } from "./api.js";
import { later } from "./pieces.js";
import { button, card, confirm, count, failure, field, fill, h, idText, select } from "./ui.js";

const DUPLICATES = [
  ["skip", "skip: do not store duplicates"],
  ["link", "link: store them as links"],
  ["store", "store: store them like any other document"],
];
const EXISTING = [
  ["conflict", "conflict: refuse the document"],
  ["keep", "keep: keep the stored content"],
  ["replace", "replace: store the new content instead"],
];

/** A card with the form. Its choices arrive when the collections are known. */
export function mergeForm(context) {
  const { signal } = context;
  return card(
    "Merge a collection into another",
    h(
      "p",
      { class: "hint" },
      "The documents of a collection are inserted into another one, as if a client sent them. The first collection does " +
        "not change.",
    ),
    later(async () => choices(context, (await get("/v1/collections", {}, signal)).collections), signal),
  );
}

/** Whether one collection can be merged into another: both must compare and keep the same things. */
const isMergeable = (from, into) =>
  from.name !== into.name &&
  from.fingerprint === into.fingerprint &&
  from.keep === into.keep &&
  from.extract === into.extract;

function choices(context, all) {
  const { may } = context;
  const targets = all.filter((into) => all.some((from) => isMergeable(from, into)));
  if (targets.length === 0) {
    return h(
      "p",
      {},
      "No two collections fit together. To merge a collection into another one, create it with the same spec, keep and extract.",
    );
  }
  const into = select(
    targets.map(({ name }) => name),
    targets[0].name,
    () => fits(),
  );
  const from = select([], "");
  const duplicate = select(DUPLICATES, "skip");
  const existing = select(
    EXISTING.filter(([value]) => value !== "replace" || may("delete")),
    "conflict",
  );
  const answer = h("div");
  const fits = () => {
    const target = all.find(({ name }) => name === into.value);
    fill(
      from,
      all
        .filter((one) => isMergeable(one, target))
        .map(({ name, documents }) => h("option", { value: name }, `${name} (${count(documents)} documents)`)),
    );
  };
  fits();
  const start = async (event) => {
    event.preventDefault();
    const body = { from: from.value, on_duplicate: duplicate.value, on_existing: existing.value };
    const { documents } = all.find(({ name }) => name === from.value);
    const sentence = [
      `${count(documents)} documents of `,
      idText(from.value),
      " are inserted into ",
      idText(into.value),
      ". This runs in the background; you can stop it, but what it has stored stays.",
    ];
    if (!(await confirm("Start this merge", sentence, "Start the merge", { kind: "primary" }))) return;
    try {
      const { job } = await post(of(into.value, "/merge"), body);
      context.go("operate", { tab: "jobs", job });
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      fill(answer, failure(problem));
    }
  };
  return h(
    "form",
    { class: "form", on: { submit: start } },
    h(
      "div",
      { class: "fields" },
      field("Into", into),
      field("From", from, "Only collections with the same spec, keep and extract are listed."),
      field("If a document is a duplicate", duplicate),
      field(
        "If the id has other content",
        existing,
        may("delete") ? null : "To replace stored content, a key with the scope delete is needed.",
      ),
    ),
    h("div", { class: "row end" }, button("Start the merge", null, { type: "submit", kind: "primary" })),
    answer,
  );
}
