// The backups of the server: start one, follow it, what it contains, how to restore it. In and out: /v1/backups.

import { ask, get, post } from "./api.js";
import { onSample } from "./history.js";
import { command, longTable, measured, ofServer, repeat, word } from "./pieces.js";
import {
  ago,
  badge,
  button,
  bytes,
  card,
  confirm,
  count,
  facts,
  failure,
  field,
  fill,
  h,
  idText,
  newId,
  note,
  percent,
  progress,
  time,
  toast,
} from "./ui.js";

const RUNNING_MS = 2000;
const IDLE_MS = 3000;
const KINDS = { running: "warn", done: "good", cancelled: "", failed: "bad" };

/** Shows the latest backup and a form that starts the next one. */
export function backups(page, { signal, may }) {
  const place = h("div", { class: "later" }, h("p", { class: "hint" }, "Asking for the latest backup…"));
  let shown = "";
  const read = async () => {
    let answer;
    try {
      answer = await get("/v1/backups", {}, signal);
    } catch (problem) {
      if (signal.aborted) return IDLE_MS;
      if (problem.name !== "Problem") throw problem;
      shown = "";
      fill(place, problem.code === "backups_off" ? off() : failure(problem));
      return IDLE_MS;
    }
    const now = JSON.stringify(answer);
    if (now !== shown) show(place, answer.latest, now, shown, read);
    shown = now;
    return answer.latest?.state === "running" ? RUNNING_MS : IDLE_MS;
  };
  page.append(place, form(read), ...(may("metrics") ? [history(signal)] : []), advice());
  repeat(read, signal);
}

/** Draws the latest backup. While the same backup runs, only its progress changes. */
function show(place, backup, now, before, read) {
  const was = before ? JSON.parse(before).latest : undefined;
  const bar = place.querySelector(".backup-progress");
  if (bar && backup?.state === "running" && was?.state === "running" && was.started === backup.started)
    return fill(bar, progressOf(backup));
  fill(
    place,
    backup
      ? one(backup, read)
      : card(
          "The latest backup",
          h(
            "p",
            {},
            "The server has made no backup since it started. If there are backups of earlier runs, they are in its backup " +
              "directory.",
          ),
        ),
  );
}

const progressOf = ({ progress: ratio }) => [
  h("p", {}, `${percent(ratio, 0)} done`),
  progress(ratio, "Progress of the backup"),
];

function one(backup, read) {
  const { name, path, state, started, made, collections = [], removed = [], detail } = backup;
  return card(
    "The latest backup",
    facts([
      ["Name", idText(name)],
      ["State", badge(state, KINDS[state])],
      ["Started", time(started)],
      made ? ["Finished", time(made)] : null,
      collections.length > 0 ? ["Size", bytes(collections.reduce((sum, { bytes: size }) => sum + size, 0))] : null,
    ]),
    h("p", {}, "Directory on the server: ", idText(path)),
    state === "running"
      ? [
          h("div", { class: "backup-progress" }, progressOf(backup)),
          h(
            "div",
            { class: "row end" },
            button("Cancel the backup", () => cancel(name, read), { kind: "danger" }),
          ),
        ]
      : null,
    detail ? note("warn", "It failed: ", h("bdi", {}, detail)) : null,
    state === "done" ? [h("h3", {}, "What it contains"), contents(collections)] : null,
    removed.length > 0
      ? [
          h("h3", {}, "Older backups that it replaced"),
          h(
            "ul",
            {},
            removed.map((old) => h("li", {}, idText(old))),
          ),
        ]
      : null,
    state === "done" ? restore(path) : null,
  );
}

function contents(collections) {
  return longTable(
    "Collections of the backup",
    [
      { title: "Collection", cell: ({ name }) => idText(name) },
      { title: "Documents", number: true, cell: ({ documents }) => count(documents) },
      { title: "Last sequence number", number: true, cell: ({ last_seq: seq }) => count(seq) },
      { title: "Size", number: true, cell: ({ bytes: size }) => bytes(size) },
    ],
    collections,
  );
}

function restore(path) {
  return [
    h("h3", {}, "Restore it"),
    h(
      "p",
      {},
      "Run this on the machine that has the backup. The data directory must be empty or missing. Collections that were " +
        "made with a secret need the same ",
      h("code", {}, "hashing.secret"),
      " as before.",
    ),
    command(`hapax restore ${word(path)} --data-dir ./restored`),
    command("hapax verify --data-dir ./restored"),
    h("p", {}, "Then start a server on this directory: "),
    command("hapax serve --data-dir ./restored"),
  ];
}

async function cancel(name, read) {
  if (
    !(await confirm(
      "Cancel this backup",
      ["The files that the backup ", idText(name), " has written are removed."],
      "Cancel the backup",
    ))
  )
    return;
  try {
    const { cancelled } = await ask("DELETE", "/v1/backups");
    toast(cancelled > 0 ? "The backup was cancelled" : "The backup had ended already");
    await read();
  } catch (problem) {
    toast(problem.message, "bad");
  }
}

/** The form that starts a backup. `read` shows the new state. */
function form(read) {
  const name = h("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: "64" });
  const keep = h("input", { type: "number", min: "1", max: "1000", step: "1", value: "7", required: true });
  const number = field("Number to keep", keep, "So many of the newest backups with this name stay, and older ones are removed.");
  const follow = () => {
    number.hidden = !remove.checked;
    keep.disabled = !remove.checked;
  };
  const remove = h("input", { type: "checkbox", id: newId("remove"), on: { change: follow } });
  const about = h(
    "span",
    { class: "hint", id: newId("about") },
    "The time is then added to the name. If this is not chosen, nothing is removed.",
  );
  remove.setAttribute("aria-describedby", about.id);
  follow();
  const answer = h("div");
  const start = async (event) => {
    event.preventDefault();
    const body = {};
    if (name.value.trim() !== "") body.name = name.value.trim();
    if (remove.checked) body.keep = Number(keep.value);
    try {
      await post("/v1/backups", body);
      fill(answer);
      await read();
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      fill(answer, problem.code === "backups_off" ? off() : failure(problem));
    }
  };
  return card(
    "Make a backup",
    h(
      "p",
      { class: "hint" },
      "The server copies every collection, checks each row of the copy, and answers requests meanwhile. A backup is " +
        "never overwritten.",
    ),
    h(
      "form",
      { class: "form", on: { submit: start } },
      h(
        "div",
        { class: "fields" },
        field("Name", name, "Letters, digits and ._- (64 at most). Without a name, it is the current time."),
      ),
      h(
        "div",
        { class: "choice" },
        remove,
        h("label", { for: remove.id }, "Delete older backups with this name"),
        about,
      ),
      number,
      h("div", { class: "row end" }, button("Start the backup", null, { type: "submit", kind: "primary" })),
    ),
    answer,
  );
}

function off() {
  return note(
    "warn",
    h(
      "p",
      {},
      "This server has no directory for backups, because the setting ",
      h("code", {}, "backup.dir"),
      " is empty. Set it to a directory, if possible on another disk than the data, and restart the server:",
    ),
    command("HAPAX__BACKUP__DIR=/mnt/backups hapax serve"),
    h("p", {}, "Or stop the server, and copy the data directory:"),
    command("hapax backup --data-dir ./hapax-data ./offline"),
  );
}

/** What the metrics say about earlier backups. */
function history(signal) {
  const shown = h("div", {}, h("p", { class: "hint" }, "Reading the metrics…"));
  const ended = (result) => measured("hapax_backups_total", { result });
  const newest = (seconds) => {
    const iso = seconds > 0 ? new Date(seconds * 1000).toISOString() : null;
    return iso ? [time(iso), `, ${ago(iso)}`] : "none";
  };
  onSample(() => {
    fill(
      shown,
      facts([
        ["Newest backup in the directory", measured("hapax_backup_last_success_timestamp_seconds", {}, newest)],
        ["Done since the start", ended("done")],
        ["Failed", ended("failed")],
        ["Cancelled", ended("cancelled")],
      ]),
    );
  }, signal);
  return card("Earlier backups", shown);
}

function advice() {
  return card(
    "A backup every night",
    h("p", {}, "Put this line into cron or a timer. It keeps the seven newest backups:"),
    command(`hapax backup ${ofServer()} nightly --keep 7`),
    h(
      "p",
      {},
      "Copy finished backups to another machine, and test once a month that one can be restored. Settings, keys and " +
        "secrets are not part of a backup.",
    ),
  );
}
