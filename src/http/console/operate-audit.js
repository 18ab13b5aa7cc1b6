// A search in the audit log. In: the filters of the address, GET /v1/audit. Out: the decisions with their evidence.

import { get } from "./api.js";
import { latest, onSample } from "./history.js";
import { decisions } from "./operate-decisions.js";
import { command, later, measured } from "./pieces.js";
import { badge, button, bytes, card, count, empty, facts, field, fill, h, note, select } from "./ui.js";

const FILTERS = ["collection", "id", "matched", "key", "verdict", "op", "request_id", "since", "until"];
const LIMITS = ["50", "200", "1000"];
const VERDICTS = [
  ["", "Any"],
  ["unique", "unique"],
  ["near_duplicate", "near duplicate"],
  ["exact_duplicate", "exact duplicate"],
  ["empty", "empty"],
];
const OPS = [["", "Any"], "insert", "delete", "check", "merge"];

/** What the address asks for, as the query of a request. */
export function auditQuery(params) {
  const limit = LIMITS.includes(params.get("limit")) ? params.get("limit") : LIMITS[0];
  return { ...Object.fromEntries(FILTERS.map((name) => [name, params.get(name)])), limit, cursor: params.get("cursor") };
}

/** Shows the form and the decisions that it finds. */
export function audit(page, context) {
  const { params, signal, href, may } = context;
  const query = auditQuery(params);
  const to = (cursor) => href("operate", { tab: "audit", ...query, cursor });
  const load = async () => {
    const { decisions: found, next_cursor: next } = await get("/v1/audit", query, signal);
    if (found.length === 0 && !next && !query.cursor) return nothing(query, href);
    const page = card(
      "Decisions",
      h(
        "p",
        { class: "hint" },
        found.length === 1 ? "1 decision" : `${count(found.length)} decisions`,
        next || query.cursor ? " on this page, the newest first." : ", the newest first.",
        next ? " There may be older ones." : null,
      ),
      found.length > 0
        ? decisions(found, context)
        : h(
            "p",
            {},
            next ? "None was found so far, and only a part of the log was read." : "There are no older decisions.",
          ),
      h(
        "nav",
        { class: "row end", "aria-label": "Pages" },
        query.cursor ? h("a", { href: to(null) }, "Newest decisions") : null,
        next ? h("a", { href: to(next) }, "Older decisions") : null,
      ),
    );
    return [page, may("metrics") ? health(signal) : null];
  };
  page.append(
    search(context, query),
    later(load, signal, (problem) => (problem.code === "audit_off" ? off() : null)),
  );
}

function search({ go, href }, query) {
  const texts = {
    collection: ["Collection", null],
    id: ["Id of the document", null],
    matched: ["Id of a match", "Finds decisions in which this document was a match."],
    key: ["Name of the key", "The key that asked."],
    request_id: ["Request id", "The X-Request-Id of the answer."],
    since: ["Since", "For example 2026-11-23T21:00:00Z, 2026-11-23, or 2h or 7d before now."],
    until: ["Until", "Decisions before this time, written as in Since."],
  };
  const inputs = new Map(
    Object.keys(texts).map((name) => [
      name,
      h("input", { type: "text", value: query[name] ?? "", autocomplete: "off", spellcheck: "false", dir: "auto" }),
    ]),
  );
  inputs.set("verdict", select(VERDICTS, query.verdict ?? ""));
  inputs.set("op", select(OPS, query.op ?? ""));
  inputs.set("limit", select(LIMITS, query.limit));
  const send = (event) => {
    event.preventDefault();
    go("operate", { tab: "audit", ...Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()])) });
  };
  const text = (name) => field(texts[name][0], inputs.get(name), texts[name][1]);
  return card(
    "Find decisions",
    h(
      "p",
      { class: "hint" },
      "The audit log has a line for each insertion and each deletion, and for checks if audit.checks is true. It " +
        "contains no texts and no metadata.",
    ),
    h(
      "form",
      { class: "form", role: "search", on: { submit: send } },
      h(
        "div",
        { class: "fields" },
        text("collection"),
        text("id"),
        text("matched"),
        text("key"),
        field("Verdict", inputs.get("verdict")),
        field("Operation", inputs.get("op")),
        text("request_id"),
        text("since"),
        text("until"),
        field("Number of decisions", inputs.get("limit")),
      ),
      h(
        "div",
        { class: "row end" },
        h("a", { href: href("operate", { tab: "audit" }) }, "Clear the filters"),
        button("Find", null, { type: "submit", kind: "primary" }),
      ),
    ),
  );
}

/** What the metrics say about the log itself. */
function health(signal) {
  const shown = h("div", {}, h("p", { class: "hint" }, "Reading the metrics…"));
  onSample(() => {
    const dropped = latest("hapax_audit_dropped_total") > 0;
    const errors = latest("hapax_audit_errors_total") > 0;
    fill(
      shown,
      facts([
        ["Lines written since the start", measured("hapax_audit_lines_total")],
        ["Size of all files", measured("hapax_audit_bytes", {}, bytes)],
        ["Lines dropped", [measured("hapax_audit_dropped_total"), " ", dropped ? badge("lines are missing", "bad") : null]],
        ["Failed writes", [measured("hapax_audit_errors_total"), " ", errors ? badge("disk refused lines", "warn") : null]],
      ]),
    );
  }, signal);
  return card("The log", shown);
}

function nothing(query, href) {
  const filtered = FILTERS.some((name) => query[name]);
  if (!filtered)
    return empty("The audit log has no decisions yet", "Insert or delete a document: its decision is here a second later.");
  return empty(
    "No decision meets all of these conditions",
    "A document can also be gone because it expired, was deleted by its label (search for the operation delete without an " +
      "id), or was replaced (operation insert). Files of the audit log are removed when they are older than " +
      "audit.retention_s, or when all of them together are too large.",
    h("a", { href: href("operate", { tab: "audit" }) }, "Clear the filters"),
  );
}

function off() {
  return note(
    "warn",
    h(
      "p",
      {},
      "This server has no audit log, because the setting ",
      h("code", {}, "audit.dir"),
      " is empty. The log says for each insertion and deletion why it was decided so, and which key asked. To turn it " +
        "on, set the directory and restart the server:",
    ),
    command("HAPAX__AUDIT__DIR=audit hapax serve"),
  );
}
