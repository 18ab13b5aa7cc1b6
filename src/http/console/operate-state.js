// Whether the server and each of its collections are ready. In: GET /readyz, /v1/collections, /v1/version.

import { get } from "./api.js";
import { longTable, repeat } from "./pieces.js";
import { badge, card, count, facts, failure, fill, h, idText, note, percent, progress } from "./ui.js";

const STARTING_MS = 2000;
const READY_MS = 5000;

/** Shows the state, and keeps it up to date. */
export function state(page, { signal, href }) {
  const place = h("div", { class: "later" }, h("p", { class: "hint" }, "Asking the server…"));
  page.append(place);
  let shown = "";
  const problemOf = (answer) => answer.reason?.name === "Problem" && answer.reason;
  const act = async () => {
    const asked = ["/readyz", "/v1/collections", "/v1/version"].map((path) => get(path, {}, signal));
    const answers = await Promise.allSettled(asked);
    if (signal.aborted) return STARTING_MS;
    const odd = answers.find((answer) => answer.status === "rejected" && !problemOf(answer));
    if (odd) throw odd.reason;
    const [ready, listed, version] = answers;
    const starts = problemOf(ready)?.code === "starting";
    // What has not changed is not drawn again: a person may be reading it with the keyboard.
    const now = JSON.stringify([
      ready.value ?? [ready.reason.code, ready.reason.rest],
      listed.value ?? listed.reason.code,
      version.value,
    ]);
    if (now !== shown) fill(place, draw(ready, listed, version.value, href));
    shown = now;
    return starts ? STARTING_MS : READY_MS;
  };
  repeat(act, signal);
}

function draw(ready, listed, version, href) {
  const unready = ready.reason;
  if (unready && !["starting", "shutting_down"].includes(unready.code)) return failure(unready);
  const rows = listed.value ? rowsOf(listed.value, unready?.rest.collections ?? []) : [];
  const documents = rows.reduce((sum, row) => sum + (row.documents ?? 0), 0);
  return [
    card(
      "The server",
      facts([
        ["State", readiness(ready)],
        ["Version", version ? version.version : "–"],
        ["Collections", count(rows.length)],
        ["Documents", count(documents)],
        ready.value
          ? ["Stores documents", ready.value.writable === false ? badge("no", "bad") : badge("yes", "good")]
          : null,
      ]),
      unready?.code === "starting" ? starting(unready) : null,
      ready.value ? attention(ready.value, href) : null,
    ),
    card("Collections", listed.value ? collections(rows, href) : failure(listed.reason)),
  ];
}

function readiness({ value, reason }) {
  if (value) return badge("ready", "good");
  return reason.code === "starting" ? badge("starting", "warn") : badge("shutting down", "warn");
}

function starting({ rest }) {
  const ratio = rest.progress ?? 0;
  return [
    h(
      "p",
      {},
      `${percent(ratio, 0)} of the data is read. The server opens its collections one after another; each of them ` +
        "answers as soon as it is open.",
    ),
    progress(ratio, "Progress of the start"),
  ];
}

/** What a ready server says that needs attention, and what to do about it. */
function attention({ writable, damaged, missing, unopened }, href) {
  const integrity = h("a", { href: href("operate", { tab: "integrity" }) }, "Integrity");
  const notes = [
    writable === false && [
      "The disk refuses documents. If it is full, make room: no restart is needed, and deletes still work. If it failed, " +
        "the log has the error: repair the disk, and restart the server.",
    ],
    damaged > 0 && [
      `Damaged collections: ${count(damaged)}. They are not served, and backups fail until they are repaired or dropped. See `,
      integrity,
      ".",
    ],
    missing > 0 && [
      `Collections whose files are missing: ${count(missing)}. The log names them. Restore a backup, or drop them with ` +
        "DELETE /v1/collections/NAME?confirm=NAME.",
    ],
    unopened > 0 && [
      `Collections that could not be opened: ${count(unopened)}. The log says why, for example that hashing.secret is ` +
        "another one. The next request for such a collection tries again.",
    ],
  ].filter(Boolean);
  return h(
    "div",
    { class: "later" },
    notes.map((words) => note("warn", words)),
  );
}

/** One row for each collection: open, being opened, or damaged. */
function rowsOf({ collections: known, damaged = [] }, opening) {
  const rows = new Map(known.map((one) => [one.name, { ...one, isOpen: one.linked !== undefined }]));
  for (const { name, progress: ratio } of opening) rows.set(name, { ...rows.get(name), name, ratio });
  for (const { name, detail } of damaged) rows.set(name, { name, detail });
  return [...rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function collections(rows, href) {
  return longTable(
    "Collections and their state",
    [
      { title: "Collection", cell: ({ name }) => h("a", { href: href("collection", { collection: name }) }, idText(name)) },
      { title: "State", cell: stateCell },
      { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
      { title: "Of these, links", number: true, cell: ({ linked }) => count(linked) },
    ],
    rows,
  );
}

function stateCell({ name, detail, ratio, isOpen }) {
  if (detail !== undefined) return [badge("damaged", "bad"), " ", h("bdi", {}, detail)];
  if (ratio !== undefined)
    return [badge("being opened", "warn"), ` ${percent(ratio, 0)}`, progress(ratio, `Progress of ${name}`)];
  return isOpen ? badge("open", "good") : badge("not open", "warn");
}
