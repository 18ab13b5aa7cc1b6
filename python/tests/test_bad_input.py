"""Bad input raises an exception that names the row and the column. Nothing panics, and bad input is never signed."""

import pytest

import pyhapax


@pytest.fixture(scope="module")
def signer():
    return pyhapax.Signer()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("bad", "kind"), [(5, "int"), (b"bytes", "bytes"), (float("nan"), "float"), (["a"], "list")])
def test_a_row_that_is_no_text_is_named(signer, bad, kind, threads):
    with pytest.raises(TypeError, match=rf"^texts, row 2500: a text must be a str or None, not {kind}$"):
        signer.sign_batch(["word"] * 2500 + [bad], threads=threads)
    with pytest.raises(TypeError, match=rf"not {kind}"):
        signer.sign(bad)


def test_a_lone_surrogate_is_named(signer):
    expected = r"texts, row 1: the text is not well-formed Unicode: it has a lone surrogate at character 3"
    with pytest.raises(ValueError, match=expected):
        signer.sign_batch(["fine", "abc\ud800"])
    with pytest.raises(ValueError, match=r"^text: .*lone surrogate at character 0$"):
        signer.sign("\udfff")
    for refused in [lambda: signer.ranks("\ud800"), lambda: pyhapax.Index().check("\ud800")]:
        with pytest.raises(ValueError, match="lone surrogate"):
            refused()


@pytest.mark.parametrize("one", ["a text", b"a text", bytearray(b"a text")])
def test_a_single_text_is_no_list_of_texts(signer, one):
    with pytest.raises(TypeError, match="for a single text use sign"):
        signer.sign_batch(one)


@pytest.mark.parametrize("nothing", [None, 5, object(), pyhapax.Signer])
def test_what_cannot_be_iterated_is_refused(signer, nothing):
    with pytest.raises(TypeError, match="must be a list or a column of texts"):
        signer.sign_batch(nothing)
    with pytest.raises(TypeError):
        signer.band_keys(nothing, 31, 8)


def test_an_exception_of_an_iterable_comes_through(signer):
    def texts():
        yield "one"
        raise LookupError("the disk is gone")

    for threads in [1, 2]:
        with pytest.raises(LookupError, match="the disk is gone"):
            signer.sign_batch(texts(), threads=threads)


def test_numbers_out_of_range_are_refused(signer):
    for threads in [0, 1025]:
        with pytest.raises(ValueError, match="threads must be between 1 and 1024"):
            signer.sign_batch([], threads=threads)
    with pytest.raises(OverflowError):
        signer.sign_batch([], threads=-1)
    for bands, rows in [(0, 8), (8, 0), (33, 8), (2**31, 2**31)]:
        with pytest.raises(ValueError, match="band"):
            signer.band_keys(signer.sign("a"), bands, rows)
    for threshold in [-0.1, 1.1, float("nan")]:
        with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
            pyhapax.Index(threshold=threshold)
    with pytest.raises(ValueError, match="points"):
        pyhapax.tune().curve(10**9)


def test_specs_are_refused_with_what_they_must_be():
    for spec, expected in [
        ("", "hapax1;"),
        ("hapax1;unicode=17", "fold="),
        (pyhapax.Signer().spec.replace("17", "16"), "must be 17"),
        (pyhapax.Signer().spec.replace("nfkc_casefold", "upper"), "nfkc_casefold, nfkc or none"),
        ("hapax1;external:datasketch:128x64", "made elsewhere"),
    ]:
        with pytest.raises(ValueError, match=expected):
            pyhapax.Signer(spec)
    for sketch in ["fss100x8", "fss256x64", "md5", "", "fss256x8;key=none"]:
        with pytest.raises(ValueError, match="sketch|key"):
            pyhapax.Signer(sketch=sketch)


def test_signatures_of_a_wrong_width_are_named(signer):
    with pytest.raises(ValueError, match="fss256x8 has 256 bytes, not 255"):
        pyhapax.Signature(bytes(255), signer.spec)
    with pytest.raises(TypeError, match="data must be bytes, not str"):
        pyhapax.Signature("00", signer.spec)
    with pytest.raises(ValueError, match="256 bytes, but the shape"):
        signer.band_keys(bytes(100), 31, 8)
    with pytest.raises(ValueError, match="signatures, row 1"):
        signer.band_keys([bytes(256), bytes(8)], 31, 8)
    with pytest.raises(TypeError, match="signatures, row 1: expected a Signature, bytes or None, not str"):
        signer.band_keys([bytes(256), "x" * 256], 31, 8)
    with pytest.raises(TypeError, match="a must be|a, row"):
        signer.matching("x", bytes(256))


def test_forged_pickles_are_refused(signer):
    from pyhapax import _native

    with pytest.raises(ValueError, match="256 bytes"):
        _native.restore_signature(signer.spec, bytes(3), None, None)
    with pytest.raises(ValueError, match="hapax1;"):
        _native.restore_signature("nonsense", bytes(256), None, None)
    with pytest.raises(ValueError, match="eight bytes"):
        _native.RankSketch.restore(1, bytes(9))
    with pytest.raises(ValueError, match="num_perm"):
        _native.RankSketch.restore(1, b"")
    with pytest.raises(ValueError, match="num_perm"):
        _native.RankSketch(2**62, 1)


def test_columns_that_are_no_texts_are_refused(signer):
    pa = pytest.importorskip("pyarrow")
    for column in [pa.array([1]), pa.array([b"a"]), pa.array([["a"]]), pa.array([True])]:
        with pytest.raises(TypeError, match=r"texts: the column has type \S+; it must be of strings"):
            signer.sign_batch(column)
    with pytest.raises(TypeError, match='column "n": the column has type Int64'):
        signer.sign_batch(pa.table({"n": [1]}))
    with pytest.raises(TypeError, match="type Int64"):
        signer.sign_batch(pa.array([1, 1]).dictionary_encode())
    with pytest.raises(ValueError, match="has 2: a, b; pass one of them"):
        signer.sign_batch(pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(ValueError, match="has 0"):
        signer.sign_batch(pa.table({}))


def buffers(*parts):
    pa = pytest.importorskip("pyarrow")
    return [part if part is None else pa.py_buffer(part) for part in parts]


def int32s(*numbers):
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


@pytest.mark.parametrize(("offsets", "row"), [((0, 2**31 - 1, 8), 0), ((0, 8, 4), 0), ((4, 2, 8), 0), ((0, -4, 8), 0)])
def test_offsets_outside_the_data_are_named(signer, offsets, row):
    pa = pytest.importorskip("pyarrow")
    column = pa.Array.from_buffers(pa.string(), 2, buffers(None, int32s(*offsets), b"one two "))
    with pytest.raises(ValueError, match=f"texts, row {row}: the column is damaged: the text is outside its data"):
        signer.sign_batch(column)


def test_a_damaged_row_is_named(signer):
    pa = pytest.importorskip("pyarrow")
    data = b"one two " + b"\xff\xfe" + b"three"
    column = pa.Array.from_buffers(pa.string(), 3, buffers(None, int32s(0, 8, 10, 15), data))
    with pytest.raises(ValueError, match="texts, row 1: the column is damaged: the text is not UTF-8"):
        signer.sign_batch(column)
    with pytest.raises(ValueError, match='column "t", row 2001: .* not UTF-8'):
        signer.sign_batch(pa.table({"t": pa.chunked_array([["word"] * 2000, column])}), threads=2)
    # The last character of the first text is cut.
    column = pa.Array.from_buffers(pa.string(), 2, buffers(None, int32s(0, 2, 5), "aé b".encode()))
    with pytest.raises(ValueError, match="row 0: .* not UTF-8"):
        signer.sign_batch(column)


def test_damaged_views_are_named(signer):
    pa = pytest.importorskip("pyarrow")

    def view(length, buffer, offset):
        return int32s(length) + b"long" + int32s(buffer, offset)

    for damaged in [view(20, 0, 90), view(20, 1, 0), view(2**31 - 1, 0, 0), view(20, -1, 0), view(20, 0, -1)]:
        views = view(20, 0, 0) + damaged
        column = pa.Array.from_buffers(pa.string_view(), 2, buffers(None, views, b"long text of a view " * 5))
        with pytest.raises((ValueError, RuntimeError), match="row 1|damaged|view"):
            signer.sign_batch(column)


def test_keys_outside_a_dictionary_are_named(signer):
    pa = pytest.importorskip("pyarrow")
    keys = pa.array([0, 1, 7, -1], pa.int8())
    column = pa.DictionaryArray.from_arrays(keys, pa.array(["one", "two"]), safe=False)
    with pytest.raises(ValueError, match="texts, row 2: the column is damaged"):
        signer.sign_batch(column)
    keys = pa.array([0, -1], pa.int8())
    column = pa.DictionaryArray.from_arrays(keys, pa.array(["one"]), safe=False)
    with pytest.raises(ValueError, match="texts, row 1: the column is damaged"):
        signer.sign_batch(column)


class Lies:
    """An object with a method of Arrow's interface, which returns the given answer."""

    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_array__(self, requested_schema=None):
        return self.answer


def test_objects_that_only_look_like_arrow_are_refused(signer):
    pa = pytest.importorskip("pyarrow")
    schema, array = pa.array(["a"]).__arrow_c_array__()
    for answer in [None, (), (1, 2), (schema, schema), (array, array)]:
        with pytest.raises((TypeError, ValueError)):
            signer.sign_batch(Lies(answer))
    once = Lies(pa.array(["a"]).__arrow_c_array__())
    assert len(signer.sign_batch(once)) == 1
    with pytest.raises((TypeError, ValueError)):
        signer.sign_batch(once)


def test_a_producer_that_fails_comes_through(signer):
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"t": ["a"]})
        raise LookupError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"t": pa.string()}), batches())
    with pytest.raises(ValueError, match="the disk is gone"):
        signer.sign_batch(reader)


def test_buffers_cannot_be_written(signer):
    batch = signer.sign_batch(["one two three"])
    for shown in [batch, batch[0], batch.shingles]:
        with pytest.raises(TypeError):
            memoryview(shown)[0] = 1


@pytest.mark.parametrize("text", ["\0", "\0" * 70_000, "e" + "\u0301" * 100_000, "\U0010ffff" * 1000, "a" * 3_000_000])
def test_odd_texts_are_signed_the_same_everywhere(signer, text):
    pa = pytest.importorskip("pyarrow")
    alone = signer.sign(text)
    for column in [[text], pa.array([text]), pa.array([text], pa.string_view()), pa.array([text], pa.large_string())]:
        assert signer.sign_batch(column)[0] == alone
