// What is wrong now, in words. In: the conditions of conditions.js. Out: alerts that hold, with what to do.

import { CONDITIONS } from "./conditions.js";
import { known, value } from "./panels.js";

/** Each alert: its name, whether somebody must act at once (`wakes`), what is wrong, what to do, and a view to look at. */
const ALERTS = [
  {
    alert: "HapaxErrors",
    wakes: true,
    title: "Requests were answered with a fault of the server",
    todo:
      "Read the lines of the log with the level error: each has the request_id that the client got. If a collection is " +
      "damaged or the disk fails, repair that first.",
  },
  {
    alert: "HapaxShedsLoad",
    wakes: true,
    title: "The server refuses requests, because it has too much to do",
    todo: "Slow down the clients that matter least: give limits to their keys.",
  },
  {
    alert: "HapaxQueueNearlyFull",
    title: "A queue is nearly full",
    todo:
      "If writes wait for the disk, stop everything else that writes to this disk. If long work waits for a processor, " +
      "send fewer long texts.",
  },
  {
    alert: "HapaxSlowSigning",
    title: "It takes long to make signatures",
    todo: "One document in a hundred takes this time or more. If clients send whole books, let them send chapters.",
  },
  {
    alert: "HapaxIncompleteVerdicts",
    title: "Some verdicts are incomplete: a limit may have hidden a match",
    todo: "Look at the fullest buckets. If they are not full, raise the limit that lookups reach, and restart the server.",
    link: "buckets",
  },
  {
    alert: "HapaxPostingsLost",
    wakes: true,
    title: "Postings are lost: some documents are missing from a band of the index",
    todo: "Restart the server: it builds the index again, and no document is lost. Then report the fault.",
    link: "quality",
  },
  {
    alert: "HapaxCanaryRecallLow",
    wakes: true,
    title: "Near-duplicates of stored documents are not found",
    todo:
      "If postings are lost, restart the server. Otherwise look at the fullest buckets, or raise limits.bucket_read_max " +
      "or limits.candidates_max.",
    link: "quality",
  },
  {
    alert: "HapaxGoldenRecallLow",
    title: "Duplicates of the golden set are missed",
    todo: "The report on the golden set names each pair, the reason and what to do.",
    link: "quality",
  },
  {
    alert: "HapaxManyCandidates",
    title: "Lookups compare very many documents",
    todo: "Choose a banding with more rows. The request ends when the new banding is built.",
    link: "collection",
  },
  {
    alert: "HapaxHotBuckets",
    title: "Very many documents are in one bucket",
    todo:
      "Look at the documents of the fullest buckets. Filter pages of one template out before they are sent, or take the " +
      "template out of their texts.",
    link: "buckets",
  },
  {
    alert: "HapaxRefusesWrites",
    wakes: true,
    title: "The disk refuses documents: checks work, inserts do not",
    todo:
      "If the disk is full, make room: deletes still work, and the server tries again every 2 seconds. If the disk has " +
      "failed, replace it and restore a backup.",
  },
  {
    alert: "HapaxCommitFailures",
    wakes: true,
    title: "Transactions failed",
    todo: "The log has the error of the disk. Repair the disk, and restart the server.",
  },
  {
    alert: "HapaxCommitsStall",
    wakes: true,
    title: "Writes wait, and no transaction ends",
    todo: "The disk hangs. Repair it; if this needs a restart, no acknowledged write is lost.",
  },
  {
    alert: "HapaxDiskSoonFull",
    title: "The disk has less than 5 GB left",
    todo: "Remove old backups, or enlarge the disk.",
  },
  {
    alert: "HapaxCollectionDamaged",
    wakes: true,
    title: "A collection is damaged or missing, and is not served",
    todo: "Stop the server and run hapax verify --repair, or take the collection from a backup. Until then, backups fail.",
    link: "collection",
  },
  {
    alert: "HapaxCollectionNotOpen",
    wakes: true,
    title: "A collection is not open",
    todo:
      "If it is still being opened, wait. Otherwise the log names the fault; remove it, and the next request opens the " +
      "collection.",
  },
  {
    alert: "HapaxScrubErrors",
    wakes: true,
    title: "Stored rows are damaged",
    todo:
      "Stop the server and run hapax verify --repair: backups fail while a row is damaged. Then make a backup to " +
      "another disk, and replace this disk.",
  },
  {
    alert: "HapaxBackupTooOld",
    wakes: true,
    title: "No backup is less than 36 hours old",
    todo: "Start a backup, and find out why backups stopped.",
    link: "backups",
  },
  {
    alert: "HapaxExpiryLate",
    title: "Documents expire late",
    todo: "Wait while expiry catches up, or use a faster disk.",
  },
  {
    alert: "HapaxIndexNearBudget",
    title: "The index is near its memory budget; at 100 %, inserts are refused",
    todo: "Delete a collection that is no longer used, set a ttl, or raise limits.memory_max_bytes.",
    link: "collections",
  },
  {
    alert: "HapaxMemory",
    wakes: true,
    title: "The process is near the most memory that it may take",
    todo:
      "Raise memory.max_bytes if the machine has more memory. If not, lower limits.memory_max_bytes, and delete " +
      "documents or set a ttl. Then restart the server.",
  },
  {
    alert: "HapaxKeysFileBad",
    wakes: true,
    title: "The keys file is missing or cannot be used",
    todo: "The last good keys stay valid, even if you have revoked one. hapax keys list names the fault: correct the file.",
  },
  {
    alert: "HapaxAuditLinesDropped",
    title: "Lines of the audit log were dropped",
    todo: "Make room on the disk of audit.dir, or put the audit log on a faster disk. Dropped lines cannot be recovered.",
  },
  {
    alert: "HapaxCertificateNotReloaded",
    wakes: true,
    title: "The TLS files cannot be used; the last good certificate is still in use",
    todo: "The log says which file cannot be used, and why. Correct it; no restart is needed.",
  },
  {
    alert: "HapaxCertificateExpiresSoon",
    wakes: true,
    title: "The TLS certificate expires soon",
    todo: "Renew the certificate, and replace its files. No restart is needed.",
  },
  {
    alert: "HapaxKeyExpiresSoon",
    title: "The last valid key with some name expires soon",
    todo: "The log names the key. Add a key with the same name, and give it to its client.",
    link: "keys",
  },
  {
    alert: "HapaxRedisUnfit",
    wakes: true,
    title: "Writes are refused: the Redis Cluster does not meet the requirements",
    todo: "The log names the node, the setting and the remedy.",
  },
  {
    alert: "HapaxRedisGroupsLarge",
    title: "The hashes of a collection in Redis become too large",
    todo:
      "Set hash-max-listpack-entries of every node to four times this number, or fill a collection with a higher " +
      "redis.documents_expected.",
  },
  {
    alert: "HapaxRedisMemory",
    title: "A Redis node is near its maxmemory",
    todo: "Raise maxmemory of the primary and its replicas, or add a primary and move slots to it.",
  },
  {
    alert: "HapaxRedisNodeNotReady",
    wakes: true,
    title: "A Redis node cannot be used",
    todo: "Start the node, or let one of its replicas take over. The log names the reason.",
  },
  {
    alert: "HapaxRedisShortAcknowledgements",
    wakes: true,
    title: "Writes are not acknowledged by enough replicas of Redis",
    todo: "A replica is missing or slow: see INFO replication of the primaries.",
  },
  {
    alert: "HapaxRedisPrimaryChanged",
    title: "A primary of the Redis Cluster was replaced or has restarted",
    todo: "The log names the node. Find out why it changed.",
  },
  {
    alert: "HapaxRedisAborts",
    title: "Documents that other servers have not finished are aborted",
    todo: "Servers were killed, or are very slow: look at the other servers.",
  },
];

const isFault = (status) => /^5/.test(status) && !["503", "507"].includes(status);

/** Counters that should stay at 0, and what they count. They begin at 0 when the server starts. */
const COUNTERS = [
  ["hapax_http_requests_total", { status: isFault }, "requests were answered with a fault of the server"],
  ["hapax_http_shed_total", {}, "requests were refused, because the server had too much to do"],
  ["hapax_incomplete_verdicts_total", {}, "verdicts were incomplete"],
  ["hapax_commit_failures_total", {}, "transactions failed"],
  ["hapax_memory_refused_total", {}, "documents were not stored, because the index had no room for them"],
  ["hapax_memory_short_refused_total", {}, "documents or bodies were refused, because the process had no memory for them"],
  ["hapax_audit_dropped_total", {}, "lines of the audit log were dropped"],
  ["hapax_backups_total", { result: "failed" }, "backups failed"],
];

/** Returns the alerts that hold now, each with the `items` that it is about; the most urgent come first. */
export function problems() {
  const holding = ALERTS.map((one) => ({ ...one, items: CONDITIONS[one.alert]() })).filter(({ items }) => items.length > 0);
  return holding.sort((a, b) => Boolean(b.wakes) - Boolean(a.wakes));
}

/** Returns what went wrong since the server started: series that count it and are above 0, each with words for it. */
export function counted() {
  const above = ([name, filter, words]) => known(name, filter).filter((one) => value(one) > 0).map((one) => ({ one, words }));
  return COUNTERS.flatMap(above);
}
