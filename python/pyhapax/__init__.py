"""Near-duplicate texts: the signatures of hapax, and an index for one process.

Signer makes signatures, equal to those of a hapax server whose collection has the same spec. Index finds
near-duplicates in memory by the server's rule. tune() chooses bands. pyhapax.compat has MinHash and MinHashLSH with the
interface of datasketch. pyhapax.client has a client for a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhapax._native import VERSION as __version__
from pyhapax._native import Batch, Column, Index, Match, Signature, Signer, Tuning, Verdict, tune

if TYPE_CHECKING:
    from os import PathLike

    from pyhapax.protocols import Texts

__all__ = [
    "Batch",
    "Column",
    "Index",
    "Match",
    "Signature",
    "Signer",
    "Tuning",
    "Verdict",
    "__version__",
    "deduplicate",
    "tune",
]


def deduplicate(
    texts: Texts,
    *,
    threshold: float = 0.8,
    bands: int | None = None,
    rows: int | None = None,
    spec: str | None = None,
    fold: str | None = None,
    marks: str | None = None,
    digits: str | None = None,
    shingle: str | None = None,
    sketch: str | None = None,
    key: str | bytes | None = None,
    key_file: str | PathLike[str] | None = None,
    key_env: str | None = None,
    threads: int | None = None,
) -> list[int | None]:
    """Return for each text the row of the earlier text that it duplicates, or None.

    A text is compared with the texts before it that were kept. To keep one text of each group, keep the rows with None.
    Texts that are empty or null also have None, because they cannot be compared.
    """
    index = Index(
        spec,
        threshold=threshold,
        bands=bands,
        rows=rows,
        fold=fold,
        marks=marks,
        digits=digits,
        shingle=shingle,
        sketch=sketch,
        key=key,
        key_file=key_file,
        key_env=key_env,
    )
    return index.deduplicate(texts, threads=threads)
