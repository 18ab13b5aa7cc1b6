"""The answers about collections, jobs and the server, with the fields of openapi.yaml.

As in answers.py, a field that does not apply is None, or an empty list. Knows nothing of HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pyhapax.client.answers import VerdictKind

OnDuplicate = Literal["skip", "link", "store"]
OnExisting = Literal["conflict", "replace", "keep"]
Verify = Literal["estimate", "borderline", "exact"]
Extract = Literal["article", "visible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Banding:
    """Documents are compared if they agree on all rows of at least one band."""

    bands: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a signature."""

    slots: int
    bits: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRecall:
    """The shares of the pairs at the threshold that are compared (candidate), and judged duplicates (verdict)."""

    candidate: float
    verdict: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A collection and its settings."""

    name: str
    index: Literal["similarity", "containment"]
    spec: str
    fingerprint: str
    signature: Shape
    banding: Banding
    banding_by_hand: bool
    threshold: float
    verify: Verify
    keep: Literal["signature", "shingles", "text"]
    extract: Extract
    ttl: float | None = None
    touch: bool
    documents: int
    linked: int | None = None
    created: datetime
    expected_recall: ExpectedRecall


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of a load. `empty` counts the rows without a signature, which were skipped."""

    documents: int
    links: int
    empty: int
    collection: Collection


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedCollection:
    """A collection whose file is damaged."""

    name: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionList:
    """The collections of a server."""

    collections: list[Collection]
    damaged: list[DamagedCollection] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """The name of the collection that was dropped."""

    dropped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A band key and the documents that share it."""

    band: int
    key: str
    documents: int
    sample: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """The fullest buckets."""

    buckets: list[Bucket]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCount:
    """How many documents have a label."""

    name: str
    value: str
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPage:
    """A page of labels."""

    labels: list[LabelCount]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The documents that were sent, counted by outcome."""

    documents: int
    unique: int
    near_duplicates: int
    exact_duplicates: int
    empty: int
    unchanged: int
    bytes: int
    bytes_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStatistics:
    """The sent documents with a label, counted by outcome."""

    name: str
    value: str
    documents: int
    unique: int
    near_duplicates: int
    exact_duplicates: int
    empty: int
    unchanged: int
    bytes: int
    bytes_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPage:
    """The statistics of a collection, and a page of the statistics of its labels."""

    all: Statistics
    labels: list[LabelStatistics]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenStretch:
    """The pairs whose similarity is at least from_ and below to."""

    from_: float
    to: float
    pairs: int
    duplicates: int
    proposed: int
    reported: int
    found: int
    error_mean: float
    error_abs_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenFailure:
    """A pair whose verdict differs from its label."""

    pair: int
    name: str | None = None
    reason: Literal["not_proposed", "below_threshold", "not_a_duplicate"]
    estimate: float
    jaccard: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenReport:
    """How the verdicts on the golden set agree with its labels."""

    collection: str
    banding: Banding
    threshold: float
    verify: Verify
    pairs: int
    duplicates: int
    reported: int
    found: int
    recall: float | None = None
    precision: float | None = None
    by_similarity: list[GoldenStretch]
    failed: list[GoldenFailure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work in the background: a merge, or a deletion by label."""

    job: str
    kind: Literal["delete_label", "merge"]
    collection: str
    state: Literal["running", "done", "aborted"]
    accepted: datetime
    ended: datetime | None = None
    detail: str | None = None
    documents: int
    done: int
    label: str | None = None
    from_: str | None = None
    on_duplicate: OnDuplicate | None = None
    on_existing: OnExisting | None = None
    outcomes: dict[str, int] | None = None
    verdicts: dict[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """The jobs of a server."""

    jobs: list[Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of a merge for one document."""

    seq: int
    id: str
    outcome: Literal["inserted", "linked", "replaced", "unchanged", "updated", "skipped", "removed", "refused"]
    verdict: VerdictKind | None = None
    duplicate_of: str | None = None
    similarity: float | None = None
    representative: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """A page of the reports of a merge."""

    reports: list[Report]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """How much a key may do. An absent limit does not apply."""

    requests_per_second: int | None = None
    bytes_per_second: int | None = None
    documents_per_second: int | None = None
    requests_in_flight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, without its text. Without `collections`, it is for all collections."""

    name: str
    id: str
    scopes: list[str]
    scores: Literal["full", "verdict"]
    collections: list[str] | None = None
    created: datetime | None = None
    expires: datetime | None = None
    limits: KeyLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a key may do. Without `key`, the server requires none."""

    required: bool
    scopes: list[str]
    key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    """All keys of a server."""

    keys: list[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedKey(Key):
    """A new key. `text` is the key itself, which is shown only here."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """How many keys were revoked."""

    revoked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A line of the audit log."""

    time: datetime
    request_id: str
    op: Literal["check", "insert", "delete", "merge"]
    collection: str
    id: str | None = None
    verdict: VerdictKind | None = None
    outcome: str | None = None
    stored: bool | None = None
    duplicate_of: str | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPage:
    """A page of the audit log, the newest decision first."""

    decisions: list[Decision]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupEntry:
    """A collection of a backup."""

    name: str
    documents: int
    last_seq: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup."""

    name: str
    path: str
    state: Literal["running", "done", "cancelled", "failed"]
    progress: float
    started: datetime
    made: datetime | None = None
    collections: list[BackupEntry] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """The latest backup, if there is one."""

    latest: Backup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """How many backups were cancelled."""

    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The shares of the pairs of a similarity that are compared (candidate), and judged duplicates (verdict)."""

    jaccard: float
    candidate: float
    verdict: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesAt:
    """The similarities at which a certain percentage of the pairs become candidates."""

    steepest: float | None = None
    width: float
    percent_0_1: float
    percent_10: float
    percent_90: float
    percent_99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The chosen banding, the targets that it was chosen for, and its curve."""

    banding: Banding
    k: int
    bits: int
    threshold: float
    s_hi: float
    recall_at_s_hi: float
    candidate_rate_at_s_lo: float
    documents: float
    s_bg: float
    background_candidates: float
    index_bytes_per_document: int
    index_bytes: float
    estimate_standard_error: float
    candidates_at: CandidatesAt
    curve: list[CurvePoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The version of a server."""

    name: str
    version: str
    api: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Whether a server is alive, or ready."""

    status: Literal["alive", "ready"]
    damaged: int | None = None
    unopened: int | None = None
    missing: int | None = None
    writable: bool | None = None
