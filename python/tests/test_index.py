"""The index, compared with the rule that the server uses."""

import random

import pytest

import pyhapax

FOX = "The quick brown fox jumps over the lazy dog and runs away from the hunters of the north"


def near_texts(seed, count):
    """Texts. Many of them are similar to another text."""
    generator = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(400)]
    made = []
    for _ in range(count):
        if made and generator.random() < 0.6:
            words = generator.choice(made).split()
            for _ in range(generator.randint(0, 3)):
                words[generator.randrange(len(words))] = generator.choice(vocabulary)
        else:
            words = generator.choices(vocabulary, k=generator.randint(20, 120))
        made.append(" ".join(words))
    return made


def test_verdicts_have_the_words_of_the_service():
    index = pyhapax.Index()
    assert index.check(FOX).verdict == "unique"
    inserted = index.insert("fox", FOX)
    assert (inserted.verdict, inserted.outcome, inserted.duplicate_of) == ("unique", "inserted", None)
    exact = index.check(FOX.upper())
    assert (exact.verdict, exact.outcome, exact.duplicate_of, exact.similarity) == (
        "exact_duplicate", "checked", "fox", 1.0
    )  # fmt: skip
    near = index.check(FOX + ", they say")
    assert (near.verdict, near.duplicate_of, near.is_duplicate) == ("near_duplicate", "fox", True)
    match = near.matches[0]
    assert 0.8 <= match.similarity < 1
    assert match.low < match.similarity < match.high
    assert not match.exact
    punctuated = index.check(FOX.replace(" ", ", "))
    assert (punctuated.verdict, punctuated.similarity) == ("near_duplicate", 1.0)
    empty = index.check(" … ")
    assert (empty.verdict, empty.shingles, empty.matches) == ("empty", 0, [])
    assert index.insert("none", "").outcome == "skipped"
    assert len(index) == 1
    assert "fox" in index
    assert "none" not in index


def test_a_text_again_is_unchanged_and_another_one_is_refused():
    index = pyhapax.Index()
    index.insert("a", FOX)
    again = index.insert("a", FOX.upper())
    assert (again.verdict, again.outcome) == ("unique", "unchanged")
    with pytest.raises(ValueError, match='the id "a" already has another text'):
        index.insert("a", FOX + " now")
    assert len(index) == 1


def test_duplicates_are_skipped_linked_or_stored():
    near, nearer = FOX + " x", FOX + " x y"
    for option, outcome, count in [("skip", "skipped", 1), ("link", "linked", 2), ("store", "inserted", 2)]:
        index = pyhapax.Index(threshold=0.7)
        index.insert("a", FOX)
        assert index.insert("b", near, on_duplicate=option).outcome == outcome
        assert len(index) == count
        assert index.check(near).duplicate_of == ("a" if option == "skip" else "b")
        found = {match.id for match in index.check(nearer).matches}
        assert found == ({"a", "b"} if option == "store" else {"a"})
    with pytest.raises(ValueError, match="on_duplicate must be"):
        index.insert("c", FOX, on_duplicate="drop")


@pytest.mark.parametrize("sketch", ["fss256x8", "fss128x8", "classic128x16", "oph64x8"])
def test_matches_are_those_of_the_rule(sketch):
    threshold, seed = 0.7, 11
    texts = near_texts(seed, 400)
    signer = pyhapax.Signer(sketch=sketch)
    index = pyhapax.Index(sketch=sketch, threshold=threshold)
    batch = signer.sign_batch(texts)
    keys = [set(enumerate(row)) for row in signer.band_keys(batch, index.bands, index.rows).to_list()]
    for row, text in enumerate(texts):
        verdict = index.insert(str(row), text, on_duplicate="store", limit=1000)
        expected = [
            (batch[row].content_hash != batch[other].content_hash, -batch[row].similarity(batch[other]), other)
            for other in range(row)
            if batch[row].similarity(batch[other]) >= threshold - 1e-12 and keys[row] & keys[other]
        ]
        expected.sort()
        assert [int(match.id) for match in verdict.matches] == [other for *_, other in expected], (
            f"row {row} seed {seed}"
        )
        assert verdict.complete


def test_signatures_are_as_good_as_texts():
    signer, index = pyhapax.Signer(), pyhapax.Index()
    signature = signer.sign(FOX)
    index.insert("fox", signature)
    assert index.check(FOX).verdict == "exact_duplicate"
    ready = pyhapax.Signature(bytes(signature), signer.spec)
    verdict = index.check(ready)
    assert (verdict.verdict, verdict.similarity, verdict.shingles) == ("near_duplicate", 1.0, None)


def test_deduplicate_names_the_row_that_is_kept():
    texts = [FOX, "another text of several words that is like no other one", FOX + " x", "", None, FOX.upper()]
    assert pyhapax.deduplicate(texts) == [None, None, 0, None, None, 0]
    index = pyhapax.Index()
    ids = ["a", "b", "c", "d", "e", "f"]
    assert index.deduplicate(texts, ids) == [None, None, "a", None, None, "a"]
    assert index.deduplicate([FOX + " y"], ["g"]) == ["a"]
    with pytest.raises(ValueError, match="need ids"):
        index.deduplicate(texts)
    with pytest.raises(ValueError, match='ids, row 1: the id "x" already has another text'):
        pyhapax.Index().deduplicate(texts[:2], ["x", "x"])
    with pytest.raises(ValueError, match="no id for row 1"):
        index.deduplicate(texts, ["x"])
    with pytest.raises(ValueError, match="more ids than texts"):
        pyhapax.Index().deduplicate(texts, [*ids, "g"])
    with pytest.raises(TypeError, match="ids, row 0: an id must be a str, not int"):
        pyhapax.Index().deduplicate(texts, range(6))


def test_deduplicate_is_insert_one_by_one():
    texts = near_texts(5, 3000)
    index, expected = pyhapax.Index(threshold=0.75), []
    for row, text in enumerate(texts):
        verdict = index.insert(str(row), text)
        expected.append(None if verdict.duplicate_of is None else int(verdict.duplicate_of))
    assert sum(row is not None for row in expected) > 300
    for threads in [1, 3]:
        assert pyhapax.deduplicate(texts, threshold=0.75, threads=threads) == expected


def test_a_full_bucket_is_read_in_part_and_the_verdict_says_so():
    # These texts share a band but are not similar, because there is only one band, with one row.
    index = pyhapax.Index(threshold=0.9, bands=1, rows=1, shingle="word1")
    signer = pyhapax.Signer(shingle="word1")
    bucket = {}
    for number in range(80_000):
        text = f"a{number} b{number}"
        bucket.setdefault(bytes(signer.sign(text))[0], []).append(text)
        if len(bucket.get(0, [])) > 300:
            break
    texts = bucket[0]
    assert len(texts) > 300
    for number, text in enumerate(texts):
        index.insert(str(number), text, on_duplicate="store")
    assert not index.check(texts[0]).complete
    assert index.check(texts[0]).duplicate_of == "0", "an equal signature is found whatever the bucket has"


def test_many_copies_stay_cheap():
    index = pyhapax.Index()
    for number in range(20_000):
        index.insert(f"copy {number}", FOX, on_duplicate="store" if number % 2 else "link")
    verdict = index.check(FOX)
    assert (verdict.verdict, verdict.candidates, len(verdict.matches)) == ("exact_duplicate", 1, 10)
    near = index.check(FOX + " x")
    assert near.verdict == "near_duplicate"
    assert near.candidates == 1


def test_a_banding_is_chosen_for_the_threshold():
    assert (pyhapax.Index().bands, pyhapax.Index().rows) == (31, 8)
    assert pyhapax.Index(sketch="fss128x8").bands == 21
    assert (pyhapax.Index(bands=16, rows=4).bands, pyhapax.Index(bands=16, rows=4).rows) == (16, 4)
    with pytest.raises(ValueError, match="both bands and rows"):
        pyhapax.Index(bands=16)
    with pytest.raises(ValueError, match="more than the 256 slots"):
        pyhapax.Index(bands=100, rows=100)
    with pytest.raises(ValueError, match="limit must be between 1 and 1000"):
        pyhapax.Index().check("a", limit=0)


def test_a_keyed_index_finds_what_a_keyed_signer_signs():
    key = "000102030405060708090a0b0c0d0e0f"
    index = pyhapax.Index(key=key)
    index.insert("fox", pyhapax.Signer(key=key).sign(FOX))
    assert index.check(FOX).verdict == "exact_duplicate"
    assert key not in repr(index)
    with pytest.raises(ValueError, match="different specs"):
        index.check(pyhapax.Signer().sign(FOX))
