"""What all checks share: the browser, the servers, and the list of checks."""

import dataclasses
import threading
import time
import traceback
import typing

import data
from browser import Browser
from selenium.common.exceptions import WebDriverException
from servers import SCOPES, Server, access

CHECKS = []


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    run: typing.Callable
    # Words of the errors in the browser's console that the check causes.
    expected: tuple = ()


def check(name, *expected):
    """Registers a check. It returns faults, or raises an AssertionError."""

    def add(function):
        CHECKS.append(Check(name, function, expected))
        return function

    return add


def key(name, *scopes, **fields):
    return access.Key(name, scopes or SCOPES, **fields)


ALL = key("all")
READER = key("reader", "check", "read")
VERDICT = key("verdict", "check", "insert", scores="verdict")
TENANT = key("tenant", *SCOPES, collections=("pages",))
KEYS = [ALL, READER, VERDICT, TENANT, key("leaving"), key("late"), key("past", expires="2020-01-01T00:00:00Z")]


class World:
    def __init__(self, binary, folder, pictures=None):
        self.folder, self.pictures = folder, pictures
        self.browser = Browser(folder / "profile")
        self.servers, self.proxies = [], []

        def server(name, **options):
            self.servers.append(Server(binary, name, **options))
            return self.servers[-1]

        audit = {"HAPAX__AUDIT__DIR": "audit", "HAPAX__AUDIT__CHECKS": "true"}
        backups = {"HAPAX__BACKUP__DIR": "backups"}
        scrub = {"HAPAX__SCRUB__BYTES_PER_SECOND": "4194304"}
        self.main = server("main", settings={**audit, **backups, **scrub}, fill=data.main)
        self.hostile = server("hostile", settings=audit, fill=data.hostile)
        self.keyed = server("keyed", settings={**audit, **backups}, keys=KEYS, fill=data.small)
        self.plain = server("plain", settings={"HAPAX__BACKUP__DIR": ""}, fill=data.small)
        self.hidden = server("hidden", settings={"HAPAX__SERVER__CONSOLE": "false"})
        self.full = server("full", settings={"HAPAX__LIMITS__MEMORY_MAX_BYTES": "1"}, errors=['"status":507'])
        self.small_room = server(
            "small-room",
            settings={
                "HAPAX__SERVER__BODY_BYTES_MAX": "524288",
                "HAPAX__SERVER__BULK_LINE_BYTES_MAX": "524288",
                "HAPAX__SERVER__BODIES_BYTES_MAX": "1048576",
            },
        )
        self.damaged = server("damaged", fill=data.small, errors=["damage", "request failed"])
        self.crowded = server("crowd", fill=data.crowd)
        # Its data takes the longest, so it begins at once.
        self.crowding = threading.Thread(target=self.crowded.begin)

    def crowd(self):
        """The server with many clusters."""
        if self.crowding.ident is None:
            self.crowding.start()
        self.crowding.join()
        return self.crowded

    def origins(self):
        return [server.address for server in self.servers if server.address] + self.proxies

    def secrets(self):
        return [one.text for server in self.servers for one in server.keys] + ["hapax_"]

    def one(self, check):
        """Runs a check. Returns its faults."""
        begun, found = time.monotonic(), []
        try:
            self.browser.driver.get("about:blank")
            found += check.run(self) or []
        except AssertionError as failure:
            found.append(str(failure) or traceback.format_exc())
        except WebDriverException as failure:
            found.append(f"{failure.msg}\n{traceback.format_exc(limit=3)}")
        except Exception:
            found.append(traceback.format_exc())
        if found:
            self.browser.save(self.folder / check.name.replace("/", " "))
        try:
            found += self.browser.faults(self.origins(), check.expected, self.secrets())
        finally:
            self.browser.resize(1280, 900)
            self.browser.theme("light")
        said = "as promised" if not found else f"{len(found)} faults"
        print(f"console: {check.name}: {said} ({time.monotonic() - begun:.1f} s)", flush=True)
        for fault in found:
            print(f"    {fault}", flush=True)
        return [f"{check.name}: {fault}" for fault in found]

    def end(self):
        """Ends the browser and the servers. Returns the faults of the servers."""
        self.browser.quit()
        if self.crowding.is_alive():
            self.crowding.join()
        return [fault for server in self.servers for fault in server.end()]
