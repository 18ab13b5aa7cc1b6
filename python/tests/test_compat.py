"""pyhapax.compat, compared with datasketch."""

import importlib
import pickle
import random
import statistics

import pytest

from pyhapax.compat import MinHash, MinHashLSH

# A script for both libraries. Only the import differs.
SCRIPT = """
from {module} import MinHash, MinHashLSH

def sketch(words):
    minhash = MinHash(num_perm=NUM_PERM)
    for word in words:
        minhash.update(word.encode("utf8"))
    return minhash

lsh = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_PERM)
sketches = [sketch(words) for words in SETS]
for number, minhash in enumerate(sketches):
    lsh.insert(number, minhash)
found = [sorted(lsh.query(minhash)) for minhash in sketches]
estimates = [sketches[a].jaccard(sketches[b]) for a, b in PAIRS]
counts = [minhash.count() for minhash in sketches]
bands = (lsh.b, lsh.r)
lsh.remove(0)
left = (0 in lsh, 1 in lsh, 0 in lsh.query(sketches[0]))
"""


def pairs_of_sets(seed, pairs, words=60):
    """Pairs of sets of every similarity, with their true similarities."""
    generator = random.Random(seed)
    sets, truth = [], []
    for number in range(pairs):
        shared = generator.randint(0, words)
        common = {f"{number} c{n}" for n in range(shared)}
        a = common | {f"{number} a{n}" for n in range(words - shared)}
        b = common | {f"{number} b{n}" for n in range(words - shared)}
        sets += [sorted(a), sorted(b)]
        truth.append(len(a & b) / len(a | b))
    return sets, truth


def run(module, sets, pairs, threshold=0.5, num_perm=128):
    names = {"SETS": sets, "PAIRS": pairs, "THRESHOLD": threshold, "NUM_PERM": num_perm}
    exec(SCRIPT.format(module=module), names)
    return names


def proposed(made, pairs):
    return [b in made["found"][a] for a, b in pairs]


@pytest.mark.parametrize(("threshold", "num_perm"), [(0.5, 128), (0.8, 128), (0.7, 100), (0.6, 250)])
def test_a_script_of_datasketch_changes_its_import(threshold, num_perm):
    pytest.importorskip("datasketch")
    sets, truth = pairs_of_sets(3, 400)
    pairs = [(2 * n, 2 * n + 1) for n in range(400)]
    ours = run("pyhapax.compat", sets, pairs, threshold, num_perm)
    theirs = run("datasketch", sets, pairs, threshold, num_perm)
    assert ours["bands"] == theirs["bands"]
    assert ours["left"] == theirs["left"] == (False, True, False)
    assert all(number in found for number, found in enumerate(ours["found"]))
    # The S-curve predicts how many pairs of each similarity share a band. Both libraries must be equally near to it.
    bands, rows = ours["bands"]
    chances = [1 - (1 - s**rows) ** bands for s in truth]
    expected, spread = sum(chances), sum(p * (1 - p) for p in chances) ** 0.5
    for made in [ours, theirs]:
        assert abs(sum(proposed(made, pairs)) - expected) < 4.5 * spread + 1
    for made in [ours, theirs]:
        errors = [estimate - s for estimate, s in zip(made["estimates"], truth, strict=True)]
        assert abs(statistics.mean(errors)) < 0.01
        assert statistics.pstdev(errors) < 1.15 * (0.5 / num_perm**0.5)
        assert statistics.median(made["counts"]) == pytest.approx(60, rel=0.1)


@pytest.mark.parametrize("num_perm", [1, 2, 63, 64, 100, 128, 1000, 1024, 1500, 4096])
def test_any_number_of_permutations_estimates_without_bias(num_perm):
    sets, truth = pairs_of_sets(7, 60 if num_perm > 200 else 400)
    errors = []
    for number, s in enumerate(truth):
        a, b = MinHash(num_perm), MinHash(num_perm)
        a.update_batch(word.encode() for word in sets[2 * number])
        b.update_batch(word.encode() for word in sets[2 * number + 1])
        errors.append(a.jaccard(b) - s)
        assert len(a) == len(a.digest()) == num_perm
    expected = statistics.mean(s * (1 - s) for s in truth) ** 0.5 / num_perm**0.5
    assert abs(statistics.mean(errors)) < 4 * expected / len(truth) ** 0.5
    assert statistics.pstdev(errors) < 1.4 * expected


def sketch(words, **options):
    minhash = MinHash(**options)
    minhash.update_batch([word.encode() for word in words])
    return minhash


def test_merging_is_the_sketch_of_the_union():
    for num_perm in [50, 128, 2000]:
        a, b = sketch("abcdef", num_perm=num_perm), sketch("defghi", num_perm=num_perm)
        union = sketch("abcdefghi", num_perm=num_perm)
        assert MinHash.union(a, b) == union
        merged = a.copy()
        merged.merge(b)
        assert merged == union
        assert a != union, "a copy is one of its own"
        a.merge(a)
        assert a == sketch("abcdef", num_perm=num_perm)


def test_one_by_one_is_the_same_as_in_batches():
    one = MinHash(100)
    for word in "abcdef":
        one.update(word.encode())
    assert one == sketch("fedcba", num_perm=100)
    assert one.jaccard(sketch("abcdef", num_perm=100)) == 1.0
    assert MinHash.bulk([[b"a"], [b"b"]], num_perm=100) == [sketch("a", num_perm=100), sketch("b", num_perm=100)]


def test_counts_are_near_the_truth():
    for count in [1, 10, 1000, 50_000]:
        minhash = sketch(map(str, range(count)), num_perm=512)
        assert minhash.count() == pytest.approx(count, rel=0.2)
    assert MinHash().count() == 0
    assert MinHash().is_empty()
    cleared = sketch("abc")
    cleared.clear()
    assert cleared == MinHash()


def test_hash_values_make_the_same_sketch_again():
    minhash = sketch("abc", num_perm=77)
    assert MinHash(hashvalues=minhash.hashvalues) == minhash
    assert pickle.loads(pickle.dumps(minhash)) == minhash
    np = pytest.importorskip("numpy")
    assert np.asarray(minhash.digest()).dtype == np.uint64


def test_seeds_and_hash_functions_are_respected():
    assert sketch("abc", seed=1) != sketch("abc", seed=2)
    with pytest.raises(ValueError, match="seeds 1 and 2"):
        sketch("abc", seed=1).jaccard(sketch("abc", seed=2))
    with pytest.raises(ValueError, match="64 and 128 permutations"):
        sketch("abc", num_perm=64).merge(sketch("abc", num_perm=128))
    lengths = MinHash(hashfunc=len)
    lengths.update("abc")
    same = MinHash(hashfunc=len)
    same.update_batch(["xyz", "def"])
    assert lengths == same
    with pytest.raises(TypeError, match=r"must be bytes, not str; encode text with \.encode"):
        MinHash().update("abc")
    with pytest.raises(ValueError, match="not supported"):
        MinHash(permutations=[1])


def test_lsh_refuses_what_datasketch_refuses():
    lsh = MinHashLSH(threshold=0.5, num_perm=64)
    lsh.insert("a", sketch("abc", num_perm=64))
    with pytest.raises(ValueError, match="already exists"):
        lsh.insert("a", sketch("abc", num_perm=64))
    with pytest.raises(ValueError, match="does not exist"):
        lsh.remove("b")
    with pytest.raises(ValueError, match="Expecting minhash with length 64, got 128"):
        lsh.query(sketch("abc"))
    for options, expected in [
        ({"threshold": 1.5}, "between"),
        ({"num_perm": 1}, "at least 2"),
        ({"params": (20, 20)}, "more than the 128"),
        ({"params": (0, 20)}, "more than the 128"),
        ({"weights": (0.2, 0.8)}, "params"),
        ({"storage_config": {"type": "redis"}}, "storage"),
        ({"threshold": 1.0}, "too high"),
    ]:
        with pytest.raises(ValueError, match=expected):
            MinHashLSH(**options)


def test_lsh_keys_come_and_go():
    lsh = MinHashLSH(params=(32, 4))
    for key in ["a", ("b", 1), 2]:
        lsh.insert(key, sketch("abcdefgh"))
    assert sorted(map(str, lsh.query(sketch("abcdefgh")))) == ["('b', 1)", "2", "a"]
    lsh.insert("a", sketch("other"), check_duplication=False)
    assert "a" not in lsh.query(sketch("abcdefgh"))
    assert len(lsh) == 3
    other = MinHashLSH(params=(32, 4))
    with other.insertion_session() as session:
        session.insert("z", sketch("abcdefgh"))
    lsh.merge(other, check_overlap=True)
    with pytest.raises(ValueError, match="overlapping"):
        lsh.merge(other, check_overlap=True)
    assert "z" in lsh.query(sketch("abcdefgh"))
    for key in lsh.keys:
        lsh.remove(key)
    assert lsh.is_empty()
    assert lsh.get_counts() == [{}] * 32
    assert pickle.loads(pickle.dumps(other)).query(sketch("abcdefgh")) == ["z"]


def test_modules_have_the_names_that_scripts_import():
    module = importlib.import_module("pyhapax.compat")
    assert set(module.__all__) == {"MinHash", "MinHashLSH"}
