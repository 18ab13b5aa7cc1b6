#!/usr/bin/env python3
"""A second implementation of the signature in docs/spec.md. It was written from that page alone, and uses only the
standard library.

    python3 hapax_spec.py vectors.json

This command computes every stage of every case of the file, and the answers that the page itself shows. It prints each
difference, and then the numbers of comparisons and of differences. The exit status is 1 if there is a difference.
Names and order follow the page. The program is meant to be read next to the page, and is not fast.
"""

import json
import re
import struct
import sys
import unicodedata
from dataclasses import dataclass
from math import sqrt
from typing import Iterable, Iterator, Optional

M = 2**64 - 1
EMPTY = 2**64 - 1


# ---------------------------------------------------------------------------------------------------------------------
# The spec string

FIELDS = re.compile(
    r"hapax1;unicode=17;fold=(?P<fold>nfkc_casefold|nfkc|none);marks=(?P<marks>keep|strip);digits=(?P<digits>keep|zero)"
    r";shingle=(?P<unit>word|char)(?P<width>[1-9][0-9]?);sketch=(?:(?P<sketch>fss|classic|oph)"
    r"(?P<slots>[1-9][0-9]{1,3})x(?P<bits>8|16|32)|none);key=(?P<key>none|[0-9a-f]{16})"
)
EXTERNAL = re.compile(
    r"hapax1;external:(?P<name>[a-z0-9][a-z0-9_-]{0,63}):(?P<slots>[1-9][0-9]{1,3})x(?P<bits>8|16|32|64)"
)


@dataclass(frozen=True)
class Spec:
    """The parts of a spec string, and the secret, which is not part of the string. For `key=none`, it is None."""

    text: str
    fold: str
    marks: str
    digits: str
    unit: str  # "word" or "char"
    width: int  # W
    sketch: str  # "fss", "classic", "oph", "none", or "external" (then `fold` to `width` have no meaning)
    slots: int  # K
    bits: int  # B
    secret: Optional[bytes]


def parse_spec(text: str, secret: Optional[bytes] = None) -> Spec:
    """Parses a spec string. If the string names a key, `secret` must be its secret. Otherwise `secret` is ignored."""
    external = EXTERNAL.fullmatch(text)
    if external:
        slots, bits = int(external["slots"]), int(external["bits"])
        if not 16 <= slots <= 4096 or slots * bits % 64 != 0:
            raise ValueError(f"size: {text}")
        return Spec(text, "", "", "", "", 0, "external", slots, bits, None)
    found = FIELDS.fullmatch(text)
    if not found:
        raise ValueError(f"not a spec: {text}")
    width, sketch = int(found["width"]), found["sketch"] or "none"
    slots, bits = (16, 8) if sketch == "none" else (int(found["slots"]), int(found["bits"]))
    if width > 32 or (sketch == "none" and found["unit"] != "word"):
        raise ValueError(f"size: {text}")
    if sketch != "none" and slots not in (64, 128, 256, 512, 1024):
        raise ValueError(f"size: {text}")
    if found["key"] == "none":
        secret = None
    elif secret is None or hex64(key_fingerprint(secret)) != found["key"]:
        raise ValueError(f"not the secret of this spec: {text}")
    return Spec(
        text, found["fold"], found["marks"], found["digits"], found["unit"], width, sketch, slots, bits,
        secret,
    )


def fingerprint(spec: Spec) -> int:
    """The 128 bits that identify a spec."""
    return xxh3_128(spec.text.encode("ascii"))


def key_fingerprint(secret: bytes) -> int:
    """The fingerprint of the secret, as it is in a spec."""
    return siphash(2, 4, secret, b"\xffhapax key fingerprint 1")


# ---------------------------------------------------------------------------------------------------------------------
# Two generators


def fmix64(h: int) -> int:
    """The 64-bit finalizer of MurmurHash3."""
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & M
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & M
    return h ^ h >> 33


def splitmix64(seed: int) -> Iterator[int]:
    """An endless sequence of 64-bit numbers."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & M
        z = seed
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M
        yield z ^ z >> 31


def named(letters: bytes) -> int:
    """The seed that eight letters represent."""
    return int.from_bytes(letters, "big")


CHAR = next(splitmix64(named(b"hapax/ch")))
BASE = next(splitmix64(named(b"shingle/"))) & ~7 | 3
LENGTH = next(splitmix64(named(b"shin/len")))


# ---------------------------------------------------------------------------------------------------------------------
# 1. Canonical text

WHITE_SPACE = frozenset(
    [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
)


def ranges(listed: str) -> frozenset[int]:
    """The code points of a list such as "0E01-0E30 0E84", both ends included."""
    points: set[int] = set()
    for item in listed.split():
        first, _, last = item.partition("-")
        points.update(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(points)


# Default_Ignorable_Code_Point, which `unicodedata` does not have (DerivedCoreProperties.txt). Some of these code points
# are unassigned: they are reserved for future ignorable characters.
DEFAULT_IGNORABLE = ranges(
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8 "
    "1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def text_of_bytes(data: bytes, replace: bool = False) -> str:
    """Decodes input that is bytes. Bytes that are not UTF-8 are replaced or refused, as `replace` says."""
    return data.decode("utf-8", errors="replace" if replace else "strict")


def nfkc_casefold(c: str) -> str:
    """The NFKC_Casefold mapping of one scalar value."""
    before, after = None, c
    while after != before:
        before = after
        after = unicodedata.normalize("NFKC", after).casefold()
        after = "".join(d for d in after if ord(d) not in DEFAULT_IGNORABLE)
        after = unicodedata.normalize("NFKC", after)
    return after


def mapping(c: str, fold: str) -> str:
    """Step 2: the mapping of one scalar value."""
    if fold == "nfkc_casefold":
        return unicodedata.normalize("NFD", nfkc_casefold(c))
    if fold == "nfkc":
        return unicodedata.normalize("NFKD", c)
    return c


def compose(text: str) -> str:
    """Step 5: NFC of each block. No block has a run of more than 30 non-starters."""
    blocks: list[list[str]] = [[]]
    run = 0
    for c in text:
        starter = unicodedata.combining(c) == 0
        if not starter and run == 30:
            blocks.append([])
            run = 0
        run = 0 if starter else run + 1
        blocks[-1].append(c)
    return "".join(unicodedata.normalize("NFC", "".join(block)) for block in blocks)


def one_space(text: str) -> str:
    """Step 6: each run of White_Space becomes one space, and is removed at the ends. (`str.split()` would also split
    at U+001C to U+001F, which are not White_Space.)"""
    spaced = "".join(" " if ord(c) in WHITE_SPACE else c for c in text)
    return " ".join(word for word in spaced.split(" ") if word)


def canonical(text: str, spec: Spec) -> str:
    """Steps 1 to 6."""
    if text[:1] == "\ufeff":
        text = text[1:]
    mapped = "".join(mapping(c, spec.fold) for c in text)
    if spec.marks == "strip":
        mapped = "".join(c for c in mapped if not is_mark(c))
    if spec.digits == "zero":
        mapped = "".join("0" if unicodedata.category(c) == "Nd" else c for c in mapped)
    if spec.fold != "none":
        mapped = compose(mapped)
    return one_space(mapped)


# ---------------------------------------------------------------------------------------------------------------------
# 2. Tokens

UNSPACED = ranges(
    """
0E01-0E30 0E32-0E33 0E40-0E46 0E50-0E59 0E81-0E82 0E84 0E86-0E8A 0E8C-0EA3 0EA5 0EA7-0EB0 0EB2-0EB3 0EBD 0EC0-0EC4
0EC6 0ED0-0ED9 0EDC-0EDF 1000-102A 103F-1049 1050-1055 105A-105D 1061 1065-1066 106E-1070 1075-1081 108E 1090-1099
1780-17B3 17D7 17DC 17E0-17E9 17F0-17F9 3005-3007 3021-3029 3031-3035 3038-303C 3041-3096 309D-309F 30A1-30FA
30FC-30FF 3192-3195 31F0-31FF 3220-3229 3280-3289 3400-4DBF 4E00-9FFF A9E0-A9E4 A9E6-A9FE AA60-AA76 AA7A AA7E-AA7F
F900-FA6D FA70-FAD9 FF66-FF9F 116D0-116E3 16FE3 16FF2-16FF6 1AFF0-1AFF3 1AFF5-1AFFB 1AFFD-1AFFE 1B000-1B122 1B132
1B150-1B152 1B155 1B164-1B167 1D360-1D371 20000-2A6DF 2A700-2B81D 2B820-2CEAD 2CEB0-2EBE0 2EBF0-2EE5D 2F800-2FA1D
30000-3134A 31350-33479
"""
)


def is_letter(c: str) -> bool:
    return unicodedata.category(c) in ("Lu", "Ll", "Lt", "Lm", "Lo")


def is_number(c: str) -> bool:
    return unicodedata.category(c) in ("Nd", "Nl", "No")


def is_mark(c: str) -> bool:
    return unicodedata.category(c) in ("Mn", "Mc", "Me")


def unspaced(c: str) -> bool:
    """Whether a letter or number is a token of its own."""
    return ord(c) in UNSPACED


def words(text: str) -> list[str]:
    """The tokens of a canonical text with `shingle=wordW`."""
    found: list[str] = []
    token: Optional[str] = None
    alone = False
    for c in text:
        begins = is_letter(c) or is_number(c)
        goes_on = is_mark(c) or (begins and not unspaced(c) and not alone)
        if token is not None and goes_on:
            if len(token.encode()) + len(c.encode()) > 256:
                found.append(token)
                token = c
            else:
                token += c
            continue
        if token is not None:
            found.append(token)
            token = None
        if begins:
            token, alone = c, unspaced(c)
    return found + ([token] if token is not None else [])


def tokens(text: str, spec: Spec) -> list[str]:
    """The tokens of a canonical text."""
    return list(text) if spec.unit == "char" else words(text)


# ---------------------------------------------------------------------------------------------------------------------
# 3. Token hashes


def token_hash(token: str, spec: Spec) -> int:
    if spec.unit == "word":
        data = token.encode()
        return xxh3_64(data) if spec.secret is None else siphash(1, 3, spec.secret, data)
    c = ord(token)
    return fmix64(c ^ CHAR) if spec.secret is None else siphash(1, 3, spec.secret, struct.pack("<I", c))


# ---------------------------------------------------------------------------------------------------------------------
# 4. Shingles


def shingle(window: list[int]) -> int:
    """The hash of a window of token hashes."""
    total = 0
    for h in window:
        total = (total * BASE + h) & M
    return fmix64((total + LENGTH * len(window)) & M)


def shingles(hashes: list[int], width: int) -> list[int]:
    """One hash for each window, in the order of the text."""
    if 0 < len(hashes) < width:
        return [shingle(hashes)]
    return [shingle(hashes[i : i + width]) for i in range(len(hashes) - width + 1)]


# ---------------------------------------------------------------------------------------------------------------------
# 5. Ranks: the sketch


def fss(X: set[int], k: int) -> list[int]:
    """Fast similarity sketching."""
    g = splitmix64(named(b"hapaxfss"))
    C = [next(g) for _ in range(16)]
    D = next(g)
    A = [next(g) | 1 for _ in range(k)]
    rank = [EMPTY] * k
    for t in range(16):
        for x in X:
            v = fmix64(x ^ C[t])
            i = v % k
            rank[i] = min(rank[i], t << 56 | v >> 8)
        if EMPTY not in rank:
            return rank
    last = [fmix64(x ^ D) for x in X]
    for i in range(k):
        if rank[i] == EMPTY:
            rank[i] = min(16 << 56 | (d * A[i] & M) >> 8 for d in last)
    return rank


def classic(X: set[int], k: int) -> list[int]:
    """The classic MinHash: k minima."""
    g = splitmix64(named(b"classic/"))
    E = next(g)
    ab = [(next(g) | 1, next(g)) for _ in range(k)]
    mixed = [fmix64(x ^ E) for x in X]
    return [min((v * a + b & M) >> 8 for v in mixed) for a, b in ab]


PLACE, DRAW = (h for h, _ in zip(splitmix64(named(b"oneperm/")), range(2)))


def oph(X: set[int], k: int) -> list[int]:
    """One permutation hashing. Empty slots stay EMPTY."""
    rank = [EMPTY] * k
    for x in X:
        v = fmix64(x ^ PLACE)
        i = v % k
        rank[i] = min(rank[i], v >> 8)
    return rank


def densify(rank: list[int], k: int) -> list[int]:
    """The rank of each empty slot is made from the rank of a slot that is not empty."""
    dense = list(rank)
    for i in range(k):
        if rank[i] == EMPTY:
            draw = 0
            while rank[fmix64(DRAW ^ (i << 32 | draw)) % k] == EMPTY:
                draw += 1
            donor = fmix64(DRAW ^ (i << 32 | draw)) % k
            dense[i] = rank[donor] ^ (i + 1) << 48
    return dense


def ranks(X: set[int], spec: Spec) -> list[int]:
    """The ranks of a set that is not empty."""
    if spec.sketch == "none":
        return []
    return {"fss": fss, "classic": classic, "oph": oph}[spec.sketch](X, spec.slots)


# ---------------------------------------------------------------------------------------------------------------------
# 6. The packed signature


def signature(rank: list[int], content: int, spec: Spec) -> bytes:
    """The low B bits of each slot. Without a sketch: the content hash."""
    if spec.sketch == "none":
        return content.to_bytes(16, "big")
    if spec.sketch == "oph":
        rank = densify(rank, spec.slots)
    low = 2**spec.bits - 1
    return b"".join((fmix64(r) & low).to_bytes(spec.bits // 8, "little") for r in rank)


# ---------------------------------------------------------------------------------------------------------------------
# 7. Content hash


def content_hash(data: bytes, spec: Spec) -> int:
    """The 128-bit hash of a canonical text as UTF-8, or of the bytes of a set (see `set_bytes`)."""
    return xxh3_128(data) if spec.secret is None else siphash(1, 3, spec.secret, data, wide=True)


# ---------------------------------------------------------------------------------------------------------------------
# 8. Band keys


def band_keys(packed: bytes, spec: Spec, bands: int, rows: int) -> list[int]:
    """One key for each band."""
    size = rows * spec.bits // 8
    return [xxh3_64(packed[j * size : (j + 1) * size], seed=j) for j in range(bands)]


# ---------------------------------------------------------------------------------------------------------------------
# Sets


def string_hash(element: str, spec: Spec) -> int:
    tag, data = b"\xffset/str", element.encode()
    return xxh3_64(data, named(tag)) if spec.secret is None else siphash(1, 3, spec.secret, tag + data)


def integer_hash(element: int, spec: Spec) -> int:
    tag, data = b"\xffset/int", element.to_bytes(16, "little", signed=True)
    return xxh3_64(data, named(tag)) if spec.secret is None else siphash(1, 3, spec.secret, tag + data)


def set_bytes(X: set[int]) -> bytes:
    """The bytes from which the content hash of a set is computed."""
    return b"\xffset/all" + le64(sorted(X))


# ---------------------------------------------------------------------------------------------------------------------
# Shingle sets and their bytes


def kept(X: Iterable[int]) -> list[int]:
    """The 48 bits that a collection stores of each shingle."""
    return sorted({x >> 16 for x in X})


def rice(hashes: list[int]) -> bytes:
    """The bytes of a set of 48-bit hashes. The hashes must be in ascending order."""
    low = (2**48 // len(hashes)).bit_length() - 1 if hashes else 48
    bits: list[int] = []
    expected = 0
    for h in hashes:
        gap = h - expected
        expected = h + 1
        bits += [1] * (gap >> low) + [0] + [gap >> i & 1 for i in range(low)]
    bits += [0] * (-len(bits) % 8)
    return bytes([low]) + bytes(sum(bits[at + i] << i for i in range(8)) for at in range(0, len(bits), 8))


# ---------------------------------------------------------------------------------------------------------------------
# Similarity and its interval


def similarity(m: int, k: int, w: int) -> float:
    """The estimate if m of k slots are equal. A slot has w bits."""
    return clamp((m * 2**w - k) / (k * (2**w - 1)))


def least_equal_slots(T: int, k: int, w: int) -> int:
    """m_min for the threshold T, which is in units of 10^-9."""
    return -(-(T * k * (2**w - 1) + k * 10**9) // (2**w * 10**9)) if T else 0


def interval(m: int, k: int, w: int, sketch: str) -> tuple[float, float]:
    """The ends of the interval: `low` and `high`."""
    Z = 1.959963984540054
    f = 1.35**2 if sketch == "oph" else 1.0
    n, x = k / f, m / f
    p = x / n

    def half(sign: int) -> float:
        return Z * sqrt(max(0, Z * Z - 1 / n + 4 * x * (1 - p) + sign * (4 * p - 2))) + 1

    low = 0.0 if m == 0 else (2 * x + Z * Z - half(+1)) / (2 * (n + Z * Z))
    high = 1.0 if m == k else (2 * x + Z * Z + half(-1)) / (2 * (n + Z * Z))
    chance = 2.0**-w
    return clamp((low - chance) / (1 - chance)), clamp((high - chance) / (1 - chance))


def clamp(q: float) -> float:
    return min(1.0, max(0.0, q))


# ---------------------------------------------------------------------------------------------------------------------
# Appendix A: XXH3

K = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
Q1, Q2, Q3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5, PX = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, 0x9FB21C651E98DF25


def r4(b: bytes, at: int) -> int:
    return int.from_bytes(b[at : at + 4], "little")


def r8(b: bytes, at: int) -> int:
    return int.from_bytes(b[at : at + 8], "little")


def swap(x: int, size: int) -> int:
    return int.from_bytes(x.to_bytes(size, "little"), "big")


def rotl(x: int, by: int, bits: int = 64) -> int:
    return (x << by | x >> (bits - by)) & (2**bits - 1)


def fold(a: int, b: int) -> int:
    p = a * b
    return (p & M) ^ (p >> 64)


def avalanche(h: int) -> int:
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & M
    return h ^ h >> 32


def avalanche64(h: int) -> int:
    h ^= h >> 33
    h = h * P2 & M
    h ^= h >> 29
    h = h * P3 & M
    return h ^ h >> 32


def mix16(b: bytes, i: int, k: bytes, j: int, seed: int) -> int:
    return fold(r8(b, i) ^ (r8(k, j) + seed & M), r8(b, i + 8) ^ (r8(k, j + 8) - seed & M))


def xxh3_64(b: bytes, seed: int = 0) -> int:
    n = len(b)
    if n == 0:
        return avalanche64(seed ^ r8(K, 56) ^ r8(K, 64))
    if n <= 3:
        c = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        return avalanche64(c ^ ((r4(K, 0) ^ r4(K, 4)) + seed & M))
    if n <= 8:
        seed ^= swap(seed & 0xFFFFFFFF, 4) << 32
        h = ((r4(b, 0) << 32) + r4(b, n - 4)) ^ ((r8(K, 8) ^ r8(K, 16)) - seed & M)
        h ^= rotl(h, 49) ^ rotl(h, 24)
        h = h * PX & M
        h ^= (h >> 35) + n & M
        h = h * PX & M
        return h ^ h >> 28
    if n <= 16:
        lo = r8(b, 0) ^ ((r8(K, 24) ^ r8(K, 32)) + seed & M)
        hi = r8(b, n - 8) ^ ((r8(K, 40) ^ r8(K, 48)) - seed & M)
        return avalanche(n + swap(lo, 8) + hi + fold(lo, hi) & M)
    acc = n * P1
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            acc += mix16(b, 16 * i, K, 32 * i, seed) + mix16(b, n - 16 * (i + 1), K, 32 * i + 16, seed)
        return avalanche(acc & M)
    if n <= 240:
        for i in range(8):
            acc += mix16(b, 16 * i, K, 16 * i, seed)
        acc = avalanche(acc & M)
        for i in range(8, n // 16):
            acc += mix16(b, 16 * i, K, 16 * (i - 8) + 3, seed)
        return avalanche(acc + mix16(b, n - 16, K, 119, seed) & M)
    k = seeded_secret(seed)
    return merge(stripes(b, k), k, 11, acc & M)


def seeded_secret(seed: int) -> bytes:
    """The secret of 192 bytes for an input of more than 240 bytes."""
    return le64((r8(K, at) + (-seed if at % 16 else seed)) & M for at in range(0, 192, 8))


def stripes(b: bytes, k: bytes) -> list[int]:
    acc = [Q3, P1, P2, P3, P4, Q2, P5, Q1]

    def stripe(i: int, j: int) -> None:
        for n in range(8):
            data = r8(b, i + 8 * n)
            keyed = data ^ r8(k, j + 8 * n)
            acc[n ^ 1] = acc[n ^ 1] + data & M
            acc[n] = acc[n] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & M

    full = (len(b) - 1) // 1024
    for block in range(full):
        for s in range(16):
            stripe(1024 * block + 64 * s, 8 * s)
        for n in range(8):
            acc[n] = (acc[n] ^ acc[n] >> 47 ^ r8(k, 128 + 8 * n)) * Q1 & M
    for s in range((len(b) - 1 - 1024 * full) // 64):
        stripe(1024 * full + 64 * s, 8 * s)
    stripe(len(b) - 64, 121)
    return acc


def merge(acc: list[int], k: bytes, j: int, start: int) -> int:
    for n in range(4):
        start += fold(acc[2 * n] ^ r8(k, j + 16 * n), acc[2 * n + 1] ^ r8(k, j + 16 * n + 8))
    return avalanche(start & M)


def mix32(lo: int, hi: int, b: bytes, i: int, j: int, at: int) -> tuple[int, int]:
    lo = lo + mix16(b, i, K, at, 0) & M
    lo ^= r8(b, j) + r8(b, j + 8) & M
    hi = hi + mix16(b, j, K, at + 16, 0) & M
    hi ^= r8(b, i) + r8(b, i + 8) & M
    return lo, hi


def xxh3_128(b: bytes) -> int:
    """Seed 0; the result is hi << 64 | lo."""
    n = len(b)
    if n == 0:
        lo, hi = avalanche64(r8(K, 64) ^ r8(K, 72)), avalanche64(r8(K, 80) ^ r8(K, 88))
    elif n <= 3:
        c = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        lo = avalanche64(c ^ r4(K, 0) ^ r4(K, 4))
        hi = avalanche64(rotl(swap(c, 4), 13, bits=32) ^ r4(K, 8) ^ r4(K, 12))
    elif n <= 8:
        x = (r4(b, 0) + (r4(b, n - 4) << 32)) ^ r8(K, 16) ^ r8(K, 24)
        p = x * (P1 + (n << 2))
        lo, hi = p & M, p >> 64
        hi = hi + (lo << 1) & M
        lo ^= hi >> 3
        lo ^= lo >> 35
        lo = lo * PX & M
        lo ^= lo >> 28
        hi = avalanche(hi)
    elif n <= 16:
        a, z = r8(b, 0), r8(b, n - 8)
        p = (a ^ z ^ r8(K, 32) ^ r8(K, 40)) * P1
        lo, hi = p & M, p >> 64
        lo = lo + ((n - 1) << 54) & M
        z ^= r8(K, 48) ^ r8(K, 56)
        hi = hi + z + (z & 0xFFFFFFFF) * (Q2 - 1) & M
        lo ^= swap(hi, 8)
        p = lo * P2
        lo, hi = avalanche(p & M), avalanche((p >> 64) + hi * P2 & M)
    elif n <= 240:
        lo, hi = n * P1 & M, 0
        if n <= 128:
            for i in reversed(range((n - 1) // 32 + 1)):
                lo, hi = mix32(lo, hi, b, 16 * i, n - 16 * (i + 1), 32 * i)
        else:
            for i in range(4):
                lo, hi = mix32(lo, hi, b, 32 * i, 32 * i + 16, 32 * i)
            lo, hi = avalanche(lo), avalanche(hi)
            for i in range(4, n // 32):
                lo, hi = mix32(lo, hi, b, 32 * i, 32 * i + 16, 3 + 32 * (i - 4))
            lo, hi = mix32(lo, hi, b, n - 16, n - 32, 103)
        lo, hi = avalanche(lo + hi & M), -avalanche(lo * P1 + hi * P4 + n * P2 & M) & M
    else:
        acc = stripes(b, K)
        lo, hi = merge(acc, K, 11, n * P1 & M), merge(acc, K, 117, ~(n * P2) & M)
    return hi << 64 | lo


# ---------------------------------------------------------------------------------------------------------------------
# Appendix B: SipHash


def siphash(c: int, d: int, key: bytes, b: bytes, wide: bool = False) -> int:
    """SipHash-c-d, of 64 bits or, if `wide`, of 128."""
    k0, k1 = r8(key, 0), r8(key, 8)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    if wide:
        v[1] ^= 0xEE
    padded = b + bytes((7 - len(b)) % 8) + bytes([len(b) % 256])
    for at in range(0, len(padded), 8):
        m = r8(padded, at)
        v[3] ^= m
        sip_rounds(v, c)
        v[0] ^= m
    v[2] ^= 0xEE if wide else 0xFF
    sip_rounds(v, d)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    if not wide:
        return low
    v[1] ^= 0xDD
    sip_rounds(v, d)
    return low | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64


def sip_rounds(v: list[int], times: int) -> None:
    for _ in range(times):
        v[0] = v[0] + v[1] & M
        v[1] = rotl(v[1], 13) ^ v[0]
        v[0] = rotl(v[0], 32)
        v[2] = v[2] + v[3] & M
        v[3] = rotl(v[3], 16) ^ v[2]
        v[0] = v[0] + v[3] & M
        v[3] = rotl(v[3], 21) ^ v[0]
        v[2] = v[2] + v[1] & M
        v[1] = rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)


# ---------------------------------------------------------------------------------------------------------------------
# How answers are written


def le64(numbers: Iterable[int]) -> bytes:
    return b"".join(n.to_bytes(8, "little") for n in numbers)


def hex64(n: int) -> str:
    return f"{n:016x}"


def hex128(n: int) -> str:
    return f"{n:032x}"


def begins(numbers: list[int]) -> list[str]:
    """The first eight numbers of a list. The file of known answers contains only these in full."""
    return [hex64(n) for n in numbers[:8]]


def count_digest(numbers: list[int]) -> list:
    """The length and the digest of a whole list, as in the file of known answers."""
    return [len(numbers), digest(numbers)]


def digest(numbers: list[int]) -> str:
    return hex64(xxh3_64(le64(numbers)))


# ---------------------------------------------------------------------------------------------------------------------
# The file of known answers


def stages_of(case: dict, secret: bytes) -> dict:
    """Every stage of one case, with the names that the file uses. Only the banding is copied from the case."""
    spec = parse_spec(case["spec"], secret)
    stages = text_stages(case["text"], spec) if "text" in case else set_stages(case["set"], case["integers"], spec)
    X, content, rank = stages.pop("X"), stages.pop("content of"), stages.pop("rank")
    if not X:
        return stages | {"empty": True}
    content = content_hash(content, spec)
    packed = signature(rank, content, spec)
    bands, rows = case["stages"]["banding"]
    keys = band_keys(packed, spec, bands, rows)
    return stages | {
        "signature_begins": packed[:32].hex(),
        "signature_bytes_digest": [len(packed), hex64(xxh3_64(packed))],
        "content": hex128(content),
        "banding": [bands, rows],
        "band_keys": begins(keys),
        "band_keys_count_digest": count_digest(keys),
    }


def text_stages(text: str, spec: Spec) -> dict:
    """The stages of a text up to its ranks, and the values that the later stages need."""
    normal = canonical(text, spec)
    found = tokens(normal, spec)
    hashes = [token_hash(token, spec) for token in found]
    windows = shingles(hashes, spec.width)
    X = set(windows)
    rank = ranks(X, spec) if X else []
    stages = {
        "fingerprint": hex128(fingerprint(spec)),
        "canonical": normal,
        "tokens": found,
        "token_hashes": begins(hashes),
        "token_hashes_count_digest": count_digest(hashes),
        "shingle_set": begins(sorted(X)),
        "shingle_set_count_digest": count_digest(sorted(X)),
        "X": X,
        "content of": normal.encode(),
        "rank": rank,
    }
    if X:
        stages |= {"windows": len(windows), "ranks": begins(rank), "ranks_count_digest": count_digest(rank)}
    return stages


def set_stages(strings: list[str], integers: list[str], spec: Spec) -> dict:
    """Does the same as `text_stages`, for a set."""
    elements = [string_hash(e, spec) for e in strings] + [integer_hash(int(e), spec) for e in integers]
    X = set(elements)
    stages = {
        "elements": begins(elements),
        "elements_count_digest": count_digest(elements),
        "X": X,
        "content of": set_bytes(X),
        "rank": ranks(X, spec) if X else [],
    }
    return stages | ({"windows": len(X)} if X else {})


def needs_newer_unicode(text: str) -> bool:
    """Whether Python's Unicode data may be too old for a text. This is so if the text has a character that is
    unassigned in this data, and is neither a noncharacter nor in DEFAULT_IGNORABLE. No character of Unicode 14 has
    changed in a way that matters."""
    if unicodedata.unidata_version.startswith("17."):
        return False
    return any(
        unicodedata.category(c) == "Cn"
        and not (ord(c) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(c) <= 0xFDEF)
        and ord(c) not in DEFAULT_IGNORABLE
        for c in text
    )


# ---------------------------------------------------------------------------------------------------------------------
# The answers that the page shows, and that are not in the file

SECRET = bytes(range(16))
DEFAULT = "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none"
HARBOUR = "A quiet harbour wakes before the gulls do, and the first boat leaves without a sound."


def page_answers() -> Iterator[tuple[str, object, object]]:
    """Yields the name of each answer, the answer as computed here, and the answer as written on the page."""
    default = parse_spec(DEFAULT)
    with_key = parse_spec(DEFAULT.replace("key=none", "key=217a1ccd4b38d306"), SECRET)

    def text(case: str, **fields: str) -> str:
        spec = DEFAULT
        for name, value in fields.items():
            spec = re.sub(f";{name}=[^;]*", f";{name}={value}", spec)
        return canonical(case, parse_spec(spec))

    yield "key fingerprint", hex64(key_fingerprint(SECRET)), "217a1ccd4b38d306"
    yield "fmix64", [fmix64(0), hex64(fmix64(1))], [0, "b456bcfc34c2cb2c"]
    g = splitmix64(1234567)
    yield "splitmix64", [next(g) for _ in range(3)], [6457827717110365317, 3203168211198807973, 9817491932198370423]
    yield "CHAR", hex64(CHAR), "c967caf9294d6892"
    yield "BASE", hex64(BASE), "32ba5497a55f496b"
    yield "LENGTH", hex64(LENGTH), "a9f8dbf88039ab7c"
    yield "PLACE, DRAW", [hex64(PLACE), hex64(DRAW)], ["08dfcc2e95b014d2", "f78accbcb228f2c5"]

    yield "canonical 1", text("  STRA\u200bSSE\n\uff11"), "strasse 1"
    yield "canonical 2", text("Die Straße nach GROSSBEEREN"), "die strasse nach grossbeeren"
    yield "canonical 3", text("❤\ufe0f … — !!"), "❤ ... — !!"
    yield "canonical 4", text("Ｆｕｌｌ－ｗｉｄｔｈ　①Ⅷ㍿"), "full-width 1viii株式会社"
    yield "canonical 5", text("İstanbul"), "i\u0307stanbul"
    yield "canonical 6", text("\u00a8a"), "\u0308a"
    yield "canonical 7", text("ＡＢ ﬁ", fold="nfkc"), "AB fi"
    yield "canonical 8", text(" ＡＢ  e\u0301 ", fold="none"), "ＡＢ e\u0301"
    yield "canonical 9", text("Résumé 2024-11-09", marks="strip", digits="zero"), "resume 0000-00-00"
    yield "mended", text_of_bytes(b"a\xf0\x9f\x91b\xed\xa0\x80", replace=True), "a\ufffdb\ufffd\ufffd\ufffd"

    yield "unspaced", len(UNSPACED), 104_015
    yield "words 1", words("don't stop, 3.5 a_b नमस्ते"), ["don", "t", "stop", "3", "5", "a", "b", "नमस्ते"]
    yield "words 2", words("web漢字kana スーパー"), ["web", "漢", "字", "kana", "ス", "ー", "パ", "ー"]
    yield "words 3", words("ที่นี่"), ["ที่", "นี่"]
    yield "words 4", words("한국어 텍스트"), ["한국어", "텍스트"]
    yield "words 5", [len(t.encode()) for t in words("a" * 1000)], [256, 256, 256, 232]
    yield "words 6", [len(t.encode()) for t in words("x" + "é" * 300)], [255, 256, 90]
    yield "words 7", [len(t.encode()) for t in words("字" + "\u0301" * 200 + "b")], [255, 148, 1]

    yield "xxh3_64 of word", hex64(xxh3_64(b"word")), "e3ce369cf66c5c55"
    yield "a as a character", hex64(fmix64(ord("a") ^ CHAR)), "0984e4860dcf102b"
    yield "a with a key", hex64(siphash(1, 3, SECRET, b"a\0\0\0")), "7a4639342aa3ec6b"

    unsketched = parse_spec(DEFAULT.replace("fss256x8", "none"))
    yield "a signature without a sketch", signature([], 0x7D8E, unsketched).hex(), f"{0x7D8E:032x}"

    g = splitmix64(named(b"hapaxfss"))
    fss_constants = [next(g) for _ in range(17 + 256)]
    yield "C[0], C[15]", [hex64(fss_constants[0]), hex64(fss_constants[15])], ["49bb83725d9d4f5a", "532a3fe6f315d3d7"]
    yield "D", hex64(fss_constants[16]), "99236c2c05164044"
    yield "A[0], A[255]", [hex64(n | 1) for n in fss_constants[17::255]], ["6eb8b972f0ebb87f", "956c2619d72e46b7"]
    g = splitmix64(named(b"classic/"))
    yield "E", hex64(next(g)), "3910aba0931af335"
    yield "a[0], b[0]", [hex64(next(g) | 1), hex64(next(g))], ["12c220665e2d0ac5", "db655b2b9856bb57"]

    for element, plain, keyed in (
        ("red", "d202e6425dce428e", "158502a1c270c4cc"),
        ("5", "28ae4d89192153ed", "b7e98bc30eee594b"),
        (5, "d438f673b5dcca11", "eb31c2936677c2a9"),
        (-1, "42272b090d7de54f", "97b530a970adfb7d"),
    ):
        hashed = integer_hash if isinstance(element, int) else string_hash
        yield f"element {element!r}", [hex64(hashed(element, s)) for s in (default, with_key)], [plain, keyed]

    windows = shingles([token_hash(t, default) for t in words(canonical(HARBOUR, default))], default.width)
    yield "first and last shingle", [hex64(windows[0]), hex64(windows[-1])], ["9c74635e167ce87a", "ee87c7f6b0243006"]
    yield "its shingle set as bytes", rice(kept(windows)).hex(), (
        "2c2b524a94018e58025bdd6e4c254431a65e7d733a622902ef48613265070ac1536a6612b7ea7c71ef85034b75945266"
        "d18f92ad3c7cff457ceb473ba50a17d62215ea28731f"
    )
    yield "three hashes as bytes", rice(kept([0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x0000010000000000])).hex(), (
        "2e000000020000aa89674423c1a1b2c3d4e5f6"
    )
    rank = oph(set(windows), 64)
    yield "empty slots", rank.count(EMPTY), 54
    yield "densified", hex64(densify(rank, 64)[0]), "00e33a15394a695e"

    for m, k, w, sketch, *answer in (
        (0, 256, 8, "fss", 0, 0, 0.014579),
        (204, 256, 8, "fss", 0.796078, 0.740261, 0.842738),
        (205, 256, 8, "fss", 0.8, 0.744470, 0.846249),
        (205, 256, 8, "oph", 0.8, 0.722149, 0.860926),
        (242, 256, 8, "fss", 0.945098, 0.907584, 0.968499),
        (256, 256, 8, "fss", 1, 0.981499, 1),
        (51, 64, 32, "classic", 0.796875, 0.674244, 0.883336),
    ):
        computed = [round(q, 6) for q in (similarity(m, k, w), *interval(m, k, w, sketch))]
        yield f"similarity of {m} in {k}x{w} {sketch}", computed, answer
    computed = [least_equal_slots(8 * 10**8, k, w) for k, w in ((256, 8), (128, 16), (64, 32))]
    yield "m_min", computed + [least_equal_slots(5 * 10**8, 256, 8)], [205, 103, 52, 129]

    yield "xxh3 of nothing", [hex64(xxh3_64(b"")), hex128(xxh3_128(b""))], [
        "2d06800538d394c2", "99aa06d3014798d86001c324468d497f",
    ]
    yield "SipHash-2-4", hex64(siphash(2, 4, SECRET, bytes(range(15)))), "a129ca6149be45e5"
    yield "SipHash-1-3", hex64(siphash(1, 3, SECRET, b"")), "abac0158050fc4dc"


# ---------------------------------------------------------------------------------------------------------------------


def main(path: str) -> int:
    """Compare everything. Print the differences, and then one line of figures."""
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    secret = bytes.fromhex(vectors["secret"])
    cases = left_out = stages = differences = 0
    for number, case in enumerate(vectors["cases"]):
        if needs_newer_unicode(case.get("text", "")):
            left_out += 1
            continue
        cases += 1
        computed = stages_of(case, secret)
        for stage in sorted(computed.keys() | case["stages"].keys()):
            stages += 1
            differences += differs(
                f"case {number}, {case['spec']}, {stage}", computed.get(stage), case["stages"].get(stage)
            )
    answers = 0
    for what, computed, written in page_answers():
        answers += 1
        differences += differs(f"page, {what}", computed, written)
    print(
        f"unicode={unicodedata.unidata_version} cases={cases} left_out={left_out} stages={stages} page={answers} "
        f"differences={differences}"
    )
    return 1 if differences else 0


def differs(what: str, computed: object, written: object) -> bool:
    if computed == written:
        return False
    print(f"{what}:\n    computed {computed!r}\n    known    {written!r}")
    return True


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
