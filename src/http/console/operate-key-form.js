// The form that adds a key. Out: POST /v1/keys. In: the new key with its text.

import { post } from "./api.js";
import { button, card, failure, field, fill, h, newId, note, select } from "./ui.js";

const SCOPES = {
  check: "Look documents up, compare texts, try thresholds. It stores nothing.",
  read: "Read stored documents, clusters, buckets, statistics and reports of merges.",
  insert: "Store documents. With read, also merge collections.",
  delete: "Delete documents, and replace their content.",
  admin: "Create, change and drop collections; make backups; read the audit log.",
  metrics: "Read /metrics. Only for keys without a limit to some collections.",
  sign: "Get signatures, and send signatures or sets in place of texts. A client can then craft documents that fill a bucket.",
  explain: "See how a verdict came about: sizes of buckets, and documents below the threshold.",
  load: "Load finished signatures. A client can then make a document look like a copy of any text.",
  keys: "List, add and revoke keys. A client can then give itself every other scope.",
};
/** Usual clients, and the scopes that they need. */
const CLIENTS = [
  ["", "Choose the scopes yourself"],
  ["check,insert", "A crawler: check, insert"],
  ["check", "A service that only checks: check"],
  ["insert", "An import: insert"],
  ["check,read", "A person who reads: check, read"],
  ["check,read,metrics,explain", "A colleague who uses this console: check, read, metrics, explain"],
  ["metrics", "Prometheus: metrics"],
  ["check,read,insert,delete,admin,metrics", "An operator: check, read, insert, delete, admin, metrics"],
];
const EXPIRIES = [
  ["", "Never"],
  ["30d", "In 30 days"],
  ["90d", "In 90 days"],
  ["365d", "In a year"],
  ["date", "On a date"],
];
const LIMITS = {
  requests_per_second: "Requests per second",
  documents_per_second: "Documents per second",
  bytes_per_second: "Bytes of requests per second",
  requests_in_flight: "Requests at the same time",
};
const SCORES = [
  ["full", "Full answers, with similarities"],
  ["verdict", "Verdicts only, without scores"],
];

/** A card with the form. `added` gets the answer of the server. */
export function keyForm(added) {
  const name = h("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    maxlength: "64",
    pattern: "[a-z0-9][a-z0-9_.\\-]*",
  });
  const collections = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "all" });
  const date = h("input", { type: "date" });
  const dateField = field("The date", date, "The key is refused from the beginning of this day on, in UTC.");
  dateField.hidden = true;
  const expires = select(EXPIRIES, "90d", (value) => (dateField.hidden = value !== "date"));
  const scores = select(SCORES, "full");
  const boxes = new Map(
    Object.keys(SCOPES).map((scope) => [scope, h("input", { type: "checkbox", value: scope, id: newId("scope") })]),
  );
  const client = select(CLIENTS, "", (value) => {
    for (const [scope, box] of boxes) box.checked = value.split(",").includes(scope);
  });
  const limits = new Map(Object.keys(LIMITS).map((limit) => [limit, h("input", { type: "number", min: "1", step: "1" })]));
  const answer = h("div", { "aria-live": "polite" });

  const send = async (event) => {
    event.preventDefault();
    const scopes = [...boxes].filter(([, box]) => box.checked).map(([scope]) => scope);
    if (scopes.length === 0) return fill(answer, note("warn", "Choose one scope or more."));
    if (expires.value === "date" && date.value === "") return fill(answer, note("warn", "Choose the date."));
    const names = collections.value.split(/[\s,]+/).filter(Boolean);
    // "*" means all collections, also if another key with this name has fewer.
    const body = { name: name.value.trim(), scopes, scores: scores.value, collections: names.length > 0 ? names : ["*"] };
    const set = [...limits].filter(([, input]) => input.value !== "").map(([limit, input]) => [limit, Number(input.value)]);
    if (set.length > 0) body.limits = Object.fromEntries(set);
    if (expires.value !== "") body.expires = expires.value === "date" ? date.value : expires.value;
    try {
      const key = await post("/v1/keys", body);
      form.reset();
      dateField.hidden = true;
      fill(answer);
      await added(key);
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      fill(answer, failure(problem));
    }
  };

  const form = h(
    "form",
    { class: "form", on: { submit: send } },
    h(
      "div",
      { class: "fields" },
      field(
        "Name",
        name,
        "For logs and metrics: 1 to 64 of a-z, 0-9, - _ and ., beginning with a letter or a digit. To replace a key, add a " +
          "second one with the same name, then revoke the old one.",
      ),
      field("Who uses it?", client, "Sets the checkboxes below."),
      field(
        "Collections",
        collections,
        "Names with commas between them, such as default,crawl-*: the * stands for any ending. Leave it empty for all " +
          "collections.",
      ),
      field("Expires", expires),
      dateField,
      field(
        "Answers",
        scores,
        "Without scores, a client cannot use the server to measure how similar its texts are to stored ones.",
      ),
    ),
    h(
      "fieldset",
      { class: "scopes" },
      h("legend", {}, "What the key may do"),
      [...boxes].map(([scope, box]) => scopeLine(scope, box)),
    ),
    h(
      "details",
      { class: "more" },
      h("summary", {}, "Limits of the key"),
      h(
        "p",
        { class: "hint" },
        "Without any limit here, the new key gets the limits of the valid key with the same name, if there is one.",
      ),
      h(
        "div",
        { class: "fields" },
        [...limits].map(([limit, input]) => field(LIMITS[limit], input)),
      ),
    ),
    h("div", { class: "row end" }, button("Add the key", null, { type: "submit", kind: "primary" })),
    answer,
  );
  return card("Add a key", form);
}

function scopeLine(scope, box) {
  const about = h("span", { class: "hint", id: newId("about") }, SCOPES[scope]);
  box.setAttribute("aria-describedby", about.id);
  return h("div", { class: "scope" }, box, h("div", {}, h("label", { for: box.id }, scope), " ", about));
}
