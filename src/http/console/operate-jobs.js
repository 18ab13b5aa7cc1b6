// The jobs: merges and deletions by label, with their progress. In: GET /v1/jobs. One job has its reports below it.

import { ask, get } from "./api.js";
import { mergeForm } from "./operate-merge.js";
import { reports } from "./operate-reports.js";
import { briefId, repeat } from "./pieces.js";
import {
  badge,
  button,
  card,
  confirm,
  count,
  empty,
  failure,
  field,
  fill,
  h,
  idText,
  note,
  percent,
  progress,
  select,
  time,
  toast,
} from "./ui.js";

const RUNNING_MS = 2000;
const IDLE_MS = 10000;
const LIMITS = ["50", "200", "1000"];
const STATES = [
  ["all", "All jobs"],
  ["running", "Jobs that run"],
  ["ended", "Jobs that have ended"],
];

/** What the address asks for, as a request. */
export function jobsPath(params) {
  if (params.get("job")) return [`/v1/jobs/${encodeURIComponent(params.get("job"))}`];
  const limit = LIMITS.includes(params.get("limit")) ? params.get("limit") : LIMITS[0];
  return ["/v1/jobs", { collection: params.get("collection"), state: params.get("state"), limit }];
}

/** Shows the jobs, or one job with its reports, and keeps them up to date. */
export function jobs(page, context) {
  const { params, may, href } = context;
  const place = h("div", { class: "later" }, h("p", { class: "hint" }, "Reading the jobs…"));
  if (params.get("job")) {
    page.append(h("p", {}, h("a", { href: href("operate", { tab: "jobs" }) }, "All jobs")), place);
  } else {
    page.append(
      filters(context),
      place,
      note(
        "info",
        "A change of the banding is not a job: the request waits until the new banding is built, and the view of the " +
          "collection shows it meanwhile.",
      ),
    );
    if (may("insert") && may("read")) page.append(mergeForm(context));
    else page.append(h("p", { class: "hint" }, "To start a merge here, a key with the scopes insert and read is needed."));
  }
  follow(place, context);
}

function filters({ params, go, signal }) {
  const to = (changes) =>
    go("operate", {
      tab: "jobs",
      collection: params.get("collection"),
      state: params.get("state"),
      limit: params.get("limit"),
      ...changes,
    });
  const now = params.get("collection") ?? "";
  const option = (name) => h("option", { value: name, selected: name === now }, name === "" ? "All collections" : name);
  const collection = select([[now, now || "All collections"]], now, (value) => to({ collection: value }));
  get("/v1/collections", {}, signal).then(
    ({ collections }) => fill(collection, ["", ...collections.map(({ name }) => name)].map(option)),
    () => {},
  );
  const limits = LIMITS.map((limit) => [limit, `${limit} at most`]);
  return card(
    "Which jobs",
    h(
      "div",
      { class: "fields" },
      field("Collection", collection),
      field(
        "State",
        select(STATES, params.get("state") ?? "all", (state) => to({ state })),
      ),
      field(
        "Number of jobs",
        select(limits, params.get("limit") ?? LIMITS[0], (limit) => to({ limit })),
      ),
    ),
  );
}

/** Reads the jobs again and again. Rows stay, and only what has changed in them is drawn again. */
function follow(place, context) {
  const { params, signal } = context;
  const [path, query] = jobsPath(params);
  const one = Boolean(params.get("job"));
  const rows = new Map();
  const body = h("tbody");
  const below = { element: null, state: "" };
  const act = async () => {
    let answer;
    try {
      answer = await get(path, query, signal);
    } catch (problem) {
      if (!signal.aborted && problem.name !== "Problem") throw problem;
      if (!signal.aborted) fill(place, failure(problem));
      rows.clear();
      return IDLE_MS;
    }
    const found = one ? [answer] : answer.jobs;
    const first = rows.size === 0;
    for (const name of rows.keys()) if (!found.some(({ job }) => job === name)) rows.delete(name);
    for (const job of found) {
      const row = rows.get(job.job) ?? rowOf(context);
      rows.set(job.job, row);
      row.update(job);
    }
    const elements = found.map(({ job }) => rows.get(job).element);
    if (elements.length !== body.children.length || elements.some((element, at) => element !== body.children[at]))
      fill(body, elements);
    if (first || found.length === 0)
      fill(place, found.length > 0 ? card(one ? "The job" : "Jobs", frame(body)) : noJobs(query));
    if (one && answer.kind === "merge" && answer.state !== below.state) {
      below.element?.remove();
      below.element = reports(context, answer);
      below.state = answer.state;
      place.after(below.element);
    }
    return found.some(({ state }) => state === "running") ? RUNNING_MS : IDLE_MS;
  };
  repeat(act, signal);
}

function noJobs({ collection, state }) {
  const which = [
    state === "running" ? "running" : state === "ended" ? "ended" : "",
    "jobs",
    collection ? `of ${collection}` : "",
  ]
    .filter(Boolean)
    .join(" ");
  return empty(
    `There are no ${which}`,
    "Jobs are merges of collections and deletions by label. A collection keeps the last 100 jobs that have ended.",
  );
}

function frame(body) {
  const head = ["Job", "State", "Progress", "Outcomes", "What you can do"].map((title) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Jobs" },
    h("table", {}, h("caption", { class: "hidden" }, "Jobs"), h("thead", {}, h("tr", {}, head)), body),
  );
}

/** A row of the table, and how to bring it up to date. */
function rowOf(context) {
  const cells = [what, stateOf, progressOf, outcomesOf, actionsOf].map((draw) => ({ draw, element: h("td"), shown: "" }));
  return {
    element: h(
      "tr",
      {},
      cells.map(({ element }) => element),
    ),
    update(job) {
      for (const cell of cells) {
        const key = JSON.stringify(cell.draw === actionsOf ? [job.state, job.outcomes?.refused > 0] : job);
        if (key !== cell.shown) fill(cell.element, cell.draw(job, context));
        cell.shown = key;
      }
    },
  };
}

function what({ job, kind, collection, from, label, accepted, ended }) {
  const words =
    kind === "merge"
      ? ["Merge of ", idText(from), " into ", idText(collection)]
      : ["Deletion of the label ", briefId(label ?? ""), " in ", idText(collection)];
  return [
    h("div", {}, words),
    h("div", { class: "hint" }, "Begun ", time(accepted), ended ? [", ended ", time(ended)] : null, " · ", idText(job)),
  ];
}

function stateOf({ state, detail }) {
  const kinds = { running: "warn", done: "good", aborted: "bad" };
  return [badge(state, kinds[state]), detail ? h("div", { class: "hint" }, h("bdi", {}, detail)) : null];
}

function progressOf({ job, done, documents, state }) {
  const ratio = documents === 0 ? Number(state === "done") : done / documents;
  return [
    h("div", { class: "hint" }, `${count(done)} of ${count(documents)} documents, ${percent(ratio, 0)}`),
    progress(ratio, `Progress of ${job}`),
  ];
}

function outcomesOf({ kind, outcomes = {}, verdicts = {}, on_duplicate: duplicate, on_existing: existing }) {
  if (kind !== "merge") return "–";
  const parts = Object.entries(outcomes).map(([name, number]) =>
    h("li", {}, `${count(number)} `, name === "refused" ? badge(name, "bad") : name),
  );
  const words = Object.entries(verdicts)
    .map(([name, number]) => `${count(number)} ${name.replaceAll("_", " ")}`)
    .join(", ");
  return [
    h("ul", { class: "plain" }, parts),
    words ? h("div", { class: "hint" }, `Verdicts: ${words}`) : null,
    h("div", { class: "hint" }, `on_duplicate=${duplicate}, on_existing=${existing}`),
  ];
}

function actionsOf(job, context) {
  const { href, may, params } = context;
  const { kind, state, outcomes } = job;
  const to = (show) => href("operate", { tab: "jobs", job: job.job, show });
  const stop =
    kind === "merge" && state === "running" && may("insert")
      ? button("Stop the merge", () => stopMerge(job, context), { kind: "danger" })
      : null;
  const seesReports = kind === "merge" && may("read") && !params.get("job");
  return [
    h(
      "div",
      { class: "actions" },
      seesReports ? h("a", { href: to("all") }, "Reports") : null,
      seesReports && outcomes?.refused > 0 ? h("a", { href: to("refused") }, "Refused documents") : null,
      stop,
    ),
    kind === "merge"
      ? null
      : h("p", { class: "hint" }, "It cannot be stopped: its documents are deleted for all answers already."),
  ];
}

async function stopMerge({ job, from, collection }, { reload }) {
  const sentence = [
    "The merge of ",
    idText(from),
    " into ",
    idText(collection),
    " ends. Documents that are merged already stay. You can begin the same merge again later.",
  ];
  if (!(await confirm("Stop this merge", sentence, "Stop the merge"))) return;
  try {
    const { state, detail } = await ask("DELETE", `/v1/jobs/${encodeURIComponent(job)}`);
    toast(state === "running" ? `The merge will end later: ${detail}` : "The merge has ended");
    reload();
  } catch (problem) {
    toast(problem.message, "bad");
  }
}
