"""The requests about collections, jobs, backups and the server: one function for each operation of openapi.yaml.

As in document_requests.py, each parameter has the name that it has in openapi.yaml. `from` is a word of Python and is
called `from_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Literal, TypedDict

from pyhapax.client.request import Request, in_path, of_collection, request, upload
from pyhapax.client.server_answers import (
    Access,
    AddedKey,
    Backup,
    Backups,
    Buckets,
    Cancelled,
    Collection,
    CollectionList,
    DecisionPage,
    Dropped,
    Extract,
    GoldenReport,
    Job,
    JobList,
    KeyList,
    LabelPage,
    Loaded,
    OnDuplicate,
    OnExisting,
    ReportPage,
    Revoked,
    StatisticsPage,
    Status,
    Tuning,
    Verify,
    Version,
)


class BandingInput(TypedDict):
    """Bands and rows."""

    bands: int
    rows: int


class _GoldenPair(TypedDict):
    a: str
    b: str
    duplicate: bool


class GoldenPair(_GoldenPair, total=False):
    """Two texts, and whether they are duplicates."""

    name: str


def list_collections() -> Request[CollectionList]:
    """List the collections that the key may use."""
    return request(CollectionList, "GET", "/v1/collections")


def describe_collection(collection: str = "default") -> Request[Collection]:
    """Describe a collection."""
    return request(Collection, "GET", of_collection(collection))


def create_collection(
    collection: str,
    *,
    index: Literal["similarity", "containment"] | None = None,
    spec: str | None = None,
    fold: Literal["nfkc_casefold", "nfkc", "none"] | None = None,
    marks: Literal["keep", "strip"] | None = None,
    digits: Literal["keep", "zero"] | None = None,
    shingle: str | None = None,
    sketch: str | None = None,
    key: Literal["none", "configured"] | None = None,
    banding: BandingInput | None = None,
    banding_by_hand: bool | None = None,
    threshold: float | None = None,
    verify: Verify | None = None,
    keep: Literal["signature", "shingles", "text"] | None = None,
    extract: Extract | None = None,
    ttl: float | None = None,
    touch: bool | None = None,
) -> Request[Collection]:
    """Create a collection. It may exist already with the same settings. `key` is that of its spec, not an API key."""
    body = {
        "index": index, "spec": spec, "fold": fold, "marks": marks, "digits": digits, "shingle": shingle,
        "sketch": sketch, "key": key, "banding": banding, "banding_by_hand": banding_by_hand, "threshold": threshold,
        "verify": verify, "keep": keep, "extract": extract, "ttl": ttl, "touch": touch,
    }  # fmt: skip
    return request(Collection, "PUT", of_collection(collection), body=body)


def update_collection(
    collection: str,
    *,
    banding: BandingInput | None = None,
    banding_by_hand: bool | None = None,
    threshold: float | None = None,
    verify: Verify | None = None,
    ttl: float | None = None,
    touch: bool | None = None,
) -> Request[Collection]:
    """Change settings of a collection."""
    body = {
        "banding": banding, "banding_by_hand": banding_by_hand, "threshold": threshold, "verify": verify, "ttl": ttl,
        "touch": touch,
    }  # fmt: skip
    return request(Collection, "PATCH", of_collection(collection), body=body)


def drop_collection(collection: str, *, confirm: str) -> Request[Dropped]:
    """Drop a collection with its documents. `confirm` must be its name again."""
    # If sent again after a lost answer, this request would fail, because the collection no longer exists.
    query = {"confirm": confirm}
    return request(Dropped, "DELETE", of_collection(collection), query=query, repeatable=False)


def merge_collection(
    from_: str,
    *,
    collection: str = "default",
    on_duplicate: OnDuplicate | None = None,
    on_existing: OnExisting | None = None,
) -> Request[Job]:
    """Start a job that inserts the documents of the collection `from_` into another collection."""
    body = {"from": from_, "on_duplicate": on_duplicate, "on_existing": on_existing}
    return request(Job, "POST", of_collection(collection, "/merge"), body=body)


def load_collection(file: str | PathLike[str], *, collection: str) -> Request[Loaded]:
    """Make a new collection from a Parquet file of signatures. If the load fails, no collection is made."""
    return upload(Loaded, of_collection(collection, "/load"), file, "application/vnd.apache.parquet")


def list_buckets(*, collection: str = "default", limit: int | None = None) -> Request[Buckets]:
    """List the fullest buckets, which boilerplate fills."""
    return request(Buckets, "GET", of_collection(collection, "/buckets"), query={"limit": limit})


def list_labels(
    *, collection: str = "default", name: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Request[LabelPage]:
    """Count the documents of each label."""
    query = {"name": name, "limit": limit, "cursor": cursor}
    return request(LabelPage, "GET", of_collection(collection, "/labels"), query=query)


def read_statistics(
    *, collection: str = "default", name: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Request[StatisticsPage]:
    """Count the documents that were sent, by outcome."""
    query = {"name": name, "limit": limit, "cursor": cursor}
    return request(StatisticsPage, "GET", of_collection(collection, "/statistics"), query=query)


def evaluate_golden_set(*, collection: str = "default") -> Request[GoldenReport]:
    """Measure the verdicts of a collection on its golden set."""
    return request(GoldenReport, "GET", of_collection(collection, "/golden"))


def set_golden_set(pairs: Iterable[Mapping[str, object]], *, collection: str = "default") -> Request[GoldenReport]:
    """Store a golden set, and measure the verdicts on it. Each pair is a GoldenPair."""
    return request(GoldenReport, "PUT", of_collection(collection, "/golden"), body={"pairs": list(pairs)})


def delete_golden_set(*, collection: str = "default") -> Request[GoldenReport]:
    """Delete the golden set of a collection."""
    return request(GoldenReport, "DELETE", of_collection(collection, "/golden"))


def list_jobs(
    *,
    collection: str | None = None,
    state: Literal["all", "running", "ended"] | None = None,
    limit: int | None = None,
) -> Request[JobList]:
    """List jobs, of one collection or of all."""
    return request(JobList, "GET", "/v1/jobs", query={"collection": collection, "state": state, "limit": limit})


def read_job(job: str) -> Request[Job]:
    """Read how far a job is."""
    return request(Job, "GET", of_job(job))


def stop_job(job: str) -> Request[Job]:
    """Stop a merge."""
    return request(Job, "DELETE", of_job(job))


def read_reports(job: str, *, limit: int | None = None, cursor: str | None = None) -> Request[ReportPage]:
    """Read what a merge did with each document."""
    return request(ReportPage, "GET", of_job(job) + "/reports", query={"limit": limit, "cursor": cursor})


def read_access() -> Request[Access]:
    """Read what the key of this client may do."""
    return request(Access, "GET", "/v1/access")


def list_keys() -> Request[KeyList]:
    """List all keys of the server, without their texts."""
    return request(KeyList, "GET", "/v1/keys")


def add_key(
    name: str,
    scopes: Iterable[str],
    *,
    collections: Iterable[str] | None = None,
    expires: str | None = None,
    scores: Literal["full", "verdict"] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Request[AddedKey]:
    """Add a key. `text` of the answer is the key itself, which is shown only once."""
    body = {
        "name": name, "scopes": list(scopes), "collections": None if collections is None else list(collections),
        "expires": expires, "scores": scores, "limits": limits,
    }  # fmt: skip
    # If sent again after a lost answer, this request would add another key.
    return request(AddedKey, "POST", "/v1/keys", body=body, repeatable=False)


def revoke_key(key: str) -> Request[Revoked]:
    """Revoke the key with this id."""
    # If sent again after a lost answer, this request would fail, because the key is gone.
    return request(Revoked, "DELETE", f"/v1/keys/{in_path(key)}", repeatable=False)


def search_audit_log(
    *,
    collection: str | None = None,
    id: str | None = None,
    matched: str | None = None,
    key: str | None = None,
    verdict: Literal["unique", "near_duplicate", "exact_duplicate", "empty"] | None = None,
    op: Literal["check", "insert", "delete", "merge"] | None = None,
    request_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[DecisionPage]:
    """Return the decisions of the audit log that meet all conditions, the newest first."""
    query = {
        "collection": collection, "id": id, "matched": matched, "key": key, "verdict": verdict, "op": op,
        "request_id": request_id, "since": since, "until": until, "limit": limit, "cursor": cursor,
    }  # fmt: skip
    return request(DecisionPage, "GET", "/v1/audit", query=query)


def start_backup(*, name: str | None = None, keep: int | None = None) -> Request[Backup]:
    """Begin a backup."""
    # If sent again after a lost answer, this request would fail, because a backup is running.
    return request(Backup, "POST", "/v1/backups", body={"name": name, "keep": keep}, repeatable=False)


def read_backups() -> Request[Backups]:
    """Read how far the latest backup is."""
    return request(Backups, "GET", "/v1/backups")


def cancel_backup() -> Request[Cancelled]:
    """Cancel the backup that is running."""
    # If sent again, this request could cancel the next backup.
    return request(Cancelled, "DELETE", "/v1/backups", repeatable=False)


def tune(
    *,
    threshold: float | None = None,
    k: int | None = None,
    bits: int | None = None,
    recall: float | None = None,
    s_hi: float | None = None,
    s_lo: float | None = None,
    bands_wanted: int | None = None,
    banding: BandingInput | None = None,
    documents: float | None = None,
    s_bg: float | None = None,
    candidates_max: float | None = None,
    sketch: Literal["fss", "classic", "oph"] | None = None,
    shingles: int | None = None,
) -> Request[Tuning]:
    """Choose a banding, or take a given one, and say what share of the pairs it finds."""
    body = {
        "threshold": threshold, "k": k, "bits": bits, "recall": recall, "s_hi": s_hi, "s_lo": s_lo,
        "bands_wanted": bands_wanted, "banding": banding, "documents": documents, "s_bg": s_bg,
        "candidates_max": candidates_max, "sketch": sketch, "shingles": shingles,
    }  # fmt: skip
    return request(Tuning, "POST", "/v1/tune", body=body)


def version() -> Request[Version]:
    """Return the version of the server."""
    return request(Version, "GET", "/v1/version")


def livez() -> Request[Status]:
    """Ask whether the server is alive. Needs no key."""
    return request(Status, "GET", "/livez")


def readyz() -> Request[Status]:
    """Ask whether the server is ready. If it is not, Unavailable is raised at once. Needs no key."""
    return replace(request(Status, "GET", "/readyz"), retried=False)


def metrics() -> Request[str]:
    """Return the metrics in the text format of Prometheus."""
    return Request("GET", "/metrics", bytes.decode)


def openapi() -> Request[str]:
    """Return the server's openapi.yaml."""
    return Request("GET", "/openapi.yaml", bytes.decode)


def of_job(job: str) -> str:
    return f"/v1/jobs/{in_path(job)}"
