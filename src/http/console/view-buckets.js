// The fullest buckets of the index, and what their documents share.

import { curl, get, of, post } from "./api.js";
import { latest, onSample } from "./history.js";
import { shortId } from "./passages.js";
import { briefId, duplicateTabs, later, measured, pairOf, spoken } from "./pieces.js";
import { sharedBy } from "./shared-passages.js";
import {
  badge,
  button,
  card,
  count,
  curlButton,
  empty,
  facts,
  field,
  fill,
  h,
  heading,
  note,
  select,
  table,
  tabs,
} from "./ui.js";

const LIMITS = ["10", "25", "50", "100"];
/** What `limits.bucket_read_max` is unless the configuration changes it. */
const READ_MAX = 256;

export async function render(page, context) {
  const { collection, params, signal, go, chooser } = context;
  const limit = LIMITS.includes(params.get("limit")) ? params.get("limit") : LIMITS[0];
  const choice = select(
    LIMITS,
    limit,
    (next) => go("buckets", { collection, limit: next }),
  );
  const ask = () => Promise.all([get(of(collection, "/buckets"), { limit }, signal), get(of(collection), {}, signal)]);
  page.append(
    heading(
      "Buckets",
      "A band is a part of the signature. A bucket lists the documents whose signatures are equal in one band. Each of " +
        "them is a candidate for a new document that shares this band. Boilerplate, which is text that many pages repeat, " +
        "makes buckets full, and full buckets make lookups slow.",
      field("Number of buckets", choice),
      chooser(),
      curlButton(() => curl("GET", of(collection, "/buckets"), { query: { limit } })),
    ),
    tabs("Duplicates of the collection", duplicateTabs(context, "buckets")),
    later(async () => buckets(context, ...(await ask())), signal),
  );
}

function buckets(context, { buckets: all }, about) {
  const { params, setParams } = context;
  if (about.index === "containment") return notUsed(context);
  const advised = advice(context);
  if (all.length === 0) return [noBuckets(context, about), advised];
  const nameOf = ({ band, key }) => `${band}.${key}`;
  const shown = h("div");
  const rows = new Map();
  const choose = (bucket) => {
    for (const [row, show] of rows) show.setAttribute("aria-pressed", String(row === bucket));
    fill(shown, inside(context, bucket, about));
  };
  const chooser = (bucket) => {
    const show = button("Show", () => {
      setParams({ bucket: nameOf(bucket), a: null, b: null });
      choose(bucket);
    });
    show.setAttribute("aria-label", `Show the bucket of band ${bucket.band} with ${bucket.documents} documents`);
    rows.set(bucket, show);
    return show;
  };
  const columns = [
    { title: "Bucket", cell: chooser },
    { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
    { title: "Band", number: true, cell: ({ band }) => band },
    { title: "One of them", cell: ({ sample }) => (sample.length > 0 ? briefId(sample[0]) : "–") },
  ];
  const list = card("The fullest buckets", ...fullness(context), table("The fullest buckets", columns, all));
  choose(all.find((bucket) => nameOf(bucket) === params.get("bucket")) ?? all[0]);
  return [h("div", { class: "columns" }, list, shown), advised];
}

const notUsed = ({ collection, href }) =>
  empty(
    "Buckets are not used in this collection",
    "It finds stored items by the runs of words that they contain.",
    h("a", { href: href("collection", { collection }) }, "Look at the collection"),
  );

function noBuckets({ collection, href }, { documents }) {
  return empty(
    "No bucket has several documents",
    documents === 0
      ? "The collection is empty. Store documents first."
      : "No two documents share a band, so lookups compare very few documents.",
    h("a", { href: href("try", { collection }) }, "Try documents in this collection"),
  );
}

/** How full buckets may be, and what the metrics say about it. */
function fullness({ collection, may, signal }) {
  const limit = h(
    "p",
    { class: "hint" },
    "A lookup reads a limited number of documents of each bucket: the setting ",
    h("code", {}, "limits.bucket_read_max"),
    `, which is ${READ_MAX} unless the configuration of the server changes it. If a bucket has more, a verdict says ` +
      `"complete": false, because a duplicate may be among those that were not read.`,
  );
  if (!may("metrics")) return [limit];
  const shown = h("div", {}, h("p", { class: "hint" }, "Reading the metrics…"));
  const update = () => {
    const over = latest("hapax_buckets_over_cap", { collection });
    fill(
      shown,
      facts([
        ["Documents in the fullest bucket", measured("hapax_bucket_documents_largest", { collection })],
        [
          "Buckets with more documents than the limit",
          [measured("hapax_buckets_over_cap", { collection }), " ", over > 0 ? badge("read in part", "warn") : null],
        ],
      ]),
    );
  };
  onSample(update, signal);
  return [shown, limit];
}

/** One bucket: its sample, and what two documents of it share. */
function inside(context, bucket, about) {
  const { collection, params, setParams, href, may } = context;
  const { band, documents, sample } = bucket;
  const given = [params.get("a"), params.get("b")];
  const first = given.every((id) => sample.includes(id)) && given[0] !== given[1] ? given : sample.slice(0, 2);
  const shared = h("div", { "aria-live": "polite" });
  const pair = pairOf(first, (ids) => {
    setParams({ a: ids[0] ?? null, b: ids[1] ?? null });
    fill(shared, ofPair(context, ids, about));
  });
  const line = (id) =>
    h(
      "li",
      {},
      may("check") ? pair.box(id, `Choose ${spoken(id)}`) : null,
      h("div", {}, shortId(id), " ", h("a", { href: href("clusters", { collection, id }) }, "Cluster")),
    );
  if (may("check")) fill(shared, ofPair(context, first, about));
  return card(
    `${count(documents)} documents in a bucket of band ${band}`,
    h(
      "p",
      { class: "hint" },
      `Here are ${count(sample.length)} of them, old and new ` +
        `ones.${may("check") ? " Choose two; a third one replaces the first." : ""}`,
    ),
    h("ul", { class: "sample" }, sample.map(line)),
    h("h3", {}, "What two of them share"),
    may("check") ? shared : h("p", { class: "hint" }, "To compare two documents, a key with the scope check is needed."),
  );
}

function ofPair({ collection, signal, href }, ids, about) {
  if (ids.length < 2) return h("p", {}, "Choose two documents of the list.");
  const [a, b] = ids;
  const query = about.keep === "text" ? { with: "passages" } : {};
  const ask = () => post(of(collection, "/compare"), { a: { id: a }, b: { id: b } }, query, signal);
  return [
    later(async () => sharedBy(await ask(), about), signal),
    h("p", {}, h("a", { href: href("compare", { collection, a, b }) }, "Compare the two documents side by side")),
  ];
}

function advice({ collection, href }) {
  return card(
    "What to do about full buckets",
    h(
      "p",
      {},
      "The cause is mostly boilerplate: text that many pages have in common and that is not their content, such as " +
        "menus, footers, notices about cookies, error pages and empty forms. Pages that share it look more similar than " +
        "they are, and each lookup compares many of them without result.",
    ),
    h(
      "ol",
      {},
      h(
        "li",
        {},
        "Look at what two documents of a bucket share. If it is boilerplate, take it out of the texts before you send " +
          "them, or do not send such pages at all.",
      ),
      h(
        "li",
        {},
        "Send pages as HTML to a collection with ",
        h("code", {}, "extract=article"),
        ": hapax then compares their main text, without menus and footers.",
      ),
      h(
        "li",
        {},
        "If the documents are real duplicates, nothing is wrong: store fewer copies (on_duplicate=skip or link), and look at ",
        h("a", { href: href("clusters", { collection }) }, "their clusters"),
        ".",
      ),
      h(
        "li",
        {},
        "If you need matches among thousands of pages of one template, raise ",
        h("code", {}, "limits.bucket_read_max"),
        ". Lookups then take longer. More rows for each band also make buckets smaller: see ",
        h("a", { href: href("collection", { collection }) }, "the settings of the collection"),
        ".",
      ),
    ),
    note("info", "The time of a lookup stays limited in any case, and exact copies are always found."),
  );
}
