// A table of decisions of the audit log. Each row opens to show its evidence.

import { briefId } from "./pieces.js";
import { button, count, fill, h, idText, intervalBar, newId, similarity, table, time, verdictBadge } from "./ui.js";

const COLUMNS = ["Time", "Operation", "Verdict", "Outcome", "Document", "Best match", "Key (who asked)", "Evidence"];

/** The table. `found`: lines of the audit log. */
export function decisions(found, context) {
  const head = COLUMNS.map((title) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions" },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, "Decisions"),
      h("thead", {}, h("tr", {}, head)),
      h(
        "tbody",
        {},
        found.map((line) => rows(line, context)),
      ),
    ),
  );
}

/** The row of a decision, and a hidden row for its evidence, which is drawn when it is opened. */
function rows(line, context) {
  const cell = h("td", { colspan: String(COLUMNS.length) });
  const below = h("tr", { hidden: true, id: newId("evidence"), class: "evidence" }, cell);
  const open = button("Show", () => {
    below.hidden = !below.hidden;
    if (!cell.firstChild) fill(cell, evidence(line, context));
    open.setAttribute("aria-expanded", String(!below.hidden));
    open.textContent = below.hidden ? "Show" : "Hide";
  });
  open.setAttribute("aria-expanded", "false");
  open.setAttribute("aria-controls", below.id);
  const cells = [
    moment(line.time),
    line.op,
    line.verdict ? verdictBadge(line.verdict) : "–",
    outcome(line),
    [h("div", {}, subject(line)), h("div", { class: "hint" }, "in ", idText(line.collection))],
    line.duplicate_of === undefined
      ? "–"
      : [briefId(line.duplicate_of), " ", h("span", { class: "hint" }, similarity(line.similarity))],
    line.key ? idText(line.key) : "no key",
    open,
  ];
  return [
    h(
      "tr",
      {},
      cells.map((content) => h("td", {}, content)),
    ),
    below,
  ];
}

/** The time of a decision, to the second. */
const moment = (iso) =>
  h(
    "time",
    { datetime: iso, title: iso },
    new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }),
  );

function outcome({ op, outcome: made, deleted, label }) {
  if (made) return made;
  if (op === "delete" && label === undefined) return deleted ? "deleted" : "was not stored";
  return "started";
}

/** What the decision is about: a document, a label or a collection. */
function subject({ id, label, from }) {
  if (id !== undefined) return briefId(id);
  if (label !== undefined) return ["label ", briefId(label)];
  return from === undefined ? "a document without an id" : ["merge of ", idText(from)];
}

function evidence(line, context) {
  const { matches = [], omitted = 0 } = line;
  return [
    matches.length > 0
      ? matchTable(line, context)
      : h(
          "p",
          {},
          line.verdict ? "No stored document was similar enough to be a match." : "A decision of this kind has no matches.",
        ),
    omitted > 0 ? h("p", {}, `${count(omitted)} further matches are not in the line.`) : null,
    details(line, context),
  ];
}

function matchTable(line, { href, may }) {
  const { collection, id, stored, threshold, matches } = line;
  const compare = (match) => h("a", { href: href("compare", { collection, a: id, b: match }) }, "Compare");
  const cluster = (of) => h("a", { href: href("clusters", { collection, id: of }) }, "Cluster");
  return table(
    "Matches",
    [
      { title: "Match", cell: (match) => briefId(match.id) },
      { title: "Similarity", number: true, cell: (match) => similarity(match.similarity) },
      {
        title: "Interval and threshold",
        cell: ({ low, similarity: value, high }) => intervalBar({ low, similarity: value, high, threshold }),
      },
      { title: "Method", cell: ({ method }) => method },
      { title: "First seen", cell: ({ first_seen: at }) => time(at) },
      {
        title: "Look at it now",
        cell: (match) =>
          h(
            "span",
            { class: "actions" },
            stored && id !== undefined && may("check") ? compare(match.id) : null,
            cluster(match.id),
          ),
      },
    ],
    matches,
  );
}

/** The other fields of the line. */
function details(line, { href }) {
  const {
    collection,
    id,
    stored,
    content,
    spec,
    bands,
    rows: perBand,
    threshold,
    complete,
    representative,
    documents,
  } = line;
  const link = (params, text) => h("a", { href: href("operate", { tab: "audit", ...params }) }, text);
  const pairs = [
    ["Time", h("code", {}, line.time)],
    ["Request", [idText(line.request_id), " ", link({ request_id: line.request_id }, "All decisions of this request")]],
    id === undefined
      ? null
      : [
          "Document",
          [
            briefId(id),
            " ",
            link({ collection, id }, "All decisions on it"),
            " ",
            link({ collection, matched: id }, "Decisions that matched it"),
          ],
        ],
    representative === undefined
      ? null
      : [
          "Representative of its cluster",
          h("a", { href: href("clusters", { collection, id: representative }) }, briefId(representative)),
        ],
    stored === undefined ? null : ["Stored", stored ? "yes" : "no: the log has no texts, so it cannot be compared again"],
    complete === undefined ? null : ["Complete", complete ? "yes" : "no: a limit may have hidden a match"],
    documents === undefined ? null : ["Documents", count(documents)],
    line.on_duplicate ? ["Options", `on_duplicate=${line.on_duplicate}, on_existing=${line.on_existing}`] : null,
    [
      "Banding at that time",
      `${bands} bands of ${perBand} rows${threshold === undefined ? "" : `, threshold ${similarity(threshold)}`}`,
    ],
    content ? ["Hash of the content", h("code", {}, content)] : null,
    ["Fingerprint of the spec", h("code", {}, spec)],
  ];
  return h(
    "dl",
    { class: "details" },
    pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
