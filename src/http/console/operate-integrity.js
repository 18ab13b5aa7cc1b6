// Whether the stored data is as it was written: what the scrub found, damaged collections, and how to verify files.

import { get } from "./api.js";
import { labelValues, latest, onSample } from "./history.js";
import { command, longTable, measured } from "./pieces.js";
import { ago, badge, card, fill, h, idText, note, percent, progress, time } from "./ui.js";

const LATE_S = 14 * 86400;
const METRICS = [
  "hapax_collection_damaged",
  "hapax_collection_open",
  "hapax_scrub_progress_ratio",
  "hapax_scrub_records_total",
  "hapax_scrub_errors_total",
  "hapax_scrub_last_complete_timestamp_seconds",
];

/** Shows what the metrics say about damage, and keeps it up to date. */
export function integrity(page, { signal, href }) {
  const table = h("div", {}, h("p", { class: "hint" }, "Reading the metrics…"));
  const damage = h("div", { class: "later" });
  let shown = "";
  const update = () => {
    const names = labelValues("hapax_collection_open", "collection").filter((name) =>
      Number.isFinite(valueOf("hapax_collection_open", name)),
    );
    const rows = names.map((name) => ({ name, values: METRICS.map((metric) => valueOf(metric, name)) }));
    const now = JSON.stringify(rows);
    if (now !== shown) fill(table, list(rows, href));
    shown = now;
  };
  page.append(
    damage,
    card(
      "The scrub",
      h(
        "p",
        { class: "hint" },
        "In the background, the scrub reads all data of the open collections again, once a day unless the configuration " +
          "says otherwise, and compares each record with its checksum. A damaged record leads to an error, never to a " +
          "wrong answer.",
      ),
      table,
    ),
    verify(),
  );
  onSample(update, signal);
  showDamage(damage, signal);
}

const valueOf = (metric, collection) => latest(metric, { collection });

/** Says which collections are damaged, and how. A key that may not list the collections sees only the metrics. */
async function showDamage(place, signal) {
  const { damaged = [] } = await get("/v1/collections", {}, signal).catch(() => ({}));
  fill(
    place,
    damaged.map(({ name, detail }) =>
      note("warn", h("strong", {}, "The collection ", idText(name), " is damaged. "), h("bdi", {}, detail)),
    ),
  );
}

function list(rows, href) {
  const number =
    (metric) =>
    ({ name }) =>
      measured(metric, { collection: name });
  return longTable(
    "What the scrub found, by collection",
    [
      { title: "Collection", cell: ({ name }) => h("a", { href: href("collection", { collection: name }) }, idText(name)) },
      { title: "State", cell: stateCell },
      {
        title: "Damaged rows found",
        number: true,
        cell: ({ name }) => [
          number("hapax_scrub_errors_total")({ name }),
          " ",
          valueOf("hapax_scrub_errors_total", name) > 0 ? badge("damage", "bad") : null,
        ],
      },
      { title: "Documents read again", number: true, cell: number("hapax_scrub_records_total") },
      { title: "This pass", cell: passCell },
      { title: "Last complete pass", cell: lastCell },
    ],
    rows,
  );
}

function stateCell({ name }) {
  const damaged = measured("hapax_collection_damaged", { collection: name }, (value) =>
    value === 1 ? badge("damaged or missing", "bad") : "",
  );
  const open = (value) => (value === 1 ? badge("open", "good") : badge("not open", "warn"));
  const isDamaged = valueOf("hapax_collection_damaged", name) === 1;
  return [damaged, isDamaged ? null : measured("hapax_collection_open", { collection: name }, open)];
}

function passCell({ name }) {
  const ratio = valueOf("hapax_scrub_progress_ratio", name);
  if (!Number.isFinite(ratio)) return "–";
  const shown = measured("hapax_scrub_progress_ratio", { collection: name }, (value) => percent(value, 0));
  return [
    shown,
    ratio === 1 ? h("span", { class: "hint" }, " (no pass is running)") : progress(ratio, `Pass over ${name}`),
  ];
}

function lastCell({ name }) {
  const metric = "hapax_scrub_last_complete_timestamp_seconds";
  const seconds = valueOf(metric, name);
  if (!Number.isFinite(seconds)) return "–";
  const iso = new Date(seconds * 1000).toISOString();
  const late = Date.now() / 1000 - seconds > LATE_S;
  return [
    measured(metric, { collection: name }, () => (seconds > 0 ? time(iso) : "none yet")),
    seconds > 0 ? h("span", { class: "hint" }, ` ${ago(iso)}`) : null,
    seconds > 0 && late ? [" ", badge("long ago", "warn")] : null,
  ];
}

function verify() {
  return card(
    "Verify the files",
    h(
      "p",
      {},
      "The scrub reads through the cache of the operating system, so it may not see a page that is damaged on the disk. ",
      h("code", {}, "hapax verify"),
      " reads everything. Stop the server first: only one process can use a data directory.",
    ),
    command("hapax verify --data-dir ./hapax-data"),
    h("p", { class: "hint" }, "Exit status 0: everything is sound. Exit status 1: damage was found, or a file is missing."),
    h("h3", {}, "If a collection is damaged"),
    h(
      "ol",
      {},
      h("li", {}, "Restore the last backup, if it is recent enough."),
      h(
        "li",
        {},
        "Or repair the collection. This makes a new file from the documents that are intact, and lists the others in a " +
          "file next to it:",
        command("hapax verify --data-dir ./hapax-data --collection NAME --repair"),
      ),
      h("li", {}, "Or drop the collection. This also works if it is damaged."),
    ),
    h(
      "p",
      {},
      "Backups fail while a collection is damaged, so do not wait. Then find out why the file was damaged: check the " +
        "disk, its controller and the memory.",
    ),
  );
}
