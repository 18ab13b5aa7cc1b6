"""pyhapax.client in a process: forks, Ctrl-C, the end of the interpreter, pickles, and a missing extra."""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import pytest
from extra import client_extra
from interrupts import interrupted
from served import Served, needs_server

client = client_extra()

PRELUDE = "import sys, time, threading\nfrom pyhapax.client import Client\nclient = Client(sys.argv[1])\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("server")) as server:
        yield server


@needs_server
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_child_of_a_fork_and_its_parent_both_go_on(server):
    with client.Client(server.url) as made:
        answers = made.bulk("check", ({"text": f"text {row}"} for row in range(5000)))
        next(answers)
        child = os.fork()
        if child == 0:
            os._exit(0 if works(made) and is_refused(answers) else 1)
        assert status_within_a_minute(child) == 0
        assert sum(1 for _ in answers) == 4999
        assert works(made)


def works(made):
    return made.version().name == "hapax" and len(list(made.bulk("check", [{"text": "a b c"}] * 50))) == 50


def is_refused(answers):
    try:
        for _ in answers:
            pass
    except RuntimeError as error:
        return "another process" in str(error)
    return False


def status_within_a_minute(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


SLOW = """
def slow():
    yield {"text": "a b c"}
    threading.Event().wait()
"""
INTERRUPTED = """
answers = client.bulk("check", ({"text": f"text {row}"} for row in range(10**9)))
work = {
    "request": lambda: client.version(),
    "bulk": lambda: list(answers),
    "documents": lambda: list(client.bulk("check", slow())),
}[sys.argv[2]]
print("ready", flush=True)
try:
    work()
except KeyboardInterrupt:
    print("interrupted", flush=True)
if sys.argv[2] == "bulk":
    # No answer is taken for that of another document.
    try:
        print(list(answers))
    except RuntimeError as error:
        assert "interrupted" in str(error)
"""


@needs_server
@pytest.mark.parametrize("kind", ["request", "bulk", "documents"])
def test_ctrl_c_ends_a_request_within_a_second(server, kind):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}" if kind == "request" else server.url
        # On a busy machine the signal itself may come late, so the test has three attempts.
        assert any(seconds_to_the_end(url, kind) < 1.0 for _ in range(3))


def seconds_to_the_end(url, kind):
    with interrupted([sys.executable, "-c", PRELUDE + SLOW + INTERRUPTED, url, kind]) as (process, sent):
        assert process.wait(30) == 0
        return time.monotonic() - sent


@needs_server
@pytest.mark.parametrize(
    "script",
    [
        "client.version()",
        "answers = client.bulk('check', ({'text': str(row)} for row in range(10**9)))\nnext(answers)",
        SLOW + "kept = client.bulk('check', slow())\nnext(kept)",
        "threading.Thread(target=client.bulk('check', [{}] * 9).__next__).start()",
    ],
)
def test_a_client_that_is_not_closed_does_not_keep_the_interpreter(server, script):
    run = [sys.executable, "-W", "default", "-c", PRELUDE + script, server.url]
    done = subprocess.run(run, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


COLLECTING = """
import gc
def collect_and_set(event, set=threading.Event.set):
    gc.collect()
    set(event)
threading.Event.set = collect_and_set
gc.disable()
for _ in range(3):
    cycle = [Client(sys.argv[1])]
    cycle.append(cycle)
    cycle[0].version()
    del cycle
gc.collect()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(10)
assert threading.active_count() == 1, threading.enumerate()
"""


@needs_server
def test_the_garbage_collector_closes_clients_in_a_thread_that_starts(server):
    # `Thread.start` waits for an event. In this test, the new thread runs the garbage collector before it sets this
    # event, and so closes the client.
    done = subprocess.run([sys.executable, "-c", PRELUDE + COLLECTING, server.url], timeout=30, check=False)
    assert done.returncode == 0


@needs_server
def test_documents_may_use_the_client_from_the_beginning(server):
    class Documents:
        def __iter__(self):
            made.version()
            return iter([{"text": "a text"}])

    with client.Client(server.url) as made:
        assert len(list(made.bulk("check", Documents()))) == 1


@needs_server
def test_a_call_in_the_thread_of_the_requests_is_refused(server):
    async def documents():
        yield {"text": str(made.version())}

    with client.Client(server.url) as made, pytest.raises(RuntimeError, match="in the thread that runs its requests"):
        list(made.bulk("check", documents()))


@needs_server
def test_a_closed_client_says_so(server):
    made = client.Client(server.url)
    answers = made.bulk("check", ({"text": str(row)} for row in range(10**9)))
    next(answers)
    made.close()
    made.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        made.version()
    with pytest.raises(RuntimeError, match="closed"):
        list(answers)


@needs_server
def test_an_async_client_belongs_to_one_event_loop(server):
    made = client.AsyncClient(server.url)

    async def use():
        await made.version()

    async def use_elsewhere():
        with pytest.raises(RuntimeError, match="another event loop"):
            await made.version()
        await made.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await made.version()

    asyncio.run(use())
    asyncio.run(use_elsewhere())


@pytest.mark.parametrize("kind", [client.Client, client.AsyncClient])
def test_a_pickle_has_the_place_of_the_key_and_never_the_key(kind, monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_HAPAX_KEY", "first-secret")
    (tmp_path / "key").write_text("second-secret\n")
    for given in [{"key_env": "TEST_HAPAX_KEY"}, {"key_file": tmp_path / "key"}, {}]:
        made = kind("http://127.0.0.1:1/prefix/", retries=2, **given)
        pickled = pickle.dumps(made)
        assert b"secret" not in pickled
        again = pickle.loads(pickled)
        assert (again._settings.url, again._settings.retries) == ("http://127.0.0.1:1/prefix", 2)
        assert repr(again) == f"<pyhapax.client.{kind.__name__} of http://127.0.0.1:1/prefix>"
        if given:
            assert again._settings.key.authorization() == made._settings.key.authorization()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kind(key="third-secret"))


def test_bad_arguments_are_refused_without_the_key(tmp_path):
    (tmp_path / "empty").write_text("\n")
    for given, message in [
        ({"url": "127.0.0.1:8080"}, "must begin with http"),
        ({"url": "http://me:secret@host"}, "must have no user"),
        ({"key": "a secret\nwith a newline"}, "key has a character that an API key cannot have"),
        ({"key": "secret", "key_env": "X"}, "only one of"),
        ({"key_file": tmp_path / "empty"}, "is empty"),
        ({"key_env": "NO_SUCH_VARIABLE"}, "no variable NO_SUCH_VARIABLE"),
        ({"retries": -1}, "0 or more"),
        ({"timeout": 0}, "more than 0"),
    ]:
        with pytest.raises(ValueError, match=message) as refused:
            client.Client(**given)
        assert "secret" not in str(refused.value)
    with pytest.raises(FileNotFoundError):
        client.Client(ca_file=tmp_path / "missing.pem")


def test_without_the_extra_one_line_says_what_to_install():
    script = "import sys; sys.modules['aiohttp'] = None; import pyhapax.client"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: pyhapax.client needs aiohttp: pip install 'pyhapax[client]'"
