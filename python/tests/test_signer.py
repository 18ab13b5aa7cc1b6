"""Signers, their specs and keys, and what they return."""

import importlib.metadata
import os
import pickle
import subprocess
import sys

import pytest
from conftest import same_rows

import pyhapax

KEY = "000102030405060708090a0b0c0d0e0f"
FOX = "The quick brown fox jumps over the lazy dog and runs away"


def test_a_signer_without_arguments_has_the_default_spec():
    signer = pyhapax.Signer()
    assert signer.spec == (
        "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none"
    )
    assert signer.signature_bytes == 256
    assert signer == pyhapax.Signer(signer.spec)


def test_the_version_is_that_of_the_package():
    assert pyhapax.__version__ == importlib.metadata.version("pyhapax")


def test_parts_make_a_spec():
    signer = pyhapax.Signer(fold="nfkc", marks="strip", digits="zero", shingle="char7", sketch="oph64x16")
    assert signer.spec == "hapax1;unicode=17;fold=nfkc;marks=strip;digits=zero;shingle=char7;sketch=oph64x16;key=none"
    with pytest.raises(ValueError, match="not both"):
        pyhapax.Signer(signer.spec, fold="nfkc")
    with pytest.raises(ValueError, match="word1 to word32"):
        pyhapax.Signer(shingle="word0")
    with pytest.raises(ValueError, match="shingle"):
        pyhapax.Signer(fold="nfkc;marks=keep")


def test_the_words_of_a_text_count_and_nothing_else():
    signer = pyhapax.Signer()
    assert signer.sign(FOX) == signer.sign(FOX.upper().replace(" ", " \n"))
    assert signer.sign(FOX).content_hash == signer.sign(FOX.upper()).content_hash
    assert signer.sign(FOX) != signer.sign(FOX + " now")
    assert signer.sign(FOX).shingles == 8


def test_an_empty_text_has_no_signature():
    signer = pyhapax.Signer()
    assert signer.sign("") is None
    assert signer.sign(" …!\u200b") is None
    batch = signer.sign_batch(["", None, FOX])
    assert [batch.outcome(row) for row in range(3)] == ["empty", "null", "signed"]
    assert (batch.empty_rows, batch.null_rows, batch.signed_rows) == ([0], [1], [2])
    assert batch[0] is None
    assert batch[1] is None
    assert batch[-1] == signer.sign(FOX)
    assert batch.shingles.to_list() == [0, None, 8]
    with pytest.raises(IndexError):
        batch[3]
    assert [signature for signature in batch if signature] == [signer.sign(FOX)]
    assert len(batch.signed()) == 1


def test_a_batch_is_the_texts_one_by_one(texts):
    for sketch in ["fss256x8", "classic128x16", "oph64x32"]:
        signer = pyhapax.Signer(sketch=sketch)
        batch = signer.sign_batch(texts)
        assert len(batch) == len(texts)
        for row, text in enumerate(texts):
            signature = signer.sign(text)
            assert batch[row] == signature
            if signature is not None:
                assert (batch[row].content_hash, batch[row].shingles) == (signature.content_hash, signature.shingles)


def test_any_iterable_of_texts_will_do(texts):
    signer = pyhapax.Signer()
    expected = signer.sign_batch(texts)
    assert same_rows(signer.sign_batch(tuple(texts)), expected)
    assert same_rows(signer.sign_batch(text for text in texts), expected)
    assert len(signer.sign_batch([])) == 0


def test_similarity_has_an_interval():
    signer = pyhapax.Signer()
    a, b = signer.sign(FOX), signer.sign(FOX.replace("away", "off"))
    low, high = a.interval(b)
    assert 0 < low < a.similarity(b) < high < 1
    assert a.similarity(a) == 1.0
    assert signer.matching(a, b) == sum(x == y for x, y in zip(bytes(a), bytes(b), strict=True))


def test_signatures_are_values():
    signer = pyhapax.Signer()
    a, b = signer.sign(FOX), signer.sign(FOX)
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, signer.sign("another text")}) == 2
    assert a != bytes(a)
    assert memoryview(a).readonly
    assert pyhapax.Signature(bytes(a), signer.spec) == a
    assert pyhapax.Signature(memoryview(a), signer.spec).content_hash is None
    assert pyhapax.Signer(sketch="fss256x8", shingle="word4").sign(FOX) != a


def test_pickles_are_small_and_whole():
    signer = pyhapax.Signer()
    many = [signer.sign(f"{FOX} {number}") for number in range(1000)]
    again = pickle.loads(pickle.dumps(many))
    assert again == many
    assert [(s.content_hash, s.shingles, s.spec) for s in again] == [(s.content_hash, s.shingles, s.spec) for s in many]
    assert len(pickle.dumps(many[0])) < 256 + 16 + 260
    assert len(pickle.dumps(many)) / 1000 < 256 + 16 + 40


def test_signatures_of_other_specs_are_refused():
    signer, other = pyhapax.Signer(), pyhapax.Signer(shingle="word3")
    a, b = signer.sign(FOX), other.sign(FOX)
    for compare in [
        lambda: a.similarity(b),
        lambda: a.interval(b),
        lambda: signer.matching(a, b),
        lambda: signer.band_keys(b, 31, 8),
        lambda: signer.matching(a, other.sign_batch([FOX])),
        lambda: pyhapax.Index().check(b),
    ]:
        with pytest.raises(ValueError, match=r"different specs.*word5.*word3"):
            compare()


def test_band_keys_and_matching_take_many():
    signer = pyhapax.Signer()
    texts = [FOX, None, "", FOX.replace("quick", "slow"), "nothing of the kind is written here"]
    batch = signer.sign_batch(texts)
    keys = signer.band_keys(batch, 31, 8)
    assert keys.to_list() == [None if s is None else signer.band_keys(s, 31, 8) for s in batch]
    assert memoryview(signer.band_keys(batch.signed(), 31, 8)).shape == (3, 31)
    counts = signer.matching(batch[0], batch)
    assert counts.to_list() == [None if s is None else signer.matching(batch[0], s) for s in batch]
    assert signer.matching(batch, batch).to_list() == [256, None, None, 256, 256]
    assert signer.matching(list(batch), bytes(batch[0])).to_list() == counts.to_list()
    with pytest.raises(ValueError, match="5 signatures and b has 3"):
        signer.matching(batch, batch.signed())
    with pytest.raises(ValueError, match="more than the 256 slots"):
        signer.band_keys(batch, 33, 8)


def test_a_key_changes_every_hash_and_shows_nowhere(tmp_path, monkeypatch):
    plain = pyhapax.Signer()
    file = tmp_path / "secret"
    file.write_text(KEY + "\n", encoding="ascii")
    monkeypatch.setenv("A_KEY", KEY)
    signers = [
        pyhapax.Signer(key=KEY),
        pyhapax.Signer(key=bytes.fromhex(KEY)),
        pyhapax.Signer(key_file=file),
        pyhapax.Signer(key_file=str(file)),
        pyhapax.Signer(key_env="A_KEY"),
    ]
    assert signers[0].spec.endswith("key=217a1ccd4b38d306")
    for signer in signers:
        assert signer == signers[0]
        assert signer.sign(FOX) == signers[0].sign(FOX)
        assert signer.sign(FOX) != plain.sign(FOX)
        assert bytes(signer.sign(FOX)) != bytes(plain.sign(FOX))
        for shown in [repr(signer), repr(signer.sign(FOX)), str(pickle.dumps(signer.sign(FOX)))]:
            assert KEY not in shown
    for signer in signers[2:]:
        pickled = pickle.dumps(signer)
        assert KEY.encode() not in pickled
        assert bytes.fromhex(KEY) not in pickled
        assert pickle.loads(pickled).sign(FOX) == signer.sign(FOX)
    for signer in signers[:2]:
        with pytest.raises(TypeError, match="key_file or key_env"):
            pickle.dumps(signer)


def test_a_worker_process_reads_the_key_itself(tmp_path):
    file = tmp_path / "secret"
    file.write_text(KEY, encoding="ascii")
    signer = pyhapax.Signer(key_file=file)
    code = "import pickle, sys; s = pickle.load(sys.stdin.buffer); sys.stdout.write(bytes(s.sign(sys.argv[1])).hex())"
    run = [sys.executable, "-c", code, FOX]
    made = subprocess.run(run, input=pickle.dumps(signer), capture_output=True, check=True)
    assert bytes.fromhex(made.stdout.decode()) == bytes(signer.sign(FOX))


def test_a_wrong_key_is_refused_and_not_repeated(tmp_path, monkeypatch):
    secrets = ["0123", KEY[:-1] + "g", "hunter2hunter2hunter2hunter2hunt", "\udc00" * 32, "é" * 32]
    for secret in secrets:
        with pytest.raises(ValueError, match="32 hexadecimal digits") as refused:
            pyhapax.Signer(key=secret)
        assert secret not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None
    file = tmp_path / "secret"
    file.write_text("hunter2", encoding="ascii")
    with pytest.raises(ValueError, match="32 hexadecimal digits") as refused:
        pyhapax.Signer(key_file=file)
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("A_KEY", "hunter2")
    with pytest.raises(ValueError, match="32 hexadecimal digits") as refused:
        pyhapax.Signer(key_env="A_KEY")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ValueError, match="not set"):
        pyhapax.Signer(key_env="NO_SUCH_KEY")
    with pytest.raises(FileNotFoundError):
        pyhapax.Signer(key_file=tmp_path / "none")
    with pytest.raises(TypeError, match="not int"):
        pyhapax.Signer(key=5)
    with pytest.raises(ValueError, match="only one"):
        pyhapax.Signer(key=KEY, key_env="A_KEY")
    file.write_bytes(os.urandom(2000))
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        pyhapax.Signer(key_file=file)


def test_a_spec_and_its_key_belong_together():
    keyed = pyhapax.Signer(key=KEY)
    assert pyhapax.Signer(keyed.spec, key=KEY) == keyed
    with pytest.raises(ValueError, match="needs the key"):
        pyhapax.Signer(keyed.spec)
    with pytest.raises(ValueError, match="217a1ccd4b38d306"):
        pyhapax.Signer(keyed.spec, key="f" * 32)
    with pytest.raises(ValueError, match="key=none"):
        pyhapax.Signer(pyhapax.Signer().spec, key=KEY)


def test_signatures_made_elsewhere_can_be_compared():
    spec = "hapax1;external:datasketch:16x64"
    a, b = pyhapax.Signature(bytes(128), spec), pyhapax.Signature(bytes(64) + b"\1" * 64, spec)
    assert a.similarity(b) == 0.5
    with pytest.raises(ValueError, match="made elsewhere"):
        pyhapax.Signer(spec)


def test_ranks_of_two_texts_make_those_of_both():
    signer = pyhapax.Signer(sketch="classic64x32", shingle="word1")
    ranks = [signer.ranks(text).to_list() for text in ["one two three", "three four", "one two three four"]]
    assert [min(pair) for pair in zip(ranks[0], ranks[1], strict=True)] == ranks[2]


def test_tune_is_the_choice_of_the_server():
    tuning = pyhapax.tune()
    assert (tuning.bands, tuning.rows, tuning.threshold, tuning.index_bytes) == (31, 8, 0.8, 588)
    assert round(tuning.proposed(0.8), 4) == 0.9968
    assert round(tuning.reported(0.8), 4) == 0.5414
    assert round(tuning.standard_error, 4) == 0.0215
    curve = tuning.curve(3)
    assert [point[0] for point in curve] == [0.0, 0.5, 1.0]
    assert curve[2] == (1.0, 1.0, 1.0)
    assert pyhapax.tune(sketch="fss128x8").bands == 21
    with pytest.raises(ValueError, match="no banding"):
        pyhapax.tune(recall=1.0, candidates_max=0.0)
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        pyhapax.tune(1.5)
