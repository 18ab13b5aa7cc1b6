// The labels of a collection with their documents, and the outcomes of its inserts by label.

import { ask, get, of } from "./api.js";
import {
  button,
  bytes,
  card,
  confirm,
  count,
  empty,
  facts,
  failure,
  field,
  fill,
  h,
  idText,
  note,
  percent,
  table,
} from "./ui.js";

const LIMIT = 100;
const NAME = /^[a-z0-9._-]{1,64}$/;

export async function showLabels(content, { name }, context) {
  if (lacksRead(content, context)) return;
  await pages(content, context, "/labels", ({ labels }, told) => {
    if (labels.length === 0) return null;
    return card(
      "Labels",
      h(
        "p",
        { class: "hint" },
        "A label is a name with a value, such as the site or the crawl that a document comes from. Checks can be limited to " +
          "documents with a label.",
      ),
      table("Labels", labelColumns(name, context, told), labels),
    );
  });
}

function lacksRead(content, { may, access }) {
  if (may("read")) return false;
  content.append(note("warn", `This needs a key with the scope read; the key ${access.key.name} lacks it.`));
  return true;
}

const labelColumns = (collection, context, told) =>
  [
    { title: "Name", cell: ({ name }) => name },
    { title: "Value", cell: ({ value }) => idText(value) },
    { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
    context.may("delete") && {
      title: "Delete",
      cell: (label) =>
        button("Delete", () => remove(collection, label, context, told), {
          kind: "danger",
          "aria-label": `Delete the documents with ${label.name}:${label.value}`,
        }),
    },
  ].filter(Boolean);

/** Deletes the documents with a label, after a question, and says which job does it. */
async function remove(collection, { name, value, documents }, { reload, href, may, signal }, told) {
  const sentence = [
    `This deletes all documents with the label ${name}:`,
    idText(value),
    `: ${count(documents)} now. They vanish from all answers at once, and a job removes them from the disk. Only a backup ` +
      "can bring them back.",
  ];
  if (!(await confirm("Delete by label", sentence, `Delete ${count(documents)} documents`))) return;
  try {
    const { job, documents: deleted } = await ask("DELETE", of(collection, "/documents"), {
      query: { label: `${name}:${value}` },
    });
    if (signal.aborted) return;
    const jobs =
      may("read") || may("delete")
        ? [" ", h("a", { href: href("operate", { tab: "jobs", job }) }, "Follow the job in Operate")]
        : null;
    fill(
      told,
      note(
        "good",
        `${count(deleted)} documents with the label ${name}:`,
        idText(value),
        " are deleted. The job ",
        h("code", {}, job),
        " removes them from the disk.",
        jobs,
        " ",
        button("Show the labels again", reload, { kind: "quiet" }),
      ),
    );
    told.scrollIntoView({ block: "nearest" });
  } catch (problem) {
    if (problem.name !== "Problem") throw problem;
    fill(told, failure(problem));
  }
}

export async function showStatistics(content, collection, context) {
  if (lacksRead(content, context)) return;
  const columns = [
    { title: "Name", cell: ({ name }) => name },
    { title: "Value", cell: ({ value }) => idText(value) },
    ...OUTCOMES,
  ];
  await pages(content, context, "/statistics", ({ all, labels }, told) => {
    fill(told, allCard(all));
    return labels.length === 0 ? null : card("By label", table("Outcomes by label", columns, labels));
  });
}

const OUTCOMES = [
  { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
  { title: "Unique", number: true, cell: ({ unique }) => count(unique) },
  { title: "Near duplicates", number: true, cell: ({ near_duplicates: near }) => count(near) },
  { title: "Exact duplicates", number: true, cell: ({ exact_duplicates: exact }) => count(exact) },
  { title: "Share of duplicates", number: true, cell: (one) => percent(shareOf(one)) },
  { title: "Empty", number: true, cell: ({ empty }) => count(empty) },
  { title: "Unchanged", number: true, cell: ({ unchanged }) => count(unchanged) },
  { title: "Sent", number: true, cell: ({ bytes: sent }) => bytes(sent) },
  { title: "Not stored", number: true, cell: ({ bytes_saved: saved }) => bytes(saved) },
];

const shareOf = ({ near_duplicates: near, exact_duplicates: exact, unique, empty }) =>
  (near + exact) / (near + exact + unique + empty);

function allCard(all) {
  return card(
    "Outcomes of all inserts",
    facts(OUTCOMES.map(({ title, cell }) => [title, cell(all)])),
    h(
      "p",
      { class: "hint" },
      "These are the documents that clients inserted since the collection was created, even if they were not stored or have " +
        "been deleted since. Checks do not count. A repeated import counts again. Unchanged: the id already had the same " +
        "content; these are not in the counts by verdict. Not stored: the bytes of documents that were " +
        "skipped because they were duplicates, or that were unchanged.",
    ),
  );
}

/**
 * Shows pages of a list with a filter by name. `show(page, told)` returns the part that shows a page; null: the page is
 * empty. `told` is above the filter. The filter and the place in the list are in the address.
 */
async function pages(content, context, path, show) {
  const { collection, params, go, href, signal } = context;
  const tab = path.slice(1);
  const name = params.get("name") ?? "";
  const filter = h("input", { type: "search", value: name, autocomplete: "off", spellcheck: "false", autocapitalize: "none" });
  const wrong = h("p", { class: "hint", role: "status" });
  const apply = () => {
    const wanted = filter.value.trim();
    if (wanted !== "" && !NAME.test(wanted)) {
      return (wrong.textContent = "A name of a label has 1 to 64 of the characters a-z, 0-9, hyphen, underscore and dot.");
    }
    go("collection", { collection, tab, name: wanted });
  };
  filter.addEventListener("keydown", (event) => event.key === "Enter" && apply());
  const part = h("div", { class: "page-part" }, h("p", { class: "hint" }, "The labels are read."));
  const told = h("div", { "aria-live": "polite" });
  const choice = h(
    "div",
    { class: "row foot" },
    h("div", { class: "filter" }, field("Only labels with this name", filter)),
    button("Filter", apply),
  );
  content.append(h("div", { class: "page-part" }, told, h("div", {}, choice, wrong)), part);
  const read = async () => {
    try {
      const cursor = params.get("cursor");
      const page = await get(of(collection, path), { name, cursor, limit: LIMIT }, signal);
      const links = [
        cursor && h("a", { href: href("collection", { collection, tab, name }) }, "First page"),
        page.next_cursor &&
          h("a", { href: href("collection", { collection, tab, name, cursor: page.next_cursor }) }, "Next page"),
      ].filter(Boolean);
      fill(part, show(page, told) ?? noLabels(name), links.length > 0 ? h("div", { class: "row" }, links) : null);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.name !== "Problem") throw problem;
      fill(part, failure(problem, read));
    }
  };
  await read();
}

function noLabels(name) {
  if (name !== "") return empty("No label has this name", `No stored document has a label with the name ${name}.`);
  return empty(
    "No document has a label",
    'Send documents with the field labels, for example {"site": "a.example"}, or use hapax import --label crawl:2026-48.',
  );
}
