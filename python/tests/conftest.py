"""Texts and files that several tests use."""

import json
import random
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# `make test-python` copies the file next to the tests. In a checkout it is read from the core.
VECTORS = [HERE / "vectors.json", HERE.parents[1] / "crates/hapax-core/tests/vectors.json"]
OPENAPI = [HERE / "openapi.yaml", HERE.parents[1] / "openapi.yaml"]


@pytest.fixture(scope="session")
def vectors():
    path = next(path for path in VECTORS if path.exists())
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def openapi():
    import yaml

    path = next(path for path in OPENAPI if path.exists())
    # The loader in C is used if it is installed, because the file is long.
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def page_path(name):
    """The path of a page. `make test-python` copies it next to the tests. In a checkout it is read from docs/."""
    return next(path for path in (HERE / name, HERE.parents[1] / "docs" / name) if path.exists())


ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz",
    "äöüßéèñçğışÅØæœ",
    "абвгдежзиклмнопрстуфхцчшщ",
    "ελληνικάαβγδωσς",
    "אבגדהוזחטיכלמנ",
    "العربيةمكتوب",
    "हिन्दीकखगघ",
    "ไทยภาษา",
    "日本語東京都タワーひらがな",
    "한국어텍스트",
    "𝒜𝓑😀🇦🇹👩‍👩‍👧",
    "ﬁﷺǄİ①½Ⅷ",
    "e\u0301a\u0308\u200b\u00ad\u0345",
    "0123456789",
    " \t\n.,;!?…—",
]


def words(generator, count):
    alphabet = generator.choice(ALPHABETS)
    return " ".join("".join(generator.choices(alphabet, k=generator.randint(1, 12))) for _ in range(count))


@pytest.fixture(scope="session")
def texts():
    """Texts of many scripts: empty ones, short ones and long ones."""
    seed = 20261126
    generator = random.Random(seed)
    made = ["", " \t", "…!?", "word"]
    made += [words(generator, generator.randint(0, 400)) for _ in range(600)]
    made += [" ".join(words(generator, 9) for _ in range(40)) for _ in range(20)]
    made.append("one two three four five six " * 5000)
    return made


def same_rows(one, other):
    """Whether two batches agree in every row."""
    return (
        len(one) == len(other)
        and one.shingles.to_list() == other.shingles.to_list()
        and one.signatures.to_list() == other.signatures.to_list()
        and one.content_hashes.to_list() == other.content_hashes.to_list()
        and [one.outcome(row) for row in range(len(one))] == [other.outcome(row) for row in range(len(other))]
    )
