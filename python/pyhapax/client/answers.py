"""The answers about documents, with the fields of openapi.yaml.

A field that does not apply is None, or an empty list. Fields that a newer server adds are ignored. Knows nothing of
HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

VerdictKind = Literal["unique", "near_duplicate", "exact_duplicate", "empty"]
Outcome = Literal["checked", "inserted", "replaced", "unchanged", "updated", "linked", "skipped", "removed"]
Method = Literal["estimate", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """A field or parameter at fault."""

    field: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionProgress:
    """How far the opening of a collection is."""

    name: str
    progress: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as the server describes it (RFC 9457)."""

    type: str
    code: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    errors: list[FieldError] = field(default_factory=list)
    progress: float | None = None
    collections: list[CollectionProgress] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A stored document that is similar enough."""

    collection: str | None = None
    id: str
    similarity: float
    low: float
    high: float
    method: Method
    containment_in_match: float | None = None
    containment_of_match: float | None = None
    first_seen: datetime
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """How similar the new content is to the content that was stored under the id."""

    similarity: float
    low: float
    high: float
    method: Method
    first_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """How much was left out because the answer would have been too long."""

    matches: int
    metadata: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The title, address and language of a page."""

    title: str | None = None
    canonical_url: str | None = None
    language: str | None = None
    extracted: Literal["article", "visible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisit:
    """The fields that a WARC revisit record needs to refer to an earlier capture of the same payload."""

    profile: str
    refers_to_uri: str
    refers_to_date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSize:
    """How many documents are in the bucket of a band."""

    band: int
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """How much a lookup did not read, by the limit that it reached."""

    bucket: int
    candidates: int
    exact_reads: int
    doubt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowThreshold:
    """A document that was compared and did not match."""

    id: str
    similarity: float
    low: float
    high: float
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupExplanation:
    """The buckets and documents that the lookup read."""

    bands: int
    rows: int
    bands_hit: int
    buckets: list[BucketSize]
    found: int
    unread: Unread
    below_threshold: list[BelowThreshold]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The microseconds of each stage."""

    extract: float | None = None
    sign: float | None = None
    probe: float | None = None
    verify: float | None = None
    decide: float | None = None
    elsewhere: float | None = None
    commit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a verdict came about."""

    stages_us: Stages
    lookup: LookupExplanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionVerdict:
    """The verdict of one of several collections, or the reason why the collection could not be searched."""

    collection: str
    verdict: VerdictKind | None = None
    threshold: float | None = None
    candidates: int | None = None
    complete: bool
    unread: int | None = None
    expected_recall: float | None = None
    lookup: LookupExplanation | None = None
    error: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to a check or an insert."""

    verdict: VerdictKind
    outcome: Outcome
    stored: bool
    collection: str
    id: str | None = None
    duplicate_of: str | None = None
    similarity: float | None = None
    representative: str | None = None
    threshold: float | None = None
    matches: list[Match] = field(default_factory=list)
    omitted: Omitted | None = None
    candidates: int | None = None
    complete: bool
    unread: int | None = None
    shingles: int | None = None
    previous: Previous | None = None
    expected_recall: float | None = None
    warning: str | None = None
    explanation: Explanation | None = None
    page: Page | None = None
    revisit: Revisit | None = None
    elsewhere: list[Match] = field(default_factory=list)
    collections: list[CollectionVerdict] = field(default_factory=list)

    @property
    def is_duplicate(self) -> bool:
        """Whether the document is a near or an exact duplicate."""
        return self.verdict in ("near_duplicate", "exact_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedDocument:
    """The answer to a deletion in a batch or in bulk: 1 if the id was stored, otherwise 0."""

    id: str
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDocument:
    """Why a document of a batch or of bulk was refused. The other documents are not affected."""

    error: Problem
    id: str | None = None


DocumentAnswer = Verdict | DeletedDocument | FailedDocument
"""The answer about one document of a batch or of bulk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The number of documents by result."""

    documents: int
    errors: int
    unique: int
    near_duplicate: int
    exact_duplicate: int
    empty: int
    stored: int
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """The answers of a batch, in the order of its documents."""

    summary: Summary
    results: list[DocumentAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupSummary:
    """How many documents of a list have which result."""

    documents: int
    kept: int
    near: int
    exact: int
    empty: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupListed:
    """A document of a list, by its place. The first document has the place 0."""

    index: int
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRepeat:
    """A document of a list that is not kept, and its similarity to the kept one."""

    index: int
    id: str | None = None
    verdict: Literal["near_duplicate", "exact_duplicate"]
    similarity: float
    low: float
    high: float
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupKept:
    """A document of a list that is kept, with its duplicates."""

    index: int
    id: str | None = None
    complete: bool
    duplicates: list[DedupRepeat]


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupFailed:
    """A document of a list that cannot be used."""

    index: int
    id: str | None = None
    error: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupAnswer:
    """The documents of a list that are kept, and the others."""

    summary: DedupSummary
    kept: list[DedupKept]
    empty: list[DedupListed]
    failed: list[DedupFailed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A stored document."""

    id: str
    seq: int
    metadata: dict[str, Any] | None = None
    labels: dict[str, str] | None = None
    date: str | None = None
    payload_digest: str | None = None
    first_seen: datetime
    id_first_seen: datetime
    last_seen: datetime | None = None
    expires: datetime | None = None
    shingles: int | None = None
    verdict: VerdictKind
    duplicate_of: str | None = None
    representative: str | None = None
    linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord(Document):
    """A stored document, with its text if the text was requested."""

    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """A page of documents, in the order in which they were stored."""

    documents: list[Document]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The documents that were found, and the ids that are not stored."""

    documents: list[Document]
    missing: list[str]
    omitted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """How many documents were deleted."""

    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """A document of a cluster."""

    id: str
    seq: int
    representative: str | None = None
    similarity: float | None = None
    low: float | None = None
    high: float | None = None
    method: Method | None = None
    below_threshold: bool | None = None
    first_seen: datetime
    linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPage:
    """A page of clusters of duplicates."""

    representative: str | None = None
    documents: int | None = None
    members: list[ClusterMember]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The Jaccard similarity with its 95 % interval."""

    similarity: float
    low: float
    high: float
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Computed from the distinct shingles of both documents."""

    jaccard: float
    containment_a_in_b: float
    containment_b_in_a: float
    intersection: int
    shingles_a: int
    shingles_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesOfSide:
    """A text, and the passages that the other text has, too: the first byte of each and the byte after it."""

    text: str
    shared: list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The texts of two documents, with the passages that both have."""

    a: PassagesOfSide
    b: PassagesOfSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How similar two documents are."""

    estimate: Estimate
    exact: Exact | None = None
    passages: Passages | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSize:
    """How many documents a cluster has."""

    representative: str
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestClusters:
    """A page of the clusters of more than one document, the largest first."""

    clusters: list[ClusterSize]
    total: int
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlappingItem:
    """A stored item of which a text has n-grams. `spans` are the first byte and the byte after the last one."""

    id: str
    containment: float
    shared: int
    ngrams: int
    spans: list[list[int]]
    spans_omitted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """The items that a text contains, those with the highest containment first."""

    overlaps: list[OverlappingItem]
    found: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature in base64, and the spec that it was made with."""

    empty: bool
    signature: str | None = None
    ranks: str | None = None
    empty_slots: int | None = None
    shingles: int | None = None
    content_hash: str | None = None
    spec: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The part of a page's text that is compared."""

    text: str
    title: str | None = None
    canonical_url: str | None = None
    language: str | None = None
    extracted: Literal["article", "visible"]
    extractor: int
