"""Arrow as input and output, with every library that supports it."""

import os
import subprocess
import sys

import pytest
from conftest import same_rows

import pyhapax

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def signer():
    return pyhapax.Signer()


@pytest.fixture(scope="module")
def rows(texts):
    """The texts, with a null after every tenth text."""
    rows = []
    for number, text in enumerate(texts):
        rows.append(text)
        if number % 10 == 0:
            rows.append(None)
    return rows


@pytest.fixture(scope="module")
def expected(signer, rows):
    return signer.sign_batch(rows)


TYPES = [pa.string(), pa.large_string(), pa.string_view()]
KEYS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_layout_of_strings_is_read(signer, rows, expected, kind):
    assert same_rows(signer.sign_batch(pa.array(rows, kind)), expected)
    assert same_rows(signer.sign_batch(pa.chunked_array([rows[:7], [], rows[7:]], kind)), expected)
    assert same_rows(signer.sign_batch(pa.table({"text": pa.array(rows, kind)})), expected)
    assert same_rows(signer.sign_batch(pa.record_batch({"text": pa.array(rows, kind)})), expected)
    padded = pa.array(["before", None, *rows, "after"], kind)
    assert same_rows(signer.sign_batch(padded.slice(2, len(rows))), expected)


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_dictionaries_are_read(signer, keys):
    texts = ["one two three", None, "", "four five six", "one two three"] * 5
    column = pa.array(texts).dictionary_encode().cast(pa.dictionary(keys, pa.string()))
    expected = signer.sign_batch(texts)
    assert same_rows(signer.sign_batch(column), expected)
    assert same_rows(signer.sign_batch(pa.chunked_array([column.slice(0, 3), column.slice(3)])), expected)


def test_a_null_in_the_values_of_a_dictionary_is_a_null(signer):
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array([None, "one two"]))
    assert [signer.sign_batch(column).outcome(row) for row in range(4)] == ["null", "signed", "null", "signed"]


def test_columns_without_rows_and_of_nulls(signer):
    assert len(signer.sign_batch(pa.array([], pa.string()))) == 0
    assert len(signer.sign_batch(pa.chunked_array([], pa.string()))) == 0
    assert signer.sign_batch(pa.nulls(3)).null_rows == [0, 1, 2]


def test_polars_columns_are_read(signer, rows, expected):
    pl = pytest.importorskip("polars")
    series = pl.Series("text", rows)
    assert same_rows(signer.sign_batch(series), expected)
    assert same_rows(signer.sign_batch(series.to_frame()), expected)
    assert same_rows(signer.sign_batch(pl.concat([series[:100], series[100:]], rechunk=False)), expected)
    category = pl.Series("text", ["a b", None, "c d", "a b"], dtype=pl.Categorical)
    assert same_rows(signer.sign_batch(category), signer.sign_batch(["a b", None, "c d", "a b"]))


def test_pandas_columns_are_read(signer, rows, expected):
    pd = pytest.importorskip("pandas")
    assert same_rows(signer.sign_batch(pd.Series(rows, dtype=pd.ArrowDtype(pa.string()))), expected)
    assert same_rows(signer.sign_batch(pd.Series(rows, dtype=pd.ArrowDtype(pa.large_string()))), expected)
    assert same_rows(signer.sign_batch(pd.Series(rows, dtype=object)), expected)
    assert same_rows(signer.sign_batch([pd.NA if text is None else text for text in rows]), expected)
    frame = pd.DataFrame({"text": pd.Series(rows, dtype=pd.ArrowDtype(pa.string()))})
    assert same_rows(signer.sign_batch(frame), expected)


def test_duckdb_results_are_read(signer, texts):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    table = pa.table({"number": list(range(len(texts))), "text": texts})
    connection.register("t", table)
    result = connection.sql("select text from t order by number")
    assert same_rows(signer.sign_batch(result), signer.sign_batch(texts))
    with pytest.raises(ValueError, match="has 2: number, text"):
        signer.sign_batch(connection.sql("select * from t"))


def test_a_batch_is_an_arrow_table(signer, texts):
    batch = signer.sign_batch([*texts, None])
    for table in [pa.table(batch), pa.table(pa.record_batch(batch))]:
        assert table.num_rows == len(batch)
        assert table.schema.types == [pa.binary(256), pa.binary(16), pa.uint64()]
        assert table.schema.names == ["signature", "content_hash", "shingles"]
        assert table.schema.metadata == {
            b"hapax.spec": signer.spec.encode(),
            b"hapax.fingerprint": signer.fingerprint.encode(),
        }
        assert table["signature"].to_pylist() == batch.signatures.to_list()
        assert table["content_hash"].to_pylist() == batch.content_hashes.to_list()
        assert table["shingles"].to_pylist() == batch.shingles.to_list()
    # The number of shingles distinguishes a null from an empty text.
    last, first = table.slice(len(texts)).to_pylist()[0], table.to_pylist()[0]
    assert (last["signature"], last["shingles"]) == (None, None)
    assert (first["signature"], first["shingles"]) == (None, 0)
    table.validate(full=True)


def test_a_batch_goes_through_parquet_and_back(signer, texts, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    batch = signer.sign_batch(texts)
    pq.write_table(pa.table(batch), tmp_path / "signatures.parquet")
    table = pq.read_table(tmp_path / "signatures.parquet")
    assert table.schema.metadata[b"hapax.fingerprint"].decode() == signer.fingerprint
    column = table["signature"]
    assert signer.matching(column, batch).to_list() == [None if s is None else 256 for s in batch]
    assert signer.band_keys(column, 31, 8).to_list() == signer.band_keys(batch, 31, 8).to_list()
    with pytest.raises(ValueError, match="256 bytes, not 16"):
        signer.band_keys(table["content_hash"], 31, 8)
    with pytest.raises(TypeError, match="type UInt64"):
        signer.band_keys(table["shingles"], 31, 8)


def test_columns_are_arrow_arrays(signer, texts):
    pl = pytest.importorskip("polars")
    batch = signer.sign_batch(texts)
    keys = pa.array(signer.band_keys(batch, 31, 8))
    assert keys.type == pa.list_(pa.uint64(), 31)
    assert keys.to_pylist() == signer.band_keys(batch, 31, 8).to_list()
    counts = signer.matching(batch[3], batch)
    assert pa.array(counts).to_pylist() == counts.to_list()
    assert pl.Series(counts).to_list() == counts.to_list()
    assert pl.DataFrame(batch)["shingles"].to_list() == batch.shingles.to_list()


def test_memory_is_shown_to_numpy(signer, texts):
    np = pytest.importorskip("numpy")
    batch = signer.sign_batch(texts)
    signed = batch.signed()
    matrix = np.asarray(signed)
    assert (matrix.dtype, matrix.shape) == (np.uint8, (len(batch.signed_rows), 256))
    assert not matrix.flags.writeable
    assert matrix.tobytes() == b"".join(bytes(signature) for signature in signed)
    assert np.asarray(signed.signatures).tobytes() == matrix.tobytes()
    assert np.asarray(signed.content_hashes).shape == (len(signed), 16)
    assert np.asarray(batch.shingles).tolist() == batch.shingles.to_list()
    keys = signer.band_keys(signed, 31, 8)
    assert (np.asarray(keys).dtype, np.asarray(keys).tolist()) == (np.uint64, keys.to_list())
    assert signer.band_keys(matrix, 31, 8).to_list() == keys.to_list()
    assert signer.band_keys(matrix[0], 31, 8) == keys[0]
    assert signer.band_keys(matrix[::2], 31, 8).to_list() == keys.to_list()[::2]
    assert np.frombuffer(signed[0], np.uint8).tolist() == matrix[0].tolist()
    for gaps in [batch, batch.signatures]:
        with pytest.raises(BufferError, match="the first of them row 0"):
            np.asarray(gaps)
        with pytest.raises(BufferError, match="null"):
            memoryview(gaps)


def test_views_outlive_their_batch(signer):
    view = memoryview(signer.sign_batch(["one two three"] * 1000))
    expected = bytes(signer.sign("one two three"))
    assert (view.shape, view.strides, view.format, view.readonly) == ((1000, 256), (256, 1), "B", True)
    assert view.tobytes() == expected * 1000


def test_an_index_takes_columns(texts):
    pl = pytest.importorskip("polars")
    expected = pyhapax.deduplicate(texts)
    assert pyhapax.deduplicate(pl.Series(texts)) == expected
    assert pyhapax.deduplicate(pa.array(texts, pa.string_view())) == expected


GROWTH = """
import sys, threading
import psutil, pyarrow as pa, pyhapax
text = "a sentence of a few words, which is repeated until there is enough of it; "
column = pa.array([text * 33 + str(n) for n in range(40_000)]) if sys.argv[1] == "arrow" else None
listed = None if column is not None else [text * 33 + str(n) for n in range(40_000)]
size = column.nbytes if column is not None else sum(map(len, listed))
signer = pyhapax.Signer(sketch="fss64x8")
signer.sign_batch(["warm up"] * 10)
process, most = psutil.Process(), 0
before = process.memory_info().rss
done = threading.Event()
def watch():
    global most
    while not done.wait(0.002):
        most = max(most, process.memory_info().rss)
thread = threading.Thread(target=watch)
thread.start()
batch = signer.sign_batch(column if column is not None else listed)
done.set()
thread.join()
assert len(batch) == 40_000
print(size, max(most, process.memory_info().rss) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux")
@pytest.mark.parametrize("kind", ["arrow", "list"])
def test_texts_are_not_copied(kind):
    pytest.importorskip("psutil")
    run = [sys.executable, "-c", GROWTH, kind]
    made = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ)
    size, growth = map(int, made.stdout.split())
    assert size > 90_000_000
    assert growth < size / 4, f"{growth} bytes more for {size} bytes of text"
