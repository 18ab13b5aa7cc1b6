"""Index.save and Index.load: an index <-> the Parquet that `hapax load` reads (docs/load.md).

pyarrow reads and writes the file in batches, so that only the index and one batch are in memory.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyhapax._native import Index, append_rows, index_rows, restore_index

if TYPE_CHECKING:
    from os import PathLike

# The columns of a file that an index uses, and their types. The first two are required.
_COLUMNS = {
    "id": "string",
    "signature": "fixed-size binary",
    "content_hash": "16 bytes",
    "shingles": "integer",
    "representative": "string",
    "linked": "boolean",
}
_REQUIRED = ("id", "signature")
# Hashes are like random bytes: compression does not make them shorter.
_COMPRESSION = {name: "none" if name in ("signature", "content_hash") else "zstd" for name in _COLUMNS}
# A signature has at most 32 KiB, so a batch has at most 64 MiB of them.
_BATCH_ROWS = 2048
_READ_BYTES = 1 << 20
_U32_MAX = (1 << 32) - 1


@dataclass(frozen=True)
class _Rows:
    """A table of the native module, for pyarrow."""

    capsules: tuple[object, object]

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self.capsules


@dataclass(frozen=True)
class _Settings:
    threshold: float
    bands: int
    rows: int
    banding_by_hand: bool


def save(index: Index, path: str | PathLike[str]) -> None:
    """Write an index to a file, which gets its name when it is complete."""
    pa, pq = _pyarrow("save")
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.pyhapax")
    try:
        with open(temporary, "xb") as out:
            _write(index, out, pa, pq)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write(index: Index, out: IO[bytes], pa: Any, pq: Any) -> None:
    rows = pa.record_batch(_Rows(index_rows(index, 0)))
    options = {"compression": _COMPRESSION, "use_dictionary": ["representative"], "write_statistics": False}
    # Without checksums, a damaged signature would not be noticed. It would be similar to no other signature.
    with pq.ParquetWriter(out, rows.schema, write_page_checksum=True, **options) as writer:
        written = 0
        while rows.num_rows:
            writer.write_batch(rows)
            written += rows.num_rows
            rows = pa.record_batch(_Rows(index_rows(index, written)))


def load(
    path: str | PathLike[str],
    threshold: float | None,
    bands: int | None,
    rows: int | None,
    key: str | bytes | None,
    key_file: str | PathLike[str] | None,
    key_env: str | None,
) -> Index:
    """Return the index of a file."""
    pa, pq = _pyarrow("load")
    name = os.fsdecode(path)
    with _open(name, pa, pq) as file:
        metadata = {**(file.schema_arrow.metadata or {}), **(file.metadata.metadata or {})}
        chosen = _choose(threshold, bands, rows, _settings(metadata, name))
        spec, fingerprint = (_required(metadata, entry, name) for entry in ("hapax.spec", "hapax.fingerprint"))
        index = restore_index(name, spec, fingerprint, *chosen, key, key_file, key_env)
        columns = _columns(file.schema_arrow, name)
        first = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            append_rows(index, _plain(batch, pa), first, name)
            first += batch.num_rows
    return index


def _pyarrow(method: str) -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"Index.{method} needs pyarrow: pip install 'pyhapax[arrow]'") from error


@contextmanager
def _open(name: str, pa: Any, pq: Any) -> Iterator[Any]:
    """Open a Parquet file. If pyarrow cannot read it, raise a ValueError that names the file."""
    try:
        with pa.OSFile(name) as source:
            # Without a buffer size, pyarrow reads whole columns of a row group at once.
            options = {"buffer_size": _READ_BYTES, "pre_buffer": False, "page_checksum_verification": True}
            yield pq.ParquetFile(source, **options)
    except (pa.ArrowException, OSError) as error:
        # The system's own errors have a number, such as that of a missing file.
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{name}: it is not Parquet, or it is cut or damaged: {error}") from error


def _required(metadata: Mapping[bytes, bytes], entry: str, name: str) -> str:
    value = metadata.get(entry.encode())
    if value is None:
        hint = "write it with pyhapax or `hapax export --parquet`, see docs/load.md"
        raise ValueError(f"{name}: its metadata has no `{entry}`; {hint}")
    return value.decode(errors="replace")


def _settings(metadata: Mapping[bytes, bytes], name: str) -> _Settings | None:
    text = metadata.get(b"hapax.settings")
    if text is None:
        return None
    try:
        found = json.loads(text)
        bands, rows = int(found["bands"]), int(found["rows"])
        if not (0 <= bands <= _U32_MAX and 0 <= rows <= _U32_MAX):
            raise ValueError(f"there cannot be {bands} bands of {rows} rows")
        return _Settings(float(found["threshold"]), bands, rows, bool(found.get("banding_by_hand")))
    except KeyError as error:
        raise ValueError(f"{name}: `hapax.settings`: missing field {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{name}: `hapax.settings`: {error}") from error


def _choose(
    threshold: float | None, bands: int | None, rows: int | None, stored: _Settings | None
) -> tuple[float, int | None, int | None, bool]:
    """Return threshold, bands, rows, and whether the latter two were given by hand. Arguments override the file."""
    if threshold is None:
        threshold = 0.8 if stored is None else stored.threshold
    if bands is not None or rows is not None:
        return threshold, bands, rows, True
    # As in a server, automatic bands follow the threshold.
    if stored is not None and (stored.banding_by_hand or threshold == stored.threshold):
        return threshold, stored.bands, stored.rows, stored.banding_by_hand
    return threshold, None, None, False


def _columns(schema: Any, name: str) -> list[str]:
    """Return the columns to read, after a check of their types."""
    found = []
    for column, kind in _COLUMNS.items():
        count = len(schema.get_all_field_indices(column))
        if count > 1:
            raise ValueError(f"{name}, column `{column}`: there are two columns of this name")
        if count == 0 and column in _REQUIRED:
            raise ValueError(f"{name}, column `{column}`: it is missing")
        if count == 1:
            found.append(column)
            has = schema.field(column).type
            if not _fits(kind, has):
                raise ValueError(f"{name}, column `{column}`: it must have the type {kind}, but has {has}")
    return found


def _fits(kind: str, has: Any) -> bool:
    if hasattr(has, "value_type") and str(has).startswith("dictionary"):
        has = has.value_type
    # A type is written as large_string, string_view or fixed_size_binary[256], for example.
    text = str(has).split("[", maxsplit=1)[0]
    if kind == "string":
        return text in ("string", "large_string", "string_view")
    if kind == "integer":
        return text.removeprefix("u") in ("int8", "int16", "int32", "int64")
    if kind == "boolean":
        return text == "bool"
    return text in ("binary", "large_binary", "binary_view", "fixed_size_binary")


def _plain(batch: Any, pa: Any) -> Any:
    """Return the columns with the types that the native module knows. Strings become bytes, which it checks itself."""
    plain = []
    for column, kind in _COLUMNS.items():
        at = batch.schema.get_field_index(column)
        wanted = {"integer": pa.int64(), "boolean": pa.bool_()}.get(kind, pa.binary())
        if at < 0:
            plain.append(pa.nulls(batch.num_rows, wanted))
            continue
        values = batch.column(at)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        # Some uint64 values do not fit into an int64, and the native module reads uint64.
        plain.append(values if pa.types.is_uint64(values.type) else values.cast(wanted))
    return pa.RecordBatch.from_arrays(plain, names=list(_COLUMNS))
