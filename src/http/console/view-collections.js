// All collections of the server, and the form for a new one.

import { curl, get } from "./api.js";
import { showForm } from "./collection-create.js";
import {
  badge,
  button,
  count,
  curlButton,
  duration,
  empty,
  failure,
  field,
  fill,
  h,
  heading,
  idText,
  note,
  settled,
  table,
  tabs,
  time,
} from "./ui.js";

export async function render(page, context) {
  const { params, may, href } = context;
  const creating = params.get("create") === "1" && may("admin");
  const sentence = creating
    ? "A collection is a set of documents that are compared with each other. Some of its settings cannot be changed later."
    : "A collection is a set of documents that are compared with each other, with a spec and settings of its own.";
  page.append(
    heading(
      creating ? "Create a collection" : "Collections",
      sentence,
      creating ? null : curlButton(() => curl("GET", "/v1/collections")),
    ),
  );
  if (may("admin")) {
    page.append(
      tabs("Collections", [
        [href("collections"), "All collections", !creating],
        [href("collections", { create: "1" }), "Create", creating],
      ]),
    );
  } else {
    page.append(
      note(
        "info",
        `The key ${context.access.key.name} lacks the scope admin: it can look at collections, and cannot create, change or ` +
          "drop them.",
      ),
    );
  }
  const content = h("div", { class: "page-part" }, h("p", { class: "hint" }, "The collections are read."));
  page.append(content);
  load(content, context, creating);
}

/** Reads the collections, and shows the list or the form. */
async function load(content, context, creating) {
  try {
    const { collections, damaged = [] } = await get("/v1/collections", {}, context.signal);
    const taken = [...collections, ...damaged].map(({ name }) => name);
    fill(content);
    if (creating) showForm(content, { collections, taken, context });
    else showList(content, { collections, damaged, context });
  } catch (problem) {
    if (context.signal.aborted) return;
    if (problem.name !== "Problem") throw problem;
    fill(
      content,
      failure(problem, () => load(content, context, creating)),
    );
  }
}

function showList(content, { collections, damaged, context }) {
  const { params, setParams } = context;
  const filter = h("input", { type: "search", value: params.get("q") ?? "", autocomplete: "off", spellcheck: "false" });
  const found = h("p", { class: "hint", role: "status" });
  const list = h("div", {});
  const show = () => {
    const text = filter.value.trim().toLowerCase();
    const fitting = collections.filter(({ name }) => name.includes(text));
    const broken = damaged.filter(({ name }) => name.includes(text));
    const documents = fitting.reduce((sum, one) => sum + one.documents, 0);
    found.textContent =
      `${count(fitting.length)} of ${count(collections.length)} collections, with ${count(documents)} ` + `documents`;
    fill(
      list,
      fitting.length > 0 ? h("section", { class: "card" }, collectionTable(fitting, context)) : nothing(text, context),
      damagedPart(broken, context),
    );
  };
  const share = settled(() => context.signal.aborted || setParams({ q: filter.value.trim() }));
  filter.addEventListener("input", () => (show(), share()));
  content.append(h("div", { class: "filter" }, field("Filter by name", filter)), found, list);
  show();
}

function nothing(text, { may, go }) {
  if (text !== "") return empty("No collection has such a name", `No name contains ${text}.`);
  const create = may("admin")
    ? button("Create a collection", () => go("collections", { create: "1" }), { kind: "primary" })
    : null;
  return empty(
    "There is no collection that this key may use",
    "The key is limited to some collections, and none of them exists.",
    create,
  );
}

function collectionTable(collections, { href }) {
  const compared = (show) => (one) => (one.index === "containment" ? "–" : show(one));
  return table(
    "Collections",
    [
      {
        title: "Name",
        cell: ({ name, linked }) => [
          h("a", { href: href("collection", { collection: name }) }, idText(name)),
          linked === undefined ? [" ", badge("not open yet", "warn")] : null,
        ],
      },
      { title: "Index", cell: ({ index }) => index },
      { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
      { title: "Links", number: true, cell: ({ linked }) => count(linked) },
      { title: "Threshold", number: true, cell: compared(({ threshold }) => threshold) },
      {
        title: "Bands × rows",
        number: true,
        cell: compared(
          ({ banding, banding_by_hand: byHand }) => `${banding.bands} × ${banding.rows}${byHand ? ", by hand" : ""}`,
        ),
      },
      { title: "Stored (keep)", cell: ({ keep }) => keep },
      { title: "Time to live", number: true, cell: ({ ttl }) => (ttl ? duration(ttl) : "forever") },
      { title: "Created", cell: ({ created }) => time(created) },
    ],
    collections,
  );
}

/** The collections whose files are damaged, and what to do about them. */
function damagedPart(damaged, { href }) {
  if (damaged.length === 0) return null;
  return h(
    "section",
    { class: "card failure" },
    h("h2", {}, `${count(damaged.length)} damaged`),
    h(
      "p",
      {},
      "These collections are not served, because their files are damaged. Backups fail until they are repaired, restored or " +
        "dropped. Stop the server, and run hapax verify with --data-dir: it names the damage, and repairs it with --repair.",
    ),
    table(
      "Damaged collections",
      [
        { title: "Name", cell: ({ name }) => h("a", { href: href("collection", { collection: name }) }, idText(name)) },
        { title: "Damage", cell: ({ detail }) => h("bdi", {}, detail) },
      ],
      damaged,
    ),
  );
}
