"""The requests about documents: one function for each operation of openapi.yaml that checks, stores, reads or compares.

Each parameter has the name and the meaning that it has in openapi.yaml. `with` is a word of Python and is called
`with_`. A parameter that is None is left out, so that the server's default applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, overload

from pyhapax import Signature as LocalSignature
from pyhapax.client.answers import (
    BatchAnswer,
    ClusterPage,
    Comparison,
    DedupAnswer,
    Deleted,
    DocumentPage,
    DocumentRecord,
    Extracted,
    Found,
    LargestClusters,
    Overlaps,
    Signature,
    Verdict,
)
from pyhapax.client.bulk import Progress
from pyhapax.client.pull import Documents
from pyhapax.client.request import Request, Words, commas, of_collection, of_text, raw, request, to_query
from pyhapax.client.server_answers import Extract, Job, OnDuplicate, OnExisting

Invalid = Literal["refuse", "replace"]
With = Literal["none", "metadata"]
Operation = Literal["check", "insert", "delete"]
SignatureBytes = str | bytes | LocalSignature
"""A signature: its bytes, or the bytes in base64."""


class DocumentInput(TypedDict, total=False):
    """A document of a batch or of bulk: exactly one of text, html, set and signature, and for an insert an id."""

    id: str
    text: str
    html: str
    signature: SignatureBytes
    fingerprint: str
    content_hash: str
    shingles: int
    set: Sequence[str | int]
    metadata: Mapping[str, Any]
    labels: Mapping[str, str]
    date: str
    payload_digest: str


class Comparand(TypedDict, total=False):
    """One side of a comparison: exactly one of text, html, id, set and signature."""

    text: str
    html: str
    id: str
    set: Sequence[str | int]
    signature: SignatureBytes
    fingerprint: str


def check_document(
    text: str | None = None,
    *,
    collection: str = "default",
    id: str | None = None,
    html: str | None = None,
    set: Sequence[str | int] | None = None,
    signature: SignatureBytes | None = None,
    fingerprint: str | None = None,
    content_hash: str | None = None,
    shingles: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    date: str | None = None,
    payload_digest: str | None = None,
    scope: Words | None = None,
    threshold: float | None = None,
    limit: int | None = None,
    with_: With | None = None,
    invalid: Invalid | None = None,
    explain: bool | None = None,
    collections: Words | None = None,
) -> Request[Verdict]:
    """Look a document up. Never writes."""
    body = {
        "id": id, "text": text, "html": html, "set": set, "signature": signature, "fingerprint": fingerprint,
        "content_hash": content_hash, "shingles": shingles, "metadata": metadata, "labels": labels, "date": date,
        "payload_digest": payload_digest,
    }  # fmt: skip
    query = {
        "scope": scope, "threshold": threshold, "limit": limit, "with": with_, "invalid": invalid, "explain": explain,
        "collections": commas(collections),
    }  # fmt: skip
    return of_text(Verdict, of_collection(collection, "/check"), body, query)


def check_html(
    html: str | bytes,
    *,
    collection: str = "default",
    id: str | None = None,
    payload_digest: str | None = None,
    scope: Words | None = None,
    threshold: float | None = None,
    limit: int | None = None,
    with_: With | None = None,
    invalid: Invalid | None = None,
    explain: bool | None = None,
    collections: Words | None = None,
) -> Request[Verdict]:
    """Look a page of HTML up by its main text. Bytes may have any charset that the page declares. Never writes."""
    query = {
        "id": id, "payload_digest": payload_digest, "scope": scope, "threshold": threshold, "limit": limit,
        "with": with_, "invalid": invalid, "explain": explain, "collections": commas(collections),
    }  # fmt: skip
    return raw(Verdict, of_collection(collection, "/check"), html, "text/html", query)


def insert_document(
    id: str,
    text: str | None = None,
    *,
    collection: str = "default",
    html: str | None = None,
    set: Sequence[str | int] | None = None,
    signature: SignatureBytes | None = None,
    fingerprint: str | None = None,
    content_hash: str | None = None,
    shingles: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    date: str | None = None,
    payload_digest: str | None = None,
    label: Words | None = None,
    on_duplicate: OnDuplicate | None = None,
    on_existing: OnExisting | None = None,
    limit: int | None = None,
    with_: With | None = None,
    page_metadata: bool | None = None,
    invalid: Invalid | None = None,
    explain: bool | None = None,
    collections: Words | None = None,
) -> Request[Verdict]:
    """Look a document up and store it unless it is a duplicate, in one step."""
    body = {
        "id": id, "text": text, "html": html, "set": set, "signature": signature, "fingerprint": fingerprint,
        "content_hash": content_hash, "shingles": shingles, "metadata": metadata, "labels": labels, "date": date,
        "payload_digest": payload_digest,
    }  # fmt: skip
    query = {
        "label": label, "on_duplicate": on_duplicate, "on_existing": on_existing, "limit": limit, "with": with_,
        "page_metadata": page_metadata, "invalid": invalid, "explain": explain, "collections": commas(collections),
    }  # fmt: skip
    return request(Verdict, "POST", of_collection(collection, "/documents"), query=query, body=body)


def insert_html(
    id: str,
    html: str | bytes,
    *,
    collection: str = "default",
    date: str | None = None,
    payload_digest: str | None = None,
    label: Words | None = None,
    on_duplicate: OnDuplicate | None = None,
    on_existing: OnExisting | None = None,
    limit: int | None = None,
    with_: With | None = None,
    page_metadata: bool | None = None,
    invalid: Invalid | None = None,
    explain: bool | None = None,
    collections: Words | None = None,
) -> Request[Verdict]:
    """Look a page of HTML up by its main text and store it. Bytes may have any charset that the page declares."""
    query = {
        "id": id, "date": date, "payload_digest": payload_digest, "label": label, "on_duplicate": on_duplicate,
        "on_existing": on_existing, "limit": limit, "with": with_, "page_metadata": page_metadata, "invalid": invalid,
        "explain": explain, "collections": commas(collections),
    }  # fmt: skip
    return raw(Verdict, of_collection(collection, "/documents"), html, "text/html", query)


@overload
def read_documents(
    *, id: str, collection: str = "default", with_: Literal["none", "text"] | None = None
) -> Request[DocumentRecord]: ...
@overload
def read_documents(
    *,
    collection: str = "default",
    label: Words | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[DocumentPage]: ...
def read_documents(
    *,
    id: str | None = None,
    collection: str = "default",
    with_: Literal["none", "text"] | None = None,
    label: Words | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[DocumentRecord] | Request[DocumentPage]:
    """Read a document by its id, or a page of documents. `next_cursor` of a page is the cursor of the next page."""
    path = of_collection(collection, "/documents")
    query = {"id": id, "with": with_, "label": label, "limit": limit, "cursor": cursor}
    if id is None:
        return request(DocumentPage, "GET", path, query=query)
    return request(DocumentRecord, "GET", path, query=query)


@overload
def delete_document(*, id: str, collection: str = "default") -> Request[Deleted]: ...
@overload
def delete_document(*, label: str, collection: str = "default") -> Request[Job]: ...
def delete_document(
    *, id: str | None = None, label: str | None = None, collection: str = "default"
) -> Request[Deleted] | Request[Job]:
    """Delete a document by its id, or start a job that deletes all documents with a label."""
    path, query = of_collection(collection, "/documents"), {"id": id, "label": label}
    if id is None:
        # If this request were sent again, it would delete documents that got the label in between.
        return request(Job, "DELETE", path, query=query, repeatable=False)
    return request(Deleted, "DELETE", path, query=query)


def get_documents(ids: Iterable[str], *, collection: str = "default") -> Request[Found]:
    """Read up to 1,000 documents by their ids."""
    return request(Found, "POST", of_collection(collection, "/documents/get"), body={"ids": list(ids)})


def delete_documents(ids: Iterable[str], *, collection: str = "default") -> Request[Deleted]:
    """Delete up to 1,000 documents by their ids."""
    return request(Deleted, "POST", of_collection(collection, "/documents/delete"), body={"ids": list(ids)})


def read_clusters(
    *, collection: str = "default", id: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Request[ClusterPage]:
    """Read the cluster of a document, or a page of all clusters."""
    query = {"id": id, "limit": limit, "cursor": cursor}
    return request(ClusterPage, "GET", of_collection(collection, "/clusters"), query=query)


def list_largest_clusters(
    *, collection: str = "default", limit: int | None = None, cursor: str | None = None
) -> Request[LargestClusters]:
    """List the clusters of more than one document, the largest first."""
    query = {"limit": limit, "cursor": cursor}
    return request(LargestClusters, "GET", of_collection(collection, "/clusters/largest"), query=query)


def batch(
    op: Operation,
    documents: Iterable[Mapping[str, object]],
    *,
    collection: str = "default",
    scope: Words | None = None,
    label: Words | None = None,
    threshold: float | None = None,
    limit: int | None = None,
    with_: With | None = None,
    on_duplicate: OnDuplicate | None = None,
    on_existing: OnExisting | None = None,
    page_metadata: bool | None = None,
    invalid: Invalid | None = None,
    collections: Words | None = None,
) -> Request[BatchAnswer]:
    """Check, insert or delete up to 1,000 documents. Each is a DocumentInput."""
    query = {
        "scope": scope, "label": label, "threshold": threshold, "limit": limit, "with": with_,
        "on_duplicate": on_duplicate, "on_existing": on_existing, "page_metadata": page_metadata, "invalid": invalid,
        "collections": commas(collections),
    }  # fmt: skip
    body = {"op": op, "documents": list(documents)}
    return request(BatchAnswer, "POST", of_collection(collection, "/batch"), query=query, body=body)


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """A bulk request: its path, its documents, and the function that is called with its progress."""

    path: str
    documents: Documents
    progress: Callable[[Progress], object] | None


def bulk(
    op: Operation,
    documents: Documents,
    *,
    collection: str = "default",
    scope: Words | None = None,
    label: Words | None = None,
    threshold: float | None = None,
    limit: int | None = None,
    with_: With | None = None,
    on_duplicate: OnDuplicate | None = None,
    on_existing: OnExisting | None = None,
    page_metadata: bool | None = None,
    invalid: Invalid | None = None,
    extra: Literal["refuse", "ignore"] | None = None,
    collections: Words | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> BulkRequest:
    """Check, insert or delete any number of documents. Each is a DocumentInput.

    Returns an iterator over the answers, in the order of the documents. The request begins when the first answer is
    requested. `progress` is called with a Progress for each answer.
    """
    query = {
        "op": op, "scope": scope, "label": label, "threshold": threshold, "limit": limit, "with": with_,
        "on_duplicate": on_duplicate, "on_existing": on_existing, "page_metadata": page_metadata, "invalid": invalid,
        "extra": extra, "duplex": True, "collections": commas(collections),
    }  # fmt: skip
    return BulkRequest(of_collection(collection, "/bulk") + to_query(query), documents, progress)


def dedup(
    documents: Iterable[Mapping[str, object]],
    *,
    keep: Literal["first", "longest"] | None = None,
    settings: Mapping[str, object] | None = None,
    invalid: Invalid | None = None,
    extra: Literal["refuse", "ignore"] | None = None,
) -> Request[DedupAnswer]:
    """Return which of up to 1,000 documents are kept, each with its duplicates. Each is a DocumentInput.

    `settings` are those of create_collection. With `extra="ignore"`, the documents may have other fields, as the
    results of a search have. Nothing is stored.
    """
    body = {"documents": list(documents), "keep": keep, "settings": settings}
    return request(DedupAnswer, "POST", "/v1/dedup", query={"invalid": invalid, "extra": extra}, body=body)


def compare(
    a: Mapping[str, object],
    b: Mapping[str, object],
    *,
    collection: str = "default",
    with_: Literal["none", "passages"] | None = None,
) -> Request[Comparison]:
    """Compare two documents. Each is a Comparand. With `passages`, the answer has the passages that both share."""
    body, query = {"a": a, "b": b}, {"with": with_}
    return request(Comparison, "POST", of_collection(collection, "/compare"), query=query, body=body)


def find_overlaps(
    text: str | None = None,
    *,
    collection: str,
    html: str | None = None,
    invalid: Invalid | None = None,
    limit: int | None = None,
    min_containment: float | None = None,
) -> Request[Overlaps]:
    """Find the items of a collection with the index `containment` that a text contains. Stores nothing."""
    body = {"text": text, "html": html}
    query = {"invalid": invalid, "limit": limit, "min_containment": min_containment}
    return of_text(Overlaps, of_collection(collection, "/overlaps"), body, query)


def sign(
    text: str | None = None,
    *,
    collection: str = "default",
    html: str | None = None,
    set: Sequence[str | int] | None = None,
    invalid: Invalid | None = None,
    ranks: bool | None = None,
) -> Request[Signature]:
    """Sign a document as the collection does. Stores nothing."""
    body, query = {"text": text, "html": html, "set": set}, {"invalid": invalid, "ranks": ranks}
    return of_text(Signature, of_collection(collection, "/sign"), body, query)


def extract(
    html: str | bytes, *, collection: str = "default", extract: Extract | None = None, invalid: Invalid | None = None
) -> Request[Extracted]:
    """Return the part of a page's text that is compared."""
    query = {"extract": extract, "invalid": invalid}
    return raw(Extracted, of_collection(collection, "/extract"), html, "text/html", query)
