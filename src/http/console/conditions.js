// The conditions of config/prometheus/hapax-alerts.yaml, without their waiting times. In: the samples of history.js.
// Out: what each alert is about now. Left out are HapaxDown, which the frame of the page tells, and HapaxCandidatesWasted
// and HapaxRedisRedirects, which need more time than the page has seen.

import { all } from "./history.js";
import { grew, grown, known, quantileOver, sampledAt, seen, value } from "./panels.js";
import { bytes, count, duration, percent, short } from "./ui.js";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** Words for a number of things that were counted in some minutes. */
const recent = (minutes) => (more) => `${count(more)} in the last ${minutes} minutes`;

const used = (share) => `${percent(share)} is used`;

const item = ({ collection, node }, words) => ({ collection, node, words });

/** Items for the series of a metric whose value passes a test. `words(value, labels)` says how bad it is. */
function where(name, test, words = () => "") {
  return known(name).filter((one) => test(value(one), one.labels)).map((one) => item(one.labels, words(value(one), one.labels)));
}

/** Items for the counters of a metric that grew by more than `least` in the last `seconds`. */
function growing(name, filter, seconds, words, least = 0) {
  const grownBy = all(name, filter).map((one) => [grown(one, seconds), one.labels]);
  return grownBy.filter(([more]) => more > least).map(([more, labels]) => item(labels, words(more, labels)));
}

/** One item if something holds for the whole server. */
const single = (holds, words) => (holds ? [{ words }] : []);

/** The value of a series now; NaN if there is no such series. */
function latest(name, filter) {
  const found = known(name, filter);
  return found.length === 0 ? NaN : value(found[0]);
}

/** Items for the collections in which the ratio of how much two metrics grew is above `least`. */
function ratios(part, whole, seconds, least, words) {
  const names = known("hapax_collection_open").map(({ labels }) => labels.collection);
  const ratio = (collection) => grew(part, { collection }, seconds) / grew(whole, { collection }, seconds);
  const found = names.map((collection) => [collection, ratio(collection)]);
  return found.filter(([, ratio]) => ratio > least).map(([collection, ratio]) => item({ collection }, words(ratio)));
}

/** Items for the gauges that are above a share of the gauge that has their maximum and the same labels. */
function filled(part, max, least, words) {
  const share = (used, labels) => (latest(max, labels) > 0 ? used / latest(max, labels) : 0);
  return where(part, (used, labels) => share(used, labels) > least, (used, labels) => words(share(used, labels)));
}

function faults() {
  const status = (status) => /^5/.test(status) && !["503", "507"].includes(status);
  const words = (more, { method, route, status }) => `${method} ${route}: status ${status}, ${recent(10)(more)}`;
  return growing("hapax_http_requests_total", { status }, 10 * MINUTE, words);
}

function shed() {
  const refused = grew("hapax_http_shed_total", {}, 5 * MINUTE) + grew("hapax_cpu_refused_total", {}, 5 * MINUTE);
  const share = refused / grew("hapax_http_requests_total", {}, 5 * MINUTE);
  return single(share > 0.01, `${percent(share)} of the requests of the last 5 minutes`);
}

function queues() {
  return [
    ...filled("hapax_commit_queue_depth", "hapax_commit_queue_max", 0.8, (share) => `the queue for the disk: ${percent(share)}`),
    ...filled("hapax_cpu_queue_depth", "hapax_cpu_queue_max", 0.8, (share) => `the queue for the processors: ${percent(share)}`),
  ];
}

function slowSigning() {
  const sketches = new Set(all("hapax_sign_duration_seconds_count").map(({ labels }) => labels.sketch));
  return [...sketches].flatMap((sketch) => {
    const time = quantileOver(0.99, "hapax_sign_duration_seconds", { sketch }, 15 * MINUTE);
    return single(time > 0.05, `sketch ${sketch}: ${duration(time)}`);
  });
}

function incomplete() {
  const words = (share) => `${percent(share)} of the verdicts of the last 15 minutes`;
  return ratios("hapax_incomplete_verdicts_total", "hapax_verdicts_total", 15 * MINUTE, 0.001, words);
}

/** The metric stays above 0 until the restart that repairs the index. */
function postingsLost() {
  const words = (lost) => `${count(lost)} times, a posting was not found`;
  return where("hapax_canary_lost_postings_total", (lost) => lost > 0, words);
}

function canary() {
  const expected = ({ collection, similarity }) => latest("hapax_canary_recall_expected_ratio", { collection, similarity });
  const words = (high, { similarity }) => `at most ${percent(high)} found at similarity ${similarity}`;
  return where("hapax_canary_recall_high_ratio", (high, labels) => high < 0.95 && expected(labels) >= 0.99, words);
}

function golden() {
  const words = (recall) => `${percent(recall)} of the duplicates are found`;
  return where("hapax_golden_recall_ratio", (recall) => recall < 0.95, words);
}

function manyCandidates() {
  const words = (mean) => `${short(mean)} candidates on average`;
  return ratios("hapax_check_candidates_sum", "hapax_check_candidates_count", 15 * MINUTE, 50, words);
}

function hotBuckets() {
  const words = (documents) => `one document in a hundred is in a bucket with ${count(documents)} or more`;
  return where("hapax_bucket_documents_p99", (documents) => documents > 10000, words);
}

function stalled() {
  if (seen() < 2 * MINUTE) return [];
  const ended = (labels) => grew("hapax_commit_duration_seconds_count", labels, 2 * MINUTE);
  const words = (depth) => `${count(depth)} writes wait`;
  return where("hapax_commit_queue_depth", (depth, labels) => depth > 0 && ended(labels) === 0, words);
}

function notOpen() {
  const damaged = ({ collection }) => latest("hapax_collection_damaged", { collection }) === 1;
  const opened = ({ collection }) => latest("hapax_collection_boot_progress_ratio", { collection });
  const words = (_, labels) => `opened to ${percent(opened(labels), 0)}`;
  return where("hapax_collection_open", (open, labels) => open === 0 && !damaged(labels), words);
}

function backup() {
  const at = latest("hapax_backup_last_success_timestamp_seconds");
  const age = sampledAt() - at;
  return single(age > 36 * HOUR, at === 0 ? "there is no backup" : `the latest backup is ${duration(age)} old`);
}

function memory() {
  const share = latest("hapax_memory_anonymous_bytes") / latest("hapax_memory_max_bytes");
  return single(share > 0.9, used(share));
}

function expires(name) {
  const left = latest(name) - sampledAt();
  return single(left < 14 * DAY, left > 0 ? `in ${duration(left)}` : `${duration(-left)} ago`);
}

function redisMemory() {
  return filled("hapax_redis_memory_used_bytes", "hapax_redis_memory_max_bytes", 0.85, used);
}

function redisNotReady() {
  return growing("hapax_redis_sent_again_total", { reason: "not_ready" }, 2 * MINUTE, recent(2));
}

function redisPrimaryChanged() {
  const words = (more, { kind }) => `${kind}: ${recent(15)(more)}`;
  return growing("hapax_redis_replication_ids_changed_total", {}, 15 * MINUTE, words);
}

const freeBytes = () => latest("hapax_data_free_bytes");
const free = () => `${bytes(freeBytes())} are free`;

/** For each alert, a function that returns the items for which it holds: a collection or a node, if any, and words. */
export const CONDITIONS = {
  HapaxErrors: faults,
  HapaxShedsLoad: shed,
  HapaxQueueNearlyFull: queues,
  HapaxSlowSigning: slowSigning,
  HapaxIncompleteVerdicts: incomplete,
  HapaxPostingsLost: postingsLost,
  HapaxCanaryRecallLow: canary,
  HapaxGoldenRecallLow: golden,
  HapaxManyCandidates: manyCandidates,
  HapaxHotBuckets: hotBuckets,
  HapaxRefusesWrites: () => where("hapax_data_writable", (writable) => writable === 0, free),
  HapaxCommitFailures: () => growing("hapax_commit_failures_total", {}, 10 * MINUTE, recent(10)),
  HapaxCommitsStall: stalled,
  HapaxDiskSoonFull: () => single(freeBytes() < 5e9, free()),
  HapaxCollectionDamaged: () => where("hapax_collection_damaged", (damaged) => damaged === 1),
  HapaxCollectionNotOpen: notOpen,
  HapaxScrubErrors: () => where("hapax_scrub_errors_total", (errors) => errors > 0, (errors) => `found ${count(errors)} times`),
  HapaxBackupTooOld: backup,
  HapaxExpiryLate: () => where("hapax_expiry_lag_seconds", (lag) => lag > HOUR, (lag) => `${duration(lag)} late`),
  HapaxIndexNearBudget: () => where("hapax_memory_budget_used_ratio", (share) => share > 0.8, used),
  HapaxMemory: memory,
  HapaxKeysFileBad: () => where("hapax_keys_file_bad", (bad) => bad === 1),
  HapaxAuditLinesDropped: () => growing("hapax_audit_dropped_total", {}, 10 * MINUTE, recent(10)),
  HapaxCertificateNotReloaded: () => growing("hapax_tls_reload_errors_total", {}, 10 * MINUTE, recent(10), 60),
  HapaxCertificateExpiresSoon: () => expires("hapax_tls_certificate_expiry_timestamp_seconds"),
  HapaxKeyExpiresSoon: () => expires("hapax_keys_next_expiry_timestamp_seconds"),
  HapaxRedisUnfit: () => where("hapax_redis_unfit", (unfit) => unfit === 1),
  HapaxRedisGroupsLarge: () => where("hapax_redis_postings_per_group", (mean) => mean > 400, (mean) => short(mean)),
  HapaxRedisMemory: redisMemory,
  HapaxRedisNodeNotReady: redisNotReady,
  HapaxRedisShortAcknowledgements: () => growing("hapax_redis_short_acknowledgements_total", {}, 5 * MINUTE, recent(5), 10),
  HapaxRedisPrimaryChanged: redisPrimaryChanged,
  HapaxRedisAborts: () => growing("hapax_redis_conflicts_total", { kind: "abort" }, 15 * MINUTE, recent(15), 15),
};
