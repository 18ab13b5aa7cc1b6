// The parts of the view Live that say how the server is: what is wrong now, and how much of its limits is used.

import { sampledAt, known, keyOf, value } from "./panels.js";
import { counted, problems } from "./problems.js";
import { ago, badge, bytes, card, count, duration, facts, fill, h, idText, percent, time } from "./ui.js";

const ITEMS_SHOWN = 5;
/**
 * Where a problem leads: the words of the link, the view, the scope that it needs if any, its parameters, and whether it is
 * about one collection.
 */
const LINKS = {
  buckets: { words: "Look at the fullest buckets", view: "buckets", scope: "read", one: true },
  quality: { words: "See the quality of this collection", view: "quality", scope: "read", one: true },
  collection: { words: "See the collection", view: "collection", one: true },
  collections: { words: "See the collections", view: "collections" },
  backups: { words: "Open Backups", view: "operate", scope: "admin", params: { tab: "backups" } },
  keys: { words: "Open Keys", view: "operate", scope: "keys", params: { tab: "keys" } },
};

/** A card that says what is wrong now, and what to do. */
export function stateCard({ show }, { href, may }) {
  const title = h("h2", { "aria-live": "polite" }, "What is wrong now");
  const place = h("div", {}, h("p", { class: "hint" }, "Reading /metrics…"));
  let shown = "";
  show(() => {
    const [now, before] = [problems(), counted()];
    const state = JSON.stringify([now, before.map(({ one }) => [keyOf(one), value(one)])]);
    if (state === shown) return;
    shown = state;
    if (title.textContent !== counting(now.length)) title.textContent = counting(now.length);
    keepingFocus(place, () => fill(place, stateOf(now, before, href, may)));
  });
  return h("section", { class: "card" }, title, place);
}

/** Replaces what an element contains by `replace()`. What was open stays open, and what had the focus keeps it. */
function keepingFocus(element, replace) {
  const nameOf = (one) => one.getAttribute("href") ?? one.localName;
  const focused = element.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const open = element.querySelector("details")?.open ?? false;
  replace();
  const details = element.querySelector("details");
  if (details) details.open = open;
  if (focused) [...element.querySelectorAll("a, summary")].find((one) => nameOf(one) === focused)?.focus();
}

function counting(wrong) {
  if (wrong === 0) return "Nothing is wrong now";
  return wrong === 1 ? "1 thing is wrong now" : `${wrong} things are wrong now`;
}

function stateOf(now, before, href, may) {
  return [
    now.length === 0 ? h("p", {}, badge("good", "good"), " No alert is active.") : null,
    now.length === 0 ? null : h("ul", { class: "problems" }, now.map((problem) => problemOf(problem, href, may))),
    before.length === 0 ? null : countedOf(before),
    h("p", { class: "hint" }, "These are alerts of all collections. An alert appears here at once; Prometheus waits some minutes."),
  ];
}

function problemOf({ alert, wakes, title, todo, link, items }, href, may) {
  const { words, view, scope, params, one } = LINKS[link] ?? {};
  const leads = link && (scope === undefined || may(scope));
  const line = ({ collection, node, words: about }) => {
    const name = collection ?? node;
    const parts = [name === undefined ? null : idText(name), name !== undefined && about ? ": " : null, about];
    return h("li", {}, parts, leads && one ? [" · ", h("a", { href: href(view, { collection }) }, words)] : null);
  };
  const told = items.filter((item) => item.collection ?? item.node ?? item.words);
  const rest = told.length - ITEMS_SHOWN;
  return h(
    "li",
    {},
    h("h3", {}, badge(wakes ? "act now" : "can wait", wakes ? "bad" : "warn"), " ", title),
    h("p", {}, todo, leads && !one ? [" ", h("a", { href: href(view, params) }, words)] : null),
    told.length > 0 ? h("ul", {}, told.slice(0, ITEMS_SHOWN).map(line), rest > 0 ? h("li", {}, `and ${rest} more`) : null) : null,
    h("p", { class: "hint" }, "Alert ", h("code", {}, alert)),
  );
}

function countedOf(before) {
  const line = ({ one, words }) => {
    const { collection, route } = one.labels;
    const about = collection ? ["in ", idText(collection)] : route ? ["at ", h("code", {}, route)] : null;
    const shown = h("span", { "data-metric": keyOf(one), "data-value": String(value(one)) }, count(value(one)));
    return h("li", {}, shown, ` ${words} `, about);
  };
  return h("details", {}, h("summary", {}, "What has gone wrong since the server started"), h("ul", {}, before.map(line)));
}

/** A card with bars for what has a limit. */
export function limitsCard({ number, gauge, show }) {
  const reserve = number("hapax_disk_reserve_bytes", {}, bytes);
  return card(
    "Limits",
    h(
      "div",
      { class: "thirds" },
      gauge({
        title: "Memory of the index",
        used: "hapax_memory_used_bytes",
        max: "hapax_memory_budget_bytes",
        format: bytes,
        hint: "At 100 %, inserts are refused with 507. The limit is limits.memory_max_bytes.",
      }),
      gauge({
        title: "Memory of the process",
        used: "hapax_memory_anonymous_bytes",
        max: "hapax_memory_max_bytes",
        format: bytes,
        high: 0.9,
        hint: "At 100 %, no document is stored and no large body is read. The limit is memory.max_bytes.",
      }),
      gauge({
        title: "Connections",
        used: "hapax_http_connections",
        max: "hapax_http_connections_max",
        hint: "At the maximum, the connection that was not used for the longest time is closed.",
      }),
      gauge({
        title: "Queue for the processors",
        used: "hapax_cpu_queue_depth",
        max: "hapax_cpu_queue_max",
        hint: "Long work that waits. When the queue is full, requests get 503.",
      }),
      gauge({
        title: "Open files",
        used: "process_open_fds",
        max: "process_max_fds",
        hint: "Connections and data files. The system sets the limit.",
      }),
      h(
        "div",
        { class: "gauge" },
        h("h3", {}, "Disk of the data directory"),
        h("p", {}, number("hapax_data_free_bytes", {}, bytes), " free · ", writable(show)),
        h("p", { class: "hint" }, "When the disk is full, inserts are refused. Reserved for deletes: ", reserve, "."),
      ),
    ),
  );
}

function writable(show) {
  const shown = h("span", {});
  show(() => {
    const refused = known("hapax_data_writable").some((one) => value(one) === 0);
    fill(shown, refused ? badge("refuses documents", "bad") : badge("takes documents", "good"));
  });
  return shown;
}

/** A card about backups, and one about the audit log. */
export function safetyCards({ number, show }, { href, may }) {
  const latest = h("span", {});
  const progress = h("span", {});
  show(() => {
    const [made] = known("hapax_backup_last_success_timestamp_seconds");
    const at = made ? value(made) : NaN;
    fill(latest, at === 0 ? "Never" : at > 0 ? [`${ago(at * 1000)}, `, time(new Date(at * 1000).toISOString())] : "–");
    if (made) Object.assign(latest.dataset, { metric: keyOf(made), value: String(at) });
    const running = known("hapax_backup_progress_ratio").map(value).find((ratio) => ratio > 0 && ratio < 1);
    fill(progress, running === undefined ? "no backup runs" : `${percent(running, 0)} copied`);
  });
  const open = may("admin") ? h("a", { href: href("operate", { tab: "backups" }) }, "Open Backups") : null;
  const ended = (result) => number("hapax_backups_total", { result });
  const backups = card(
    "Backups",
    facts([
      ["Latest backup", latest],
      ["Now", progress],
      ["Done since the start", ended("done")],
      ["Failed", ended("failed")],
      ["Cancelled", ended("cancelled")],
      ["Copied since the start", number("hapax_backup_copied_bytes_total", {}, bytes)],
    ]),
    h("p", { class: "hint" }, "After 36 hours, a backup is too old. ", open),
  );
  const audit = card(
    "Audit log",
    facts([
      ["Size of all files", number("hapax_audit_bytes", {}, bytes)],
      ["Lines since the start", number("hapax_audit_lines_total")],
      ["Dropped lines", number("hapax_audit_dropped_total")],
      ["Failed writes", number("hapax_audit_errors_total")],
      ["Waits for the disk", number("hapax_audit_queue_bytes", {}, bytes)],
    ]),
    h(
      "p",
      { class: "hint" },
      "If audit.dir is not set, there is no audit log and all values are 0. At audit.bytes_max, the oldest file is removed.",
    ),
  );
  return h("div", { class: "columns" }, backups, audit);
}

/** A line that says when the metrics were read, and a warning if that is long ago. */
export function freshness({ show }, signal) {
  const shown = h("p", { class: "hint" }, "Reading /metrics…");
  const tell = () => {
    const age = Date.now() / 1000 - sampledAt();
    if (Number.isNaN(age)) return;
    shown.className = age > 20 ? "note warn" : "hint";
    const clock = new Date(sampledAt() * 1000).toLocaleTimeString();
    const old = `/metrics has not answered for ${duration(age)}. The numbers are those of ${clock}.`;
    shown.textContent = age > 20 ? old : `Read at ${clock}.`;
  };
  show(tell);
  const timer = setInterval(tell, 5000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return shown;
}
