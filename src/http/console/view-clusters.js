// Clusters of duplicates: the largest ones, or the members of one cluster.

import { curl, get, of } from "./api.js";
import { shortId } from "./passages.js";
import { briefId, command, duplicateTabs, later, ofServer, pairOf, spoken } from "./pieces.js";
import {
  badge,
  button,
  card,
  count,
  curlButton,
  empty,
  facts,
  field,
  h,
  heading,
  intervalBar,
  note,
  similarity,
  table,
  tabs,
  time,
} from "./ui.js";

const PAGE = 50;
/** Why the number of clusters is not exact. */
const ABOUT = "A cluster of which only one document is left may still be counted.";

export async function render(page, context) {
  const { collection, params, signal, href, chooser } = context;
  const id = params.get("id");
  const cursor = params.get("cursor");
  const [path, query] =
    id === null ? ["/clusters/largest", { limit: PAGE, cursor }] : ["/clusters", { id, limit: PAGE, cursor }];
  const ask = () => Promise.all([get(of(collection, path), query, signal), get(of(collection), {}, signal)]);
  const explain = (problem) => {
    if (problem.code === "document_not_found") return notStored(context, id);
    return problem.code === "not_in_this_store" ? note("info", h("bdi", {}, problem.message)) : null;
  };
  page.append(
    heading(
      "Clusters",
      "A cluster is a document and the duplicates of it that are stored. Each member was compared with the " +
        "representative, the document of the cluster that was stored first.",
      chooser(),
      curlButton(() => curl("GET", of(collection, path), { query })),
    ),
    tabs("Duplicates of the collection", duplicateTabs(context, "clusters")),
    finder(context, id),
    later(
      async () => (id === null ? largest(context, ...(await ask())) : members(context, id, ...(await ask()))),
      signal,
      explain,
    ),
  );
  if (id !== null)
    page.append(h("p", {}, h("a", { href: href("clusters", { collection }) }, "All clusters of this collection")));
}

/** The input that finds the cluster of a document. */
function finder({ collection, go }, id) {
  const input = h("input", { type: "search", value: id ?? "", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const find = (event) => {
    event.preventDefault();
    if (input.value !== "") go("clusters", { collection, id: input.value });
  };
  return h(
    "form",
    { class: "card finder", role: "search", on: { submit: find } },
    field("Id of a document", input, "Enter any document of the cluster."),
    button("Find its cluster", null, { type: "submit" }),
  );
}

function notStored({ collection }, id) {
  return empty("There is no such document", [
    "The collection ",
    h("strong", {}, collection),
    " has no document with the id ",
    briefId(id),
    ". If it was a duplicate, it may have been skipped: by default, duplicates are not stored.",
  ]);
}

/** The first place of this page in its list. The address has it, because a cursor does not tell it. */
const firstOf = (params) => Math.max(1, Math.trunc(Number(params.get("from"))) || 1);

/** The links to the first page and to the next page of a list. */
function pages({ collection, params, href }, id, shown, next) {
  const from = firstOf(params);
  const to = (more) => href("clusters", { collection, id, ...more });
  return h(
    "nav",
    { class: "row end", "aria-label": "Pages" },
    params.get("cursor") ? h("a", { href: to({}) }, "First page") : null,
    next ? h("a", { href: to({ cursor: next, from: from + shown }) }, "Next page") : null,
  );
}

// All clusters ----------------------------------------------------------------------------------------------------

function largest(context, { clusters, total, next_cursor: next }, about) {
  if (total === 0) return noClusters(context, about);
  const { collection, params, href } = context;
  const from = firstOf(params);
  const ranks = new Map(clusters.map((cluster, at) => [cluster, from + at]));
  const columns = [
    { title: "Rank", number: true, cell: (cluster) => count(ranks.get(cluster)) },
    {
      title: "Representative",
      cell: ({ representative: id }) => h("a", { href: href("clusters", { collection, id }) }, briefId(id)),
    },
    { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
  ];
  const to = from + clusters.length - 1;
  const range = `Clusters ${count(from)} to ${count(to)} of about ${count(total)}`;
  return card(
    "The largest clusters",
    facts([
      ["Clusters of two or more documents", `about ${count(total)}`],
      ["Documents of the collection", count(about.documents)],
      ["Of these, links", count(about.linked)],
    ]),
    clusters.length > 0 ? h("p", { class: "hint" }, `${range}, the largest first. ${ABOUT}`) : null,
    clusters.length > 0 ? table("Clusters", columns, clusters) : h("p", {}, "There are no more clusters."),
    pages(context, null, clusters.length, next),
  );
}

/** Why there are no clusters, and what to do. */
function noClusters({ collection, href }, { index, documents }) {
  if (index === "containment") {
    return empty(
      "This collection has no clusters",
      "It finds stored items inside longer texts, and does not compare its items with each other. Clusters are in " +
        "collections with index=similarity.",
      h("a", { href: href("collections") }, "Collections"),
    );
  }
  const body = { id: "page-2", text: "The text of the page" };
  const store = curl("POST", of(collection, "/documents"), { query: { on_duplicate: "link" }, body });
  const file = `hapax import ${ofServer()} --collection ${collection} --on-duplicate link pages.jsonl`;
  return card(
    documents === 0 ? "This collection is empty" : "There are no clusters yet",
    documents === 0
      ? null
      : h(
          "p",
          {},
          `The ${count(documents)} documents of this collection are each alone: no stored document is a duplicate of ` +
            "another one.",
        ),
    h(
      "p",
      {},
      "By default (on_duplicate=skip), a duplicate is not stored, so it is in no cluster. To get clusters, insert with " +
        "one of these values:",
    ),
    h(
      "ul",
      {},
      h(
        "li",
        {},
        h("code", {}, "on_duplicate=link"),
        " stores the id of a duplicate as a link to its original. The index grows little.",
      ),
      h(
        "li",
        {},
        h("code", {}, "on_duplicate=store"),
        " stores a duplicate like any other document, so later documents are also compared with it.",
      ),
    ),
    h("h3", {}, "One document"),
    command(store),
    h("h3", {}, "A file of documents"),
    command(file),
    h("p", {}, h("a", { href: href("try", { collection }) }, "Try documents in this collection")),
  );
}

// One cluster -----------------------------------------------------------------------------------------------------

function members(context, id, { representative, documents, members: shown, next_cursor: next }, { threshold }) {
  const { collection, params, go, href, may } = context;
  const from = firstOf(params);
  const open = button(
    "Compare the two documents",
    () => go("compare", { collection, a: pair.values()[0], b: pair.values()[1] }),
    { kind: "primary" },
  );
  const chosen = h("p", { class: "hint", role: "status" });
  const pair = pairOf([], (values) => {
    open.disabled = values.length !== 2;
    chosen.textContent = `${values.length} of 2 documents chosen. A third one replaces the first.`;
  });
  open.disabled = true;
  chosen.textContent = "Choose two documents of the table to see them side by side.";
  const beside = (b) => h("a", { href: href("compare", { collection, a: representative, b }) }, "Compare with it");
  const columns = [
    ...(may("check") ? [{ title: "Choose", cell: (member) => pair.box(member.id, `Choose ${spoken(member.id)}`) }] : []),
    { title: "Document", cell: (member) => [shortId(member.id), " ", marks(member, representative, id)] },
    { title: "Similarity to the representative", cell: (member) => similarityCell(member, threshold) },
    { title: "First seen", cell: (member) => time(member.first_seen) },
    ...(may("check")
      ? [{ title: "Compare", cell: (member) => (member.id === representative ? "–" : beside(member.id)) }]
      : []),
  ];
  const all = documents ? ` of ${count(documents)}` : "";
  const last = count(from + shown.length - 1);
  const range = `Members ${count(from)} to ${last}${all}, in the order in which they were stored.`;
  return card(
    "The cluster",
    facts([
      ["Representative", shortId(representative)],
      documents ? ["Documents", count(documents)] : null,
      ["Threshold", similarity(threshold)],
    ]),
    documents === 1
      ? note("info", "This document is alone in its cluster: no stored document is a duplicate of it.")
      : null,
    shown.length > 0 ? h("p", { class: "hint" }, range) : null,
    shown.length > 0 ? table("Members of the cluster", columns, shown) : h("p", {}, "There are no more members."),
    may("check")
      ? h("div", { class: "row" }, open, chosen)
      : h("p", { class: "hint" }, "To compare two members, a key with the scope check is needed."),
    pages(context, id, shown.length, next),
    words(),
  );
}

/** What is special about a member. */
function marks({ id, linked, below_threshold: below }, representative, asked) {
  return h(
    "span",
    { class: "marks" },
    id === representative ? badge("representative", "good") : null,
    linked ? badge("link") : null,
    below ? badge("below threshold", "warn") : null,
    id === asked && id !== representative ? badge("asked for") : null,
  );
}

function similarityCell({ similarity: value, low, high, method }, threshold) {
  if (value === undefined) return "–";
  const range = low === high ? "" : `, between ${similarity(low)} and ${similarity(high)}`;
  return [
    h("strong", {}, similarity(value)),
    h("span", { class: "hint" }, ` ${method}${range}`),
    intervalBar({ low: low ?? value, similarity: value, high: high ?? value, threshold }),
  ];
}

/** What the words and the bars of the table mean. */
function words() {
  const term = (word, meaning) => [h("dt", {}, word), h("dd", {}, meaning)];
  return h(
    "details",
    { class: "more words" },
    h("summary", {}, "What the table shows"),
    h(
      "dl",
      {},
      term(
        "Similarity",
        "The share of shingles that the member and the representative have in common. The bar goes from 0 to 1: the " +
          "upright mark is the similarity, the pale range is where it lies in 95 of 100 cases, and the dashed line is " +
          "the threshold of the collection. An estimate comes from the signatures; an exact similarity comes from the " +
          "contents, and has no range.",
      ),
      term(
        "Link",
        "The document was stored with on_duplicate=link. It can be read and belongs to the cluster, but later documents " +
          "are not compared with it, except exact copies of it.",
      ),
      term(
        "Below threshold",
        "The member was stored as a duplicate of an earlier representative, or while the threshold was lower. It is less " +
          "similar to the present representative than the threshold says.",
      ),
      term(
        "Representative",
        "The member that was stored first. If it is deleted or replaced, or if it expires, the next member becomes the " +
          "representative. A cluster is a star: its members were compared with the representative, and not with each " +
          "other.",
      ),
    ),
  );
}
