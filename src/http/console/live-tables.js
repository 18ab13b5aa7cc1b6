// The tables of the view Live: routes, verdicts and collections.

import { all } from "./history.js";
import { grew, grown, known, mixBar, quantileOver, renew, seen, value } from "./panels.js";
import { bytes, button, card, count, duration, fill, h, idText, short, table } from "./ui.js";

const ROWS_SHOWN = 20;
const VERDICTS = ["unique", "near_duplicate", "exact_duplicate", "empty"];
const OPS = ["insert", "check"];
const NOTHING = "in this period.";

/** A table of the routes that clients used in the period. */
export function routesPart({ show, period }, clients) {
  const place = h("div", {});
  show(() => {
    const seconds = Math.min(period() * 60, seen());
    const rows = routesOf(clients, seconds);
    const none = h("p", { class: "hint" }, `No request to /v1/… has ended ${NOTHING}`);
    renew(place, rows.length > 0 ? routesTable(rows, seconds) : none);
  });
  return h("div", {}, h("h3", {}, "By route, in the period"), place);
}

/** The routes with requests in the last seconds, the most used first. */
function routesOf(clients, seconds) {
  const name = "hapax_http_request_duration_seconds";
  const counted = all(`${name}_count`, clients).map((one) => ({ ...one.labels, requests: grown(one, seconds) }));
  const used = counted.filter(({ requests }) => requests > 0);
  const timed = ({ route, method, requests }) => {
    const over = (q) => quantileOver(q, name, { route, method }, seconds);
    return { route, method, requests, median: over(0.5), p99: over(0.99) };
  };
  return used.map(timed).sort((a, b) => b.requests - a.requests);
}

function routesTable(rows, seconds) {
  const columns = [
    { title: "Route", cell: ({ method, route }) => h("code", {}, `${method} ${route}`) },
    { title: "Requests", number: true, cell: ({ requests }) => count(requests) },
    { title: "Per second", number: true, cell: ({ requests }) => short(requests / seconds) },
    { title: "Median", number: true, cell: ({ median }) => duration(median) },
    { title: "p99", number: true, cell: ({ p99 }) => duration(p99) },
  ];
  return table("Routes and their times", columns, rows);
}

/** The mix of verdicts in the period as a bar, and all verdicts since the server started as a table. */
export function verdictsPart({ number, show, period }, of) {
  const place = h("div", {});
  show(() => {
    const more = (verdict) => grew("hapax_verdicts_total", { ...of, verdict }, period() * 60);
    const parts = VERDICTS.map((verdict, at) => ({ name: verdict.replaceAll("_", " "), line: at + 1, value: more(verdict) }));
    const any = parts.some((part) => part.value > 0);
    fill(place, any ? mixBar("Verdicts in the period", parts) : h("p", { class: "hint" }, `No verdict ${NOTHING}`));
  });
  const column = (verdict) => ({
    title: verdict.replaceAll("_", " "),
    number: true,
    cell: (op) => number("hapax_verdicts_total", { ...of, op, verdict }),
  });
  const columns = [{ title: "Operation", cell: (op) => `${op}s` }, ...VERDICTS.map(column)];
  const since = table("Verdicts since the server started", columns, OPS);
  return h("div", {}, h("h3", {}, "Mix in the period"), place, h("h3", {}, "Since the server started"), since);
}

/** A table of the collections, or of the one that is chosen. The largest come first when the table is made. */
export function collectionsCard({ show, group }, collection, context) {
  const place = h("div", {});
  const cells = group();
  let shown = "";
  let most = ROWS_SHOWN;
  const draw = () => {
    const names = namesBySize().filter((name) => collection === "" || name === collection);
    const state = JSON.stringify([most, [...names].sort()]);
    if (state === shown) return;
    shown = state;
    cells.clear();
    const more = button(`Show all ${names.length} collections`, () => {
      most = names.length;
      draw();
    });
    const rest = names.length > most ? h("div", { class: "row end" }, more) : null;
    renew(place, collectionsTable(cells.number, names.slice(0, most), context), rest);
  };
  show(draw);
  const about =
    "Largest bucket: the most documents that are equal in one band. Buckets over the limit have more postings than " +
    "limits.bucket_read_max, so that a lookup reads only a part of them. Incomplete verdicts and refused documents are " +
    "counted since the server started; documents are refused if the index has no room.";
  return card("Collections", place, h("p", { class: "hint" }, about));
}

function namesBySize() {
  const sizes = new Map(known("hapax_documents").map((one) => [one.labels.collection, value(one)]));
  const names = known("hapax_collection_open").map(({ labels }) => labels.collection);
  return names.sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0) || (a < b ? -1 : 1));
}

function collectionsTable(number, names, { href }) {
  const column = (title, name, format) => ({ title, number: true, cell: (collection) => number(name, { collection }, format) });
  const columns = [
    { title: "Collection", cell: (collection) => h("a", { href: href("collection", { collection }) }, idText(collection)) },
    column("Documents", "hapax_documents"),
    column("Largest bucket", "hapax_bucket_documents_largest"),
    column("Buckets over the limit", "hapax_buckets_over_cap"),
    column("Incomplete verdicts", "hapax_incomplete_verdicts_total"),
    column("Refused documents", "hapax_memory_refused_total"),
    column("Waiting writes", "hapax_commit_queue_depth"),
    column("Write-ahead log", "hapax_log_bytes", bytes),
  ];
  return table("Collections and their numbers", columns, names);
}
