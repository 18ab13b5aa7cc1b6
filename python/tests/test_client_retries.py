"""When pyhapax.client sends a request again. A small server in this file returns prepared answers."""

import http.server
import json
import logging
import socket
import threading
import time
import traceback

import pytest
from extra import client_extra

client = client_extra()

from pyhapax.client import retries  # noqa: E402

VERDICT = {"verdict": "unique", "outcome": "checked", "stored": False, "collection": "default", "complete": True}
LOST = "lost"
# The chunk that bulk sends before its documents.
EMPTY_LINE = b"1\r\n\n\r\n"
SECRET = "hapax_0123456789_a_key_that_nobody_may_see"


def problem(status, code, retry_after=None):
    body = {"type": f"urn:hapax:problem:{code}", "code": code, "title": "t", "status": status, "detail": "a detail"}
    return status, {} if retry_after is None else {"Retry-After": str(retry_after)}, json.dumps(body)


OK = (200, {}, json.dumps(VERDICT))


class Fake:
    """Answers one request after another from a list, and records each request and its time."""

    def __init__(self, *answers):
        self.answers, self.asked, self.times, self.headers = list(answers), [], [], []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                fake.times.append(time.monotonic())
                fake.asked.append(f"{self.command} {self.path}")
                fake.headers.append(dict(self.headers))
                answer = fake.answers.pop(0)
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    self.stream(*answer)
                    return
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.close_connection = True
                if answer == LOST:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body)), "Connection": "close"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def stream(self, status, headers, body):
                """Answer a bulk request: with a refusal before the documents arrive, or with lines after them."""
                self.close_connection = True
                self.rfile.read(len(EMPTY_LINE))
                self.send_response(status)
                for name, value in {**headers, "Connection": "close"}.items():
                    self.send_header(name, value)
                self.end_headers()
                while status == 200 and self.rfile.readline() != b"0\r\n":
                    pass
                self.wfile.write(body.encode())

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.02)


def test_it_waits_as_long_as_retry_after_says():
    with (
        Fake(problem(503, "overloaded", 1), problem(429, "rate_limited", 1), OK) as fake,
        client.Client(fake.url) as made,
    ):
        assert made.check_document("x").verdict == "unique"
    assert len(fake.times) == 3
    assert all(later - earlier >= 1 for earlier, later in zip(fake.times, fake.times[1:], strict=False))


@pytest.mark.parametrize(
    ("answer", "kind", "given"),
    [
        (problem(503, "overloaded", 1), client.Unavailable, {"retries": 0}),
        (problem(503, "write_failed", 60), client.Unavailable, {"retry_seconds_max": 10}),
        (problem(429, "too_many_collections"), client.TooManyRequests, {}),
        (problem(409, "id_conflict"), client.Conflict, {}),
        (problem(507, "storage_full"), client.NoRoom, {}),
        (problem(418, "of_a_newer_server"), client.ProblemError, {}),
    ],
)
def test_it_gives_up_at_once(answer, kind, given):
    with Fake(answer, OK) as fake, client.Client(fake.url, **given) as made:
        with pytest.raises(kind) as refused:
            made.check_document("x")
        assert type(refused.value) is kind
        assert refused.value.status == answer[0]
    assert len(fake.asked) == 1


def test_the_number_of_attempts_is_bounded():
    with Fake(*[problem(503, "overloaded")] * 9) as fake, client.Client(fake.url, retries=3) as made:
        with pytest.raises(client.Unavailable):
            made.check_document("x")
        assert len(fake.asked) == 4


def test_readyz_is_asked_once():
    with Fake(problem(503, "starting", 1), OK) as fake, client.Client(fake.url) as made:
        with pytest.raises(client.Unavailable) as refused:
            made.readyz()
        assert refused.value.retry_after_s == 1


def test_a_lost_connection_is_tried_again_if_a_second_request_changes_nothing():
    with Fake(LOST, LOST, OK) as fake, client.Client(fake.url) as made:
        assert made.insert_document("a", "text").verdict == "unique"
    assert fake.asked == ["POST /v1/collections/default/documents"] * 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda made: made.start_backup(name="x"),
        lambda made: made.cancel_backup(),
        lambda made: made.delete_document(label="a:b"),
        lambda made: made.drop_collection("x", confirm="x"),
    ],
)
@pytest.mark.parametrize("answer", [LOST, problem(503, "overloaded", 0), (502, {}, "bad gateway")])
def test_a_request_that_may_have_been_done_is_not_repeated_if_that_changes_something(ask, answer):
    with Fake(answer, OK) as fake, client.Client(fake.url) as made:
        with pytest.raises(client.HapaxError):
            ask(made)
        assert len(fake.asked) == 1


def test_a_request_that_was_not_sent_is_tried_again():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    started = time.monotonic()
    with client.Client(url, retries=2) as made, pytest.raises(client.TransportError, match="(?i)connect"):
        made.start_backup()
    assert time.monotonic() - started > 0.02


def test_a_bulk_request_that_is_refused_at_its_beginning_is_tried_again():
    lines = [{"kind": "verdict", "line": 2, **VERDICT}, {"kind": "of a newer server"}]
    counts = dict.fromkeys(["documents", "errors", "unique", "near_duplicate"], 1)
    counts |= dict.fromkeys(["exact_duplicate", "empty", "stored", "deleted"], 0)
    lines.append({"kind": "summary", "lines": 2, "summary": counts})
    body = "".join(json.dumps(line) + "\n" for line in lines)
    with Fake(problem(503, "overloaded", 0), (200, {}, body)) as fake, client.Client(fake.url) as made:
        answers = made.bulk("check", [{"text": "x"}])
        assert [answer.verdict for answer in answers] == ["unique"]
        assert answers.summary.documents == 1
    assert len(fake.asked) == 2


def test_an_answer_without_a_summary_is_an_error():
    body = json.dumps({"kind": "verdict", "line": 2, **VERDICT}) + "\n"
    with Fake((200, {}, body)) as fake, client.Client(fake.url) as made:
        answers = made.bulk("check", [{"text": "x"}])
        assert next(answers).verdict == "unique"
        with pytest.raises(client.TransportError, match=r"before its summary \(1 answers had arrived\)"):
            next(answers)


def test_an_answer_for_no_document_is_an_error():
    body = (json.dumps({"kind": "verdict", "line": 2, **VERDICT}) + "\n") * 2
    with Fake((200, {}, body)) as fake, client.Client(fake.url) as made:
        answers = made.bulk("check", [{"text": "x"}])
        assert next(answers).verdict == "unique"
        with pytest.raises(client.TransportError, match="more lines than documents"):
            next(answers)


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", "null"])
def test_an_answer_that_is_not_of_hapax_is_an_error(body):
    with Fake((200, {}, body), (404, {}, body)) as fake, client.Client(fake.url, retries=0) as made:
        with pytest.raises(client.TransportError):
            made.check_document("x")
        with pytest.raises(client.NotFound) as refused:
            made.check_document("x")
        assert (refused.value.status, refused.value.code) == (404, "")
        assert body in str(refused.value)


def test_the_key_is_sent_to_the_server_and_shown_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    with Fake(OK) as elsewhere:
        answers = [(307, {"Location": f"{elsewhere.url}/v1/version"}, ""), problem(401, "unauthorized"), LOST]
        with Fake(*answers) as fake, client.Client(fake.url, key=SECRET, retries=0) as made:
            shown = [repr(made), repr(vars(made)), repr(made._settings)]
            for kind in [client.ProblemError, client.Unauthorized, client.TransportError]:
                with pytest.raises(kind) as failed:
                    made.check_document("x")
                told = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
                shown += [repr(failed.value), "".join(told.format())]
            assert [headers["Authorization"] for headers in fake.headers] == [f"Bearer {SECRET}"] * 3
        assert elsewhere.asked == []
    shown.append(caplog.text)
    assert SECRET not in "".join(shown)


def test_the_key_is_not_shown_by_a_request_that_is_cancelled():
    import asyncio

    async def ask(url):
        async with client.AsyncClient(url, key=SECRET) as made:
            async with asyncio.timeout(0.3):
                await made.version()

    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError) as failed:
        asyncio.run(ask(f"http://127.0.0.1:{silent.getsockname()[1]}"))
    told = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
    assert SECRET not in "".join(told.format())
