"""An index that is saved and loaded again, and files that cannot be loaded."""

import json
import os
import random
import re
import sys

import pytest
from test_index import FOX, near_texts

import pyhapax

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

KEY = "000102030405060708090a0b0c0d0e0f"
COLUMNS = ["id", "signature", "content_hash", "shingles", "representative", "linked"]


def varied(texts, **options):
    """An index with documents, copies, links, and signatures without a text."""
    index, generator = pyhapax.Index(**options), random.Random(7)
    signer = pyhapax.Signer(index.spec, key=options.get("key"))
    for row, text in enumerate(texts):
        given = text
        if row % 9 == 0 and (signature := signer.sign(text)):
            given = pyhapax.Signature(bytes(signature), index.spec)
        index.insert(f"page/{row}", given, on_duplicate=generator.choice(["skip", "link", "link", "store"]))
    return index


def answers(index, texts):
    made = []
    for text in texts:
        verdict = index.check(text, limit=1000)
        matches = [(match.id, match.similarity, match.exact) for match in verdict.matches]
        made.append((verdict.verdict, verdict.candidates, verdict.complete, verdict.shingles, matches))
    return made


def signed(texts, **columns):
    """A table of signatures with ids, as a user makes one."""
    table = pa.table(pyhapax.Signer().sign_batch(texts))
    columns = {"id": [f"page/{row}" for row in range(len(texts))], **columns}
    for name, given in columns.items():
        values = given if isinstance(given, pa.Array) else pa.array(given)
        at = table.schema.get_field_index(name)
        table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
    return table


def written(tmp_path, table):
    path = tmp_path / "signatures.parquet"
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.7},
        {"threshold": 0.8, "key": KEY, "shingle": "word3"},
        {"bands": 16, "rows": 4, "sketch": "oph64x32"},
        {"sketch": "classic128x16"},
    ],
)
def test_a_saved_index_is_the_same_again(tmp_path, options):
    texts = near_texts(3, 700)
    index = varied([*texts, *texts[:50]], **options)
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    index.save(first)
    loaded = pyhapax.Index.load(first, key=options.get("key"))
    loaded.save(second)
    table = pq.read_table(first)
    assert table.schema.equals(pq.read_table(second).schema, check_metadata=True)
    assert table.equals(pq.read_table(second))
    assert repr(loaded) == repr(index)
    assert answers(loaded, [*texts, *near_texts(4, 100), "", FOX]) == answers(
        index, [*texts, *near_texts(4, 100), "", FOX]
    )
    # Later inserts have the same results, too.
    for one in (index, loaded):
        one.deduplicate(texts, ids=[f"again/{row}" for row in range(len(texts))])
    assert answers(loaded, texts) == answers(index, texts)


def test_the_file_has_the_columns_of_the_load_format(tmp_path):
    index = pyhapax.Index(threshold=0.7)
    signer = pyhapax.Signer()
    index.insert("a", FOX)
    index.insert("b", FOX + " x", on_duplicate="link")
    assert index.check(FOX + " x").duplicate_of == "b"
    # The best match of c is the link b, which represents no document. So a represents c, too.
    index.insert("c", FOX + " X!", on_duplicate="link")
    index.insert("d", FOX, on_duplicate="store")
    index.insert("e", pyhapax.Signature(bytes(signer.sign(FOX)), signer.spec), on_duplicate="store")
    index.save(tmp_path / "index.parquet")
    table = pq.read_table(tmp_path / "index.parquet")
    assert table.column_names == COLUMNS
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert [row["representative"] for row in rows] == [None, "a", "a", None, None]
    assert [row["linked"] for row in rows] == [False, True, True, False, False]
    shingles = signer.sign(FOX).shingles
    assert [row["shingles"] for row in rows] == [shingles, shingles + 1, shingles + 1, shingles, None]
    assert [row["content_hash"] is None for row in rows] == [False] * 4 + [True]
    assert rows[0]["content_hash"] == signer.sign(FOX).content_hash
    assert rows[4]["signature"] == bytes(signer.sign(FOX))
    metadata = pq.ParquetFile(tmp_path / "index.parquet").metadata.metadata
    assert metadata[b"hapax.spec"].decode() == index.spec
    assert metadata[b"hapax.fingerprint"].decode() == signer.fingerprint
    assert json.loads(metadata[b"hapax.settings"]) == {
        "threshold": 0.7, "bands": index.bands, "rows": index.rows, "banding_by_hand": False
    }  # fmt: skip


def test_an_empty_index_is_saved(tmp_path):
    path = tmp_path / "empty.parquet"
    pyhapax.Index(threshold=0.5).save(str(path))
    loaded = pyhapax.Index.load(str(path))
    assert (len(loaded), loaded.threshold) == (0, 0.5)
    assert loaded.insert("a", FOX).outcome == "inserted"


def test_twenty_thousand_documents_and_small_row_groups(tmp_path):
    generator = random.Random(1)
    texts = [" ".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=30)) for _ in range(20_000)]
    index = pyhapax.Index(sketch="classic512x32")
    index.deduplicate(texts, ids=[f"page/{row}" for row in range(len(texts))])
    path = tmp_path / "many.parquet"
    index.save(path)
    groups = pq.ParquetFile(path).metadata
    assert groups.num_row_groups >= 3
    assert max(groups.row_group(group).total_byte_size for group in range(groups.num_row_groups)) < 32 << 20
    loaded = pyhapax.Index.load(path)
    assert len(loaded) == len(index) > 19_000
    loaded.save(tmp_path / "again.parquet")
    assert pq.read_table(path).equals(pq.read_table(tmp_path / "again.parquet"))
    assert answers(loaded, texts[::100]) == answers(index, texts[::100])


def test_signatures_of_a_batch_are_an_index(tmp_path):
    texts = [FOX, "", "another text of several words that is like no other one", None, FOX.upper()]
    index = pyhapax.Index.load(written(tmp_path, signed(texts)))
    assert (len(index), index.threshold, index.bands, index.rows) == (3, 0.8, 31, 8)
    assert [match.id for match in index.check(FOX).matches] == ["page/0", "page/4"], "nothing is looked up"
    assert index.insert("page/0", FOX).outcome == "unchanged"
    index = pyhapax.Index.load(tmp_path / "signatures.parquet", threshold=0.6, bands=20, rows=5)
    assert (index.threshold, index.bands, index.rows) == (0.6, 20, 5)
    with pytest.raises(ValueError, match="both bands and rows"):
        pyhapax.Index.load(tmp_path / "signatures.parquet", bands=20)


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int64(), pa.string()),
        pa.dictionary(pa.int8(), pa.large_string()),
    ],
)
def test_strings_and_numbers_may_have_any_layout(tmp_path, kind):
    texts = near_texts(8, 60)
    table = signed(texts, representative=[None] * 59 + ["page/0"])
    plain = answers(pyhapax.Index.load(written(tmp_path, table)), texts)
    for name in ("id", "representative"):
        values = pa.array(table[name].to_pylist(), pa.string())
        values = values.dictionary_encode() if pa.types.is_dictionary(kind) else values
        table = table.set_column(table.schema.get_field_index(name), name, values.cast(kind))
    for name, other in [("signature", pa.binary()), ("content_hash", pa.large_binary()), ("shingles", pa.int16())]:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(other))
    path = written(tmp_path, table)
    assert answers(pyhapax.Index.load(path), texts) == plain


def test_members_that_are_no_links_stay_so(tmp_path):
    texts = [FOX, FOX + " x", FOX + " y"]
    representative = pa.array([None, "page/0", "page/0"])
    index = pyhapax.Index.load(
        written(tmp_path, signed(texts, representative=representative, linked=[False, False, None]))
    )
    assert {match.id for match in index.check(FOX + " z").matches} == {"page/0", "page/1"}
    # If the best match is a member, a link gets the representative of this member.
    index.insert("copy", FOX + " x", on_duplicate="link")
    index.save(tmp_path / "again.parquet")
    rows = pq.read_table(tmp_path / "again.parquet").to_pylist()
    assert [row["representative"] for row in rows] == [None, "page/0", "page/0", "page/0"]
    assert [row["linked"] for row in rows] == [False, False, True, True]


def with_ids(count, **changed):
    ids = [f"page/{row}" for row in range(count)]
    for row, value in changed.items():
        ids[int(row.removeprefix("row"))] = value
    return ids


NO_BYTES = pa.array([None] * 3, pa.binary())
WRONG = [
    ({"id": with_ids(3, row2="page/0")}, 2, "id", 'an earlier row has the id "page/0", too'),
    ({"id": with_ids(3, row1=None)}, 1, "id", "it has no value"),
    ({"id": pa.array([b"a", b"\xff", b"c"]).view(pa.string())}, 1, "id", "it is not well-formed UTF-8"),
    ({"signature": pa.array([b"x" * 255] * 3, pa.binary(255))}, 0, "signature", "it must have 256 bytes, but has 255"),
    ({"signature": [b"x" * 256, b"x" * 256, b"x"]}, 2, "signature", "it must have 256 bytes, but has 1"),
    ({"content_hash": [b"x" * 16, b"x", None]}, 1, "content_hash", "it must have 16 bytes, but has 1"),
    (
        {"content_hash": pa.array([None] * 3, pa.binary())},
        0,
        "content_hash",
        "a number of shingles needs a content hash",
    ),
    ({"shingles": [3, None, 3]}, 1, "shingles", "a content hash needs the number of shingles, at least 1"),
    ({"shingles": [3, 4, 0]}, 2, "shingles", "a content hash needs the number of shingles, at least 1"),
    ({"shingles": [3, -1, 3]}, 1, "shingles", "it is -1; it must be at least 0 and below 2^63"),
    ({"shingles": pa.array([3, 2**63, 3], pa.uint64())}, 1, "shingles", "it is 9223372036854775808; it must be"),
    ({"representative": [None, "page/7", None]}, 1, "representative", 'no earlier row has the id "page/7"'),
    ({"representative": [None, "page/2", None]}, 1, "representative", 'no earlier row has the id "page/2"'),
    ({"representative": [None, "page/1", None]}, 1, "representative", 'no earlier row has the id "page/1"'),
    ({"representative": [None, "page/0", "page/1"]}, 2, "representative", '"page/1" has a representative itself'),
    ({"linked": [False, True, None]}, 1, "linked", "a link needs a representative"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_a_wrong_row_is_named(tmp_path, case):
    columns, row, column, detail = WRONG[case]
    texts = [f"{number} {FOX}" for number in range(3)]
    path = written(tmp_path, signed(texts, **columns))
    with pytest.raises(ValueError, match=re.escape(f"{path}, row {row}, column `{column}`: {detail}")):
        pyhapax.Index.load(path)


def test_a_row_has_its_number_in_the_file(tmp_path):
    texts = [f"{number} {FOX}" for number in range(5000)]
    path = written(tmp_path, signed(texts, id=with_ids(5000, row4567="page/7")))
    with pytest.raises(ValueError, match="row 4567, column `id`"):
        pyhapax.Index.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns("id"), "column `id`: it is missing"),
        (lambda table: table.drop_columns("signature"), "column `signature`: it is missing"),
        (lambda table: table.append_column("id", table["id"]), "column `id`: there are two columns of this name"),
        (lambda table: table.set_column(3, "id", pa.array([1, 2, 3])), "must have the type string, but has int64"),
        (lambda table: table.append_column("linked", table["id"]), "column `linked`: it must have the type boolean"),
        (lambda table: table.set_column(2, "shingles", pa.array([0.5] * 3)), "the type integer, but has double"),
        (lambda table: table.replace_schema_metadata(None), "its metadata has no `hapax.spec`"),
        (lambda table: retold(table, fingerprint="0" * 32), "`hapax.fingerprint` is 000"),
        (lambda table: retold(table, settings="{"), "`hapax.settings`: "),
        (lambda table: retold(table, settings="{}"), "`hapax.settings`: missing field 'bands'"),
        (lambda table: settled(table, 1, 1, 2), "threshold must be between 0 and 1, not 2"),
        (lambda table: settled(table, 99, 9, 1), "more than the 256 slots"),
        (lambda table: settled(table, -1, 9, 1), "there cannot be -1 bands of 9 rows"),
    ],
)
def test_a_wrong_column_or_setting_is_named(tmp_path, change, message):
    path = written(tmp_path, change(signed([f"{number} {FOX}" for number in range(3)])))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        pyhapax.Index.load(path)
    assert str(error.value).startswith(str(path))


def retold(table, **entries):
    metadata = dict(table.schema.metadata)
    metadata.update({f"hapax.{name}".encode(): value for name, value in entries.items()})
    return table.replace_schema_metadata(metadata)


def settled(table, bands, rows, threshold):
    return retold(table, settings=json.dumps({"bands": bands, "rows": rows, "threshold": threshold}))


def test_threshold_and_banding_are_those_of_the_file_unless_they_are_given(tmp_path):
    path = tmp_path / "index.parquet"
    pyhapax.Index(threshold=0.7).save(path)
    chosen = pyhapax.Index(threshold=0.5)
    loaded = pyhapax.Index.load(path, threshold=0.5)
    assert (loaded.threshold, loaded.bands, loaded.rows) == (0.5, chosen.bands, chosen.rows)
    pyhapax.Index(threshold=0.7, bands=12, rows=5).save(path)
    loaded = pyhapax.Index.load(path, threshold=0.5)
    assert (loaded.threshold, loaded.bands, loaded.rows) == (0.5, 12, 5), "bands by hand stay"
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        pyhapax.Index.load(path, threshold=7)


def test_a_keyed_file_needs_its_key(tmp_path):
    path, key_file = tmp_path / "keyed.parquet", tmp_path / "key"
    key_file.write_text(KEY, encoding="ascii")
    index = pyhapax.Index(key=KEY)
    index.insert("fox", FOX)
    index.save(path)
    assert KEY not in path.read_bytes().decode("latin-1")
    assert pyhapax.Index.load(path, key_file=key_file).check(FOX).verdict == "exact_duplicate"
    for options in [
        {},
        {"key": "f" * 32},
        {"key": "short"},
        {"key_env": "HAPAX_NO_SUCH_KEY"},
        {"key": KEY, "key_env": "X"},
    ]:
        with pytest.raises(ValueError, match="key") as expected:
            pyhapax.Index(index.spec, **options)
        with pytest.raises(ValueError, match="key") as error:
            pyhapax.Index.load(path, **options)
        assert str(error.value) == str(expected.value)
    pyhapax.Index().save(path)
    with pytest.raises(ValueError, match="the spec says key=none"):
        pyhapax.Index.load(path, key=KEY)


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    path = tmp_path / "index.parquet"
    with pytest.raises(FileNotFoundError, match="index.parquet"):
        pyhapax.Index.load(path)
    varied(near_texts(1, 300)).save(path)
    whole = path.read_bytes()
    for content in [b"", b"PAR1", b'{"id": "a"}', whole[: len(whole) // 2], whole[:-1]]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"{path}: it is not Parquet, or it is cut or damaged")):
            pyhapax.Index.load(path)
    with pytest.raises((ValueError, OSError)):
        pyhapax.Index.load(tmp_path)


def test_a_signature_that_was_damaged_on_disk_is_found(tmp_path):
    path, index = tmp_path / "index.parquet", pyhapax.Index()
    index.deduplicate(near_texts(2, 200), ids=[str(row) for row in range(200)])
    index.save(path)
    content = bytearray(path.read_bytes())
    at = content.index(pq.read_table(path)["signature"][7].as_py())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cut or damaged"):
        pyhapax.Index.load(path)


def test_a_failure_leaves_the_file_of_before(tmp_path, monkeypatch):
    path, index = tmp_path / "index.parquet", varied(near_texts(1, 20))
    index.save(path)
    before = path.read_bytes()
    for failure in [OSError(28, "No space left on device"), KeyboardInterrupt()]:

        def fails(*_, failure=failure):
            raise failure

        with monkeypatch.context() as patched:
            patched.setattr(pq.ParquetWriter, "write_batch", fails)
            with pytest.raises(type(failure)):
                index.save(path)
        assert os.listdir(tmp_path) == ["index.parquet"]
        assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError):
        index.save(tmp_path / "no such folder" / "index.parquet")
    index.insert("one more", FOX)
    index.save(path)
    assert "one more" in pyhapax.Index.load(path)


def test_without_pyarrow_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    expected = r"needs pyarrow: pip install 'pyhapax\[arrow\]'$"
    with pytest.raises(ImportError, match="Index.save " + expected):
        pyhapax.Index().save(tmp_path / "index.parquet")
    with pytest.raises(ImportError, match="Index.load " + expected):
        pyhapax.Index.load(tmp_path / "index.parquet")
    assert os.listdir(tmp_path) == []
