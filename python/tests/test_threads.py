"""Threads, forks and signals."""

import os
import signal
import sys
import threading
import time

import pytest
from conftest import same_rows
from interrupts import interrupted

import pyhapax

TEXT = "a sentence of a few words, which is repeated until there is enough of it; " * 30


def big(count):
    return [f"{TEXT}{number}" for number in range(count)]


def test_every_number_of_threads_gives_the_same_rows(texts):
    signer = pyhapax.Signer()
    many = [*texts, None] * 5 + big(2000)
    expected = signer.sign_batch(many, threads=1)
    for threads in [2, 3, 8]:
        assert same_rows(signer.sign_batch(many, threads=threads), expected)
    assert same_rows(signer.sign_batch(many), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_other_threads_run_python_meanwhile(threads):
    texts, signer = big(3000), pyhapax.Signer(sketch="classic1024x8")
    counted, done = 0, threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted
        signer.sign_batch(texts, threads=threads)
        meanwhile = counted - before
    finally:
        done.set()
        thread.join()
    assert meanwhile > 100


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


def threads_that_stay():
    """The number of threads of the process, without threads of an earlier test that are just ending."""
    counts = [threads_of_process()]
    for _ in range(30):
        time.sleep(0.01)
        counts.append(threads_of_process())
    return min(counts)


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads of the process by /proc")
def test_one_thread_starts_none_and_none_is_left():
    texts, signer = big(5000), pyhapax.Signer()
    counts, done = [], threading.Event()

    def watch():
        while not done.wait(0.0005):
            counts.append(threads_of_process())

    before = threads_that_stay()
    thread = threading.Thread(target=watch)
    thread.start()
    signer.sign_batch(texts, threads=1)
    alone = max(counts)
    signer.sign_batch(texts, threads=3)
    done.set()
    thread.join()
    assert alone == before + 1
    assert max(counts) == before + 4
    # The system removes an ended thread a little later.
    limit = time.monotonic() + 10
    while threads_of_process() > before and time.monotonic() < limit:
        time.sleep(0.01)
    assert threads_of_process() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_use_works():
    texts, signer = big(3000), pyhapax.Signer()
    index = pyhapax.Index()
    index.insert("a", TEXT)
    expected = signer.sign_batch(texts, threads=4)
    child = os.fork()
    if child == 0:
        same = same_rows(signer.sign_batch(texts, threads=4), expected) and index.check(TEXT).is_duplicate
        os._exit(0 if same else 1)
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


INTERRUPTED = """
import sys, time, pyhapax
text = "a sentence of a few words, which is repeated until there is enough of it; "
kind, threads = sys.argv[1], int(sys.argv[2])
signer = pyhapax.Signer(sketch="classic1024x8")
def endless():
    while True:
        yield text * 30
if kind == "arrow":
    import pyarrow as pa
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000_000, pa.int8()), pa.array([text * 30]))
    work = lambda: signer.sign_batch(column, threads=threads)
elif kind == "text":
    long = text * 20_000_000
    work = lambda: signer.sign(long)
elif kind == "deduplicate":
    work = lambda: pyhapax.Index(sketch="classic1024x8").deduplicate(endless(), threads=threads)
else:
    work = lambda: signer.sign_batch(endless(), threads=threads)
print("ready", flush=True)
try:
    work()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("kind", "threads"), [("list", 1), ("list", 2), ("arrow", 1), ("arrow", 2), ("text", 1), ("deduplicate", 2)]
)
def test_ctrl_c_ends_a_long_batch_within_a_second(kind, threads):
    if kind == "arrow":
        pytest.importorskip("pyarrow")
    # On a busy machine the signal itself may come late, so the test has three attempts.
    assert any(seconds_to_the_end(kind, threads) < 1.0 for _ in range(3))


def seconds_to_the_end(kind, threads):
    with interrupted([sys.executable, "-c", INTERRUPTED, kind, str(threads)]) as (process, sent):
        seconds = time.monotonic() - sent
        process.kill()
    return seconds


def test_an_index_is_used_by_many_threads():
    index = pyhapax.Index()
    texts = [f"{number} {TEXT[:number]} {number}" for number in range(300)]
    failed = []

    def work(first):
        try:
            for number in range(first, 300, 4):
                index.insert(str(number), texts[number], on_duplicate="store")
                index.check(texts[number - 1])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(index) == 300


def test_a_slow_source_does_not_fill_memory():
    """Threads sign faster than a generator makes texts, so their queue is always empty."""
    taken, taken_before_ids = 0, []

    def texts():
        nonlocal taken
        for number in range(4000):
            taken += 1
            yield f"{TEXT * 5}{number}"

    def ids():
        for number in range(4000):
            taken_before_ids.append(taken)
            yield str(number)

    pyhapax.Index().deduplicate(texts(), ids(), threads=2)
    assert taken == 4000
    assert taken_before_ids[0] < 3000, "the results of the first texts were used before all texts were taken"
