// The view Live: what the server does now, from /metrics, which the page reads every five seconds.

import { curl } from "./api.js";
import { all, rates, sums } from "./history.js";
import { freshness, limitsCard, safetyCards, stateCard } from "./live-state.js";
import { collectionsCard, routesPart, verdictsPart } from "./live-tables.js";
import { board, highest, known, means, quantileLines, seen, shares } from "./panels.js";
import { bytes, card, count, curlButton, duration, facts, field, fill, h, heading, idText } from "./ui.js";
import { note, percent, select, short, time } from "./ui.js";

const PERIODS = [5, 15, 60];
/** Requests of clients, and not those of this page to /metrics and for its files. */
const CLIENTS = { route: (route) => route.startsWith("/v1/") };

export async function render(page, context) {
  const { params, setParams, signal } = context;
  const collection = params.get("collection") ?? "";
  const asked = Number(params.get("minutes"));
  const minutes = PERIODS.includes(asked) ? asked : PERIODS[0];
  const parts = board(signal, minutes);
  const choose = (chosen) => {
    setParams({ minutes: chosen === String(PERIODS[0]) ? null : chosen });
    parts.setPeriod(Number(chosen));
  };
  const period = select(PERIODS.map((one) => [String(one), `${one} minutes`]), String(minutes), choose);
  const title = heading(
    "Live",
    "What the server does now, from /metrics, which this page reads every 5 seconds and keeps for an hour.",
    field("Collection", collectionChoice(parts, collection, context)),
    field("Period of the charts", period),
    curlButton(() => curl("GET", "/metrics")),
  );
  const of = collection === "" ? {} : { collection };
  page.append(
    title,
    freshness(parts, signal),
    unknownCollection(parts, collection),
    stateCard(parts, context),
    limitsCard(parts),
    safetyCards(parts, context),
    filling(parts),
    requests(parts),
    verdicts(parts, of),
    lookups(parts, of, context),
    store(parts, of, context),
    process(parts, of, context),
    collectionsCard(parts, collection, context),
  );
}

/** A choice of one collection or all. Its options are those that /metrics names. */
function collectionChoice({ show }, collection, { go, params }) {
  const change = (chosen) => go("live", { collection: chosen, minutes: params.get("minutes"), open: params.get("open") });
  const choice = select([["", "all collections"], ...(collection ? [collection] : [])], collection, change);
  let shown = "";
  show(() => {
    const names = known("hapax_collection_open").map(({ labels }) => labels.collection).sort();
    if (collection && !names.includes(collection)) names.unshift(collection);
    if (names.join("\n") === shown) return;
    shown = names.join("\n");
    const option = (value, text) => h("option", { value, selected: value === collection }, text);
    fill(choice, option("", "all collections"), names.map((name) => option(name, name)));
  });
  return choice;
}

/** Says that the address names a collection that /metrics does not name. */
function unknownCollection({ show }, collection) {
  const place = h("div", { hidden: true }, note("warn", "/metrics has no collection ", idText(collection), ". Choose another."));
  show(() => (place.hidden = collection === "" || known("hapax_collection_open", { collection }).length > 0));
  return place;
}

/** Says that there is nothing to draw yet, and later for how long there are samples. */
function filling({ show }) {
  const place = h("p", { class: "hint" }, "The charts begin with the second sample. They fill while this page stays open.");
  show(() => {
    const far = `The charts go back ${duration(seen())}. They fill while this page stays open; a reload begins again.`;
    if (seen() > 0) place.textContent = far;
  });
  return place;
}

/** A card that is closed until the person opens it. The parameter `open` of the address names those that are open. */
function folded(name, title, { params, setParams }, ...children) {
  const names = () => (params.get("open") ?? "").split(",").filter(Boolean);
  const isOpen = names().includes(name);
  const toggle = ({ target }) => {
    const others = names().filter((one) => one !== name);
    setParams({ open: [...others, ...(target.open ? [name] : [])].join(",") });
  };
  const summary = h("summary", {}, h("h2", {}, title));
  return h("details", { class: "card", open: isOpen, on: { toggle } }, summary, children);
}

const charts = (...children) => h("div", { class: "thirds" }, children);
/** A share in words. The charts give a second argument, which is not the number of digits. */
const share = (ratio) => percent(ratio);

function requests(parts) {
  const answered = (test) => () => rates("hapax_http_requests_total", { ...CLIENTS, status: test });
  const isFull = (status) => status === "503" || status === "507";
  return card(
    "Requests to the whole server",
    charts(
      parts.chart({
        title: "Answers per second, to /v1/…",
        format: short,
        lines: [
          { name: "done (2xx)", column: answered((status) => status[0] === "2") },
          { name: "refused (4xx)", column: answered((status) => status[0] === "4") },
          { name: "no room (503, 507)", column: answered(isFull) },
          { name: "fault (other 5xx)", column: answered((status) => status[0] === "5" && !isFull(status)) },
        ],
      }),
      parts.chart({
        title: "Time of a request to /v1/…",
        format: duration,
        lines: quantileLines("hapax_http_request_duration_seconds", CLIENTS, [0.5, 0.99, 0.999]),
        hint: "99 of 100 requests take at most the time p99. A bulk request lasts as long as its client sends.",
      }),
      parts.chart({
        title: "Open now",
        format: count,
        lines: [
          { name: "requests", column: () => sums("hapax_http_requests_in_flight") },
          { name: "bulk requests", column: () => sums("hapax_http_bulk_requests") },
          { name: "connections", column: () => sums("hapax_http_connections") },
        ],
      }),
    ),
    routesPart(parts, CLIENTS),
  );
}

function verdicts(parts, of) {
  const rate = (filter) => rates("hapax_verdicts_total", { ...of, ...filter });
  const isDuplicate = (verdict) => verdict.endsWith("_duplicate");
  const line = (verdict) => ({ name: verdict.replaceAll("_", " "), column: () => rate({ verdict }) });
  const duplicates = (op) => ({ name: `${op}s`, column: () => shares(rate({ op, verdict: isDuplicate }), rate({ op })) });
  return card(
    "Verdicts",
    verdictsPart(parts, of),
    charts(
      parts.chart({
        title: "Verdicts per second",
        format: short,
        lines: ["unique", "near_duplicate", "exact_duplicate", "empty"].map(line),
      }),
      parts.chart({
        title: "Share of duplicates",
        format: share,
        lines: ["insert", "check"].map(duplicates),
        hint: "If it jumps, look at the documents that clients send: a template or a repeated import may be the cause.",
      }),
      parts.chart({
        title: "Stored documents",
        format: count,
        lines: [{ name: "documents", column: () => sums("hapax_documents", of) }],
      }),
      parts.chart({
        title: "Share of incomplete verdicts",
        format: share,
        lines: [{ name: "incomplete", column: () => shares(rates("hapax_incomplete_verdicts_total", of), rate({})) }],
        hint: "It should be 0. A verdict is incomplete if a limit may have hidden a match.",
      }),
    ),
  );
}

function lookups(parts, of, context) {
  const compared = (filter) => rates("hapax_verified_candidates_total", { ...of, ...filter });
  const p99 = (name, filter) => quantileLines(`hapax_${name}_duration_seconds`, filter, [0.99])[0].column;
  return folded(
    "lookups",
    "Lookups",
    context,
    charts(
      parts.chart({
        title: "Candidates of a lookup",
        format: short,
        lines: [
          { name: "mean", column: () => means("hapax_check_candidates", of) },
          ...quantileLines("hapax_check_candidates", of, [0.99]),
        ],
        hint:
          "Candidates are the documents that share a band with the text. Each is compared. If they grow, many documents look " +
          "alike.",
      }),
      parts.chart({
        title: "Candidates that are matches",
        format: share,
        lines: [{ name: "share", column: () => shares(compared({ result: "match" }), compared({})) }],
        hint: "If most candidates are not matches, lookups do unnecessary work: use more rows in a band.",
      }),
      parts.chart({
        title: "Documents in a bucket",
        format: count,
        lines: [
          { name: "largest", column: () => highest("hapax_bucket_documents_largest", of) },
          { name: "p99", column: () => highest("hapax_bucket_documents_p99", of) },
          { name: "median", column: () => highest("hapax_bucket_documents_p50", of) },
        ],
        hint: "A bucket has the documents that are equal in a band. For several collections, the highest number of any.",
      }),
      parts.chart({
        title: "Where the time goes: p99 of each stage",
        format: duration,
        lines: [
          { name: "sign", column: p99("sign", {}) },
          ...["probe", "verify", "decision"].map((name) => ({ name, column: p99(name, of) })),
        ],
        hint:
          "sign: make the signature (all collections). probe: read the buckets. verify: compare the candidates. " +
          "decision: hold the lock for writes.",
      }),
    ),
  );
}

function store(parts, of, context) {
  const full = () => shares(highest("hapax_commit_queue_depth", of), highest("hapax_commit_queue_max", of));
  return folded(
    "disk",
    "Disk",
    context,
    charts(
      parts.chart({
        title: "Time of a transaction",
        format: duration,
        lines: quantileLines("hapax_commit_duration_seconds", of, [0.5, 0.99]),
        hint: "With the wait for the disk (fsync). If it grows, the disk is slow or shared.",
      }),
      parts.chart({
        title: "Transactions per second",
        format: short,
        lines: [
          { name: "transactions", column: () => rates("hapax_commit_duration_seconds_count", of) },
          { name: "writes in one", column: () => means("hapax_commit_documents", of) },
        ],
      }),
      parts.chart({
        title: "Queue for the disk",
        format: share,
        lines: [{ name: "full", column: full }],
        hint: "When it is full, writes get 503. For several collections, the fullest queue.",
      }),
      parts.chart({ title: "Free space", format: bytes, lines: [{ name: "free", column: () => sums("hapax_data_free_bytes") }] }),
      parts.chart({
        title: "Write-ahead log",
        format: bytes,
        lines: [{ name: "size", column: () => sums("hapax_log_bytes", of) }],
        hint: "It grows while a backup copies the collection.",
      }),
      parts.chart({
        title: "Delay of expiry",
        format: duration,
        lines: [{ name: "most overdue", column: () => highest("hapax_expiry_lag_seconds", of) }],
        hint: "For collections with a ttl. A few seconds are normal.",
      }),
    ),
  );
}

function process(parts, of, context) {
  const { number, chart, show } = parts;
  const started = h("span", {});
  show(() => {
    const at = sums("process_start_time_seconds").at(-1);
    fill(started, Number.isFinite(at) ? time(new Date(at * 1000).toISOString()) : "–");
  });
  const version = h("span", {}, "–");
  show(() => (version.textContent = known("hapax_build_info")[0]?.labels.version ?? "–"));
  return folded(
    "process",
    "Process and memory",
    context,
    facts([
      ["Version", version],
      ["Started", started],
      ["Threads", number("process_threads")],
      ["Bodies of requests", number("hapax_http_buffered_bytes", {}, bytes)],
      ["Answers", number("hapax_http_answer_bytes", {}, bytes)],
      ["Valid keys", number("hapax_keys_valid")],
    ]),
    charts(
      chart({
        title: "Memory",
        format: bytes,
        lines: [
          { name: "anonymous", column: () => sums("hapax_memory_anonymous_bytes") },
          { name: "resident", column: () => sums("process_resident_memory_bytes") },
          { name: "index", column: () => sums("hapax_memory_used_bytes") },
        ],
        hint: "memory.max_bytes limits anonymous memory. Resident memory also has pages of files.",
      }),
      chart({
        title: "Processors in use",
        format: short,
        lines: [{ name: "processors", column: () => rates("process_cpu_seconds_total") }],
        hint: "1 means that one processor is busy all the time.",
      }),
    ),
    h("h3", {}, "Memory of the index by part"),
    indexParts(parts, of),
  );
}

/** What each part of the index takes, as facts. */
function indexParts({ number, show }, of) {
  const place = h("div", {});
  let shown = "";
  show(() => {
    const names = [...new Set(all("hapax_index_bytes", of).map(({ labels }) => labels.part))].sort();
    if (names.join() === shown) return;
    shown = names.join();
    fill(place, facts(names.map((part) => [part.replaceAll("_", " "), number("hapax_index_bytes", { ...of, part }, bytes)])));
  });
  return place;
}
