"""MinHash and MinHashLSH with the interface of datasketch, based on the core's `classic` sketch.

A script that uses these two classes of datasketch changes its import:

    from pyhapax.compat import MinHash, MinHashLSH

Hash values differ from those of datasketch, so sketches of the two libraries cannot be compared. Elements are hashed to
64 bits; datasketch hashes them to 32. MinHashLSH chooses its bands as datasketch does, and so it misses many pairs near
the threshold: for the threshold 0.8 and 128 permutations it chooses 9 bands of 13 rows, which propose 4 of 10 pairs
with the similarity 0.8. Give params, or use pyhapax.Index.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

from pyhapax._native import RankSketch, smallest_areas

__all__ = ["MinHash", "MinHashLSH"]

K = TypeVar("K", bound=Hashable)

_MASK = (1 << 64) - 1
_BANDS_MIN = 2


class MinHash:
    """The minimum ranks of a set, one for each permutation. Two MinHash objects can be merged."""

    __slots__ = ("_sketch", "hashfunc", "num_perm", "seed")

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        hashfunc: Callable[[Any], int] | None = None,
        hashobj: object | None = None,
        hashvalues: Iterable[int] | None = None,
        permutations: object | None = None,
    ) -> None:
        """Make the sketch of an empty set, or a sketch with the hashvalues of another MinHash.

        hashfunc turns an element into an int; by default elements are bytes, hashed by XXH3. hashobj and permutations
        have no counterpart here and must be left out.
        """
        if hashobj is not None or permutations is not None:
            raise ValueError("hashobj and permutations are not supported; leave them out")
        if hashfunc is not None and not callable(hashfunc):
            raise ValueError("hashfunc must be callable")
        self.seed = seed
        self.hashfunc = hashfunc
        if hashvalues is None:
            self._sketch = RankSketch(num_perm, seed)
        else:
            self._sketch = RankSketch.restore(seed, array("Q", hashvalues).tobytes())
        self.num_perm = len(self._sketch)

    def update(self, b: Any) -> None:
        """Add an element."""
        if self.hashfunc is None:
            self._sketch.update(b)
        else:
            self._sketch.update_hashes([self.hashfunc(b) & _MASK])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Add many elements, which is faster."""
        if self.hashfunc is None:
            self._sketch.update_batch(b)
        else:
            self._sketch.update_hashes([self.hashfunc(element) & _MASK for element in b])

    def jaccard(self, other: MinHash) -> float:
        """Return the estimated similarity of both sets, from 0 to 1."""
        return self._sketch.matching(other._sketch) / self.num_perm

    def count(self) -> float:
        """Return the estimated number of distinct elements."""
        return self._sketch.count()

    def merge(self, other: MinHash) -> None:
        """Make this the sketch of both sets together."""
        self._sketch.merge(other._sketch)

    def digest(self) -> array[int]:
        """Return a copy of the hash values: an array of 64-bit integers, which numpy.asarray() takes as it is."""
        return array("Q", self._sketch.ranks())

    @property
    def hashvalues(self) -> array[int]:
        """A copy of the hash values."""
        return self.digest()

    def is_empty(self) -> bool:
        """Return whether the set is empty."""
        return self._sketch.is_empty()

    def clear(self) -> None:
        """Make the set empty."""
        self._sketch.clear()

    def copy(self) -> Self:
        """Return a copy."""
        copy = self._like(self)
        copy._sketch = self._sketch.copy()
        return copy

    @classmethod
    def _like(cls, other: MinHash) -> Self:
        return cls(other.num_perm, other.seed, other.hashfunc)

    @classmethod
    def union(cls, *mhs: MinHash) -> Self:
        """Return the sketch of all sets together."""
        if len(mhs) < 2:
            raise ValueError("union needs at least two MinHash objects")
        union = cls._like(mhs[0])
        for minhash in mhs:
            union.merge(minhash)
        return union

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[Self]:
        """Return the sketches of many sets."""
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Iterator[Self]:
        """Yield the sketches of many sets."""
        for elements in b:
            minhash = cls(**minhash_kwargs)
            minhash.update_batch(elements)
            yield minhash

    def __len__(self) -> int:
        return self.num_perm

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MinHash):
            return NotImplemented
        return self.seed == other.seed and self._sketch.ranks() == other._sketch.ranks()

    __hash__ = None  # type: ignore[assignment] # it can change

    def __getstate__(self) -> tuple[Any, ...]:
        return self.num_perm, self.seed, self.hashfunc, self._sketch

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.num_perm, self.seed, self.hashfunc, self._sketch = state


class MinHashLSH(Generic[K]):
    """An index of keys by their MinHash. A query returns the keys that share a band with a MinHash."""

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Make an empty index.

        params are the numbers of bands and rows. Without params, the numbers are chosen for the threshold as datasketch
        chooses them. The only storage is memory. hashfunc and prepickle have no effect.
        """
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must be between 0.0 and 1.0, not {threshold}")
        if num_perm < _BANDS_MIN:
            raise ValueError("num_perm must be at least 2")
        if params is None and tuple(weights) != (0.5, 0.5):
            raise ValueError(
                "weights other than (0.5, 0.5) are not supported; choose bands and rows, and give them as params"
            )
        if storage_config is not None and storage_config.get("type", "dict") != "dict":
            raise ValueError('the only storage is {"type": "dict"}; a hapax server keeps documents on disk')
        b, r = smallest_areas(threshold, num_perm) if params is None else params
        if b * r > num_perm or b < 1 or r < 1:
            raise ValueError(f"{b} bands of {r} rows need more than the {num_perm} permutations; use smaller params")
        if params is None and b < _BANDS_MIN:
            raise ValueError(f"the threshold {threshold} is too high for {num_perm} permutations: it leaves one band")
        self.threshold = threshold
        self.h = num_perm
        self.b = b
        self.r = r
        self._tables: list[dict[int, set[K]]] = [{} for _ in range(b)]
        self._keys: dict[K, list[int]] = {}

    def insert(self, key: K, minhash: MinHash, check_duplication: bool = True) -> None:
        """Add a key."""
        if check_duplication and key in self._keys:
            raise ValueError("The given key already exists")
        if key in self._keys:
            self.remove(key)
        band_keys = self._band_keys(minhash)
        self._keys[key] = band_keys
        for table, band_key in zip(self._tables, band_keys, strict=True):
            table.setdefault(band_key, set()).add(key)

    def query(self, minhash: MinHash) -> list[K]:
        """Return the keys that share a band with a MinHash. Their similarity is not compared."""
        found: set[K] = set()
        for table, band_key in zip(self._tables, self._band_keys(minhash), strict=True):
            found |= table.get(band_key, set())
        return list(found)

    def remove(self, key: K) -> None:
        """Remove a key."""
        if key not in self._keys:
            raise ValueError("The given key does not exist")
        for table, band_key in zip(self._tables, self._keys.pop(key), strict=True):
            bucket = table[band_key]
            bucket.discard(key)
            if not bucket:
                del table[band_key]

    def merge(self, other: MinHashLSH[K], check_overlap: bool = False) -> None:
        """Add the keys of another index with the same bands and rows."""
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("indexes of different permutations, bands or rows cannot be merged")
        if check_overlap and self._keys.keys() & other._keys.keys():
            raise ValueError("The keys are overlapping, duplicate key exists.")
        for key, band_keys in other._keys.items():
            if key in self._keys:
                self.remove(key)
            self._keys[key] = list(band_keys)
            for table, band_key in zip(self._tables, band_keys, strict=True):
                table.setdefault(band_key, set()).add(key)

    @contextmanager
    def insertion_session(self, buffer_size: int = 50000) -> Iterator[MinHashLSH[K]]:
        """Return the index itself: nothing is buffered."""
        yield self

    def is_empty(self) -> bool:
        """Return whether there are no keys."""
        return not self._keys

    @property
    def keys(self) -> Sequence[K]:
        """The keys."""
        return list(self._keys)

    def get_counts(self) -> list[dict[int, int]]:
        """Return how many keys each bucket has, for each band."""
        return [{band_key: len(bucket) for band_key, bucket in table.items()} for table in self._tables]

    def _band_keys(self, minhash: MinHash) -> list[int]:
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return minhash._sketch.band_keys(self.b, self.r)

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)
