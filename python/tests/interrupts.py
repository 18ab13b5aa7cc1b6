"""Sends Ctrl-C to a separate program."""

import signal
import subprocess
import time
from contextlib import contextmanager


@contextmanager
def interrupted(run):
    """Run a program, and send it SIGINT after it has printed "ready".

    When the program has printed "interrupted", yield the process and the time of the signal.
    """
    # Tests that run in the background ignore SIGINT. A new program would inherit this setting.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        yield process, sent
