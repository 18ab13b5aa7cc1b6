"""`bulk` of pyhapax.client with a real server: it sends and receives at once, in bounded memory, and ends cleanly."""

import asyncio
import queue
import threading
import time
import tracemalloc

import pytest
from extra import client_extra
from served import Served, needs_server
from test_client_server import make_key

client = client_extra()

from pyhapax.client import bulk as engine  # noqa: E402

DOCUMENTS = 50_000
WORDS = "of many texts that have the same words except for their number"


def text(row):
    return f"{row} {WORDS} {row}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def made(server):
    with client.Client(server.url) as made:
        yield made


class Source:
    """Yields documents, and counts how many were taken."""

    def __init__(self, count, length=0):
        self.count, self.filling, self.taken, self.ended = count, "x" * length, 0, False

    def __iter__(self):
        try:
            for row in range(self.count):
                self.taken += 1
                yield {"id": str(row), "text": f"{text(row)} {self.filling}"}
        finally:
            self.ended = True

    async def in_a_loop(self):
        for document in self:
            yield document


@needs_server
def test_a_slow_consumer_slows_the_upload(made):
    source, most, answered = Source(DOCUMENTS), 0, 0
    for answer in made.bulk("check", source):
        assert answer.id == str(answered)
        most = max(most, source.taken - answered)
        answered += 1
        if answered % 20_000 == 0:
            time.sleep(0.5)
            assert source.taken - answered <= engine.DOCUMENTS_MAX
    assert answered == DOCUMENTS
    assert 1 < most <= engine.DOCUMENTS_MAX


@needs_server
def test_memory_is_bounded_by_bytes_too(made):
    length, count = 200_000, 400
    tracemalloc.start()
    try:
        answers = made.bulk("check", Source(count, length))
        next(answers)
        time.sleep(1)
        assert sum(1 for _ in answers) == count - 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * engine.DOCUMENT_BYTES_MAX < length * count


@needs_server
def test_an_async_client_is_bounded_too(server):
    async def run():
        source, most, answered = Source(5000), 0, 0
        async with client.AsyncClient(server.url) as made:
            async for _ in made.bulk("check", source.in_a_loop()):
                most = max(most, source.taken - answered)
                answered += 1
        assert answered == 5000
        assert 1 < most <= engine.DOCUMENTS_MAX

    asyncio.run(run())


def test_large_answers_make_the_window_smaller():
    window = engine.Window()
    assert window.free().documents == engine.GRANT_MAX
    window.saw_answer(engine.ANSWER_BYTES_MAX // 2)
    assert window.free().documents == 2
    window.saw_answer(engine.ANSWER_BYTES_MAX * 2)
    assert window.free().documents == 1
    window.enter(engine.DOCUMENT_BYTES_MAX)
    assert window.free().documents == 0
    window.leave(1)
    assert window.free() == engine.Grant(1, engine.DOCUMENT_BYTES_MAX)


@needs_server
def test_a_document_may_wait_for_the_answer_before_it(made):
    answers = queue.Queue()

    def documents():
        for row in range(100):
            yield {"id": str(row), "text": text(row)}
            assert answers.get(timeout=30).id == str(row)

    assert sum(answers.put(answer) is None for answer in made.bulk("check", documents())) == 100


@needs_server
def test_a_document_may_wait_for_the_answer_before_it_in_an_event_loop(server):
    async def run():
        answers = asyncio.Queue()

        async def documents():
            for row in range(100):
                yield {"id": str(row), "text": text(row)}
                assert (await answers.get()).id == str(row)

        async with client.AsyncClient(server.url) as made:
            async for answer in made.bulk("check", documents()):
                answers.put_nowait(answer)

    asyncio.run(asyncio.wait_for(run(), 60))


@needs_server
def test_progress_and_summary_count_documents_and_errors(made):
    documents = [{"id": str(row), "text": text(row)} if row % 10 else {"id": str(row)} for row in range(50)]
    told = []
    bulk = made.bulk("check", documents, progress=told.append)
    assert [isinstance(answer, client.FailedDocument) for answer in bulk] == [row % 10 == 0 for row in range(50)]
    assert told[-1] == client.Progress(sent=50, answered=50, errors=5)
    assert [each.answered for each in told] == list(range(1, 51))
    assert (bulk.summary.documents, bulk.summary.errors) == (50, 5)
    assert list(made.bulk("check", [])) == []


@needs_server
def test_it_can_be_ended_early(made):
    source = Source(10**9)
    with made.bulk("check", source) as answers:
        assert next(answers).id == "0"
    wait_for(lambda: source.ended)
    for answer in made.bulk("check", source := Source(10**9)):
        assert answer.id == "0"
        break
    wait_for(lambda: source.ended)
    unused = Source(5)
    made.bulk("check", unused)
    assert (unused.taken, made.version().name) == (0, "hapax")


@needs_server
def test_an_iterator_keeps_its_client(server):
    assert len(list(client.Client(server.url).bulk("check", Source(3000)))) == 3000


@needs_server
def test_an_async_one_can_be_ended_early(server):
    async def run():
        async with client.AsyncClient(server.url) as made:
            async with made.bulk("check", Source(10**9)) as answers:
                assert (await anext(answers)).id == "0"
            async with asyncio.timeout(30):
                async for _ in made.bulk("check", Source(10**9).in_a_loop()):
                    break
            assert (await made.version()).name == "hapax"

    asyncio.run(run())


def wait_for(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_server
def test_an_exception_of_the_documents_comes_after_the_answers_before_it(made):
    def documents():
        for row in range(300):
            yield {"id": str(row), "text": text(row)}
        raise LookupError("mine")

    for given, kind, message in [(documents(), LookupError, "mine"), ([{"text": text(1)}, 5], TypeError, "not int")]:
        answers, got = made.bulk("check", given), []
        with pytest.raises(kind, match=message):
            note(answers, got)
        assert len(got) == (300 if kind is LookupError else 1)
        assert list(answers) == []


def note(answers, got):
    """Keep the answers that come before an exception."""
    for answer in answers:
        got.append(answer)


@needs_server
def test_a_lost_connection_says_how_many_answers_had_arrived(tmp_path):
    server, told = Served(tmp_path), []

    def kill_later(progress):
        told.append(progress.answered)
        if progress.answered == 2000:
            server.process.kill()

    with client.Client(server.url) as made, pytest.raises(client.TransportError) as lost:
        list(made.bulk("insert", Source(10**9), on_duplicate="store", progress=kill_later))
    server.process.wait()
    server.process.stdout.close()
    assert lost.value.answered == told[-1] >= 2000
    assert f"({told[-1]} answers had arrived)" in str(lost.value)


@needs_server
def test_a_revoked_key_ends_the_stream(tmp_path):
    secret, stop = make_key(tmp_path, "crawler", "check"), threading.Event()
    make_key(tmp_path, "other", "check")

    def documents():
        yield {"text": text(0)}
        yield {"text": text(1)}
        stop.wait(60)

    with Served(tmp_path, HAPAX__AUTH__KEYS_FILE="keys.toml") as server, client.Client(server.url, key=secret) as made:
        answers = made.bulk("check", documents())
        next(answers)
        next(answers)
        lines = (tmp_path / "keys.toml").read_text().split("[[key]]")
        (tmp_path / "keys.toml").write_text("[[key]]".join(each for each in lines if '"crawler"' not in each))
        with pytest.raises(client.Unauthorized) as ended:
            next(answers)
        stop.set()
    assert ended.value.answered == 2
    assert secret not in str(ended.value)


@needs_server
def test_a_refusal_comes_before_the_first_document_is_taken(made):
    source = Source(10)
    with pytest.raises(client.NotFound) as refused:
        next(made.bulk("check", source, collection="no-such-collection"))
    assert (source.taken, refused.value.answered) == (0, 0)


@needs_server
def test_pauses_on_both_sides_do_not_end_the_stream(tmp_path, monkeypatch):
    """In this test, the server ends a stream that is idle for a second, or whose answers are not read for a second."""
    monkeypatch.setattr(engine, "EMPTY_LINE_AFTER_S", 0.2)
    limits = {"HAPAX__SERVER__BULK_IDLE_TIMEOUT_MS": "1000", "HAPAX__SERVER__BULK_STALL_TIMEOUT_MS": "1000"}

    def documents():
        yield from Source(3000)
        time.sleep(2.5)
        yield from Source(10)

    with Served(tmp_path, **limits) as server, client.Client(server.url) as made:
        answers = made.bulk("check", documents())
        next(answers)
        time.sleep(2.5)
        assert sum(1 for _ in answers) == 3009
        assert answers.summary.documents == 3010
