"""Servers that fail: killed, overloaded, full, or with a damaged collection."""

import pathlib
import socket
import sqlite3
import urllib.parse

from texts import Texts
from world import check

GONE = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_SOCKET_NOT_CONNECTED", "status of 503")
DOES_NOT_ANSWER = "The server does not answer"
TEXT = "one two three four five six seven eight"


@check("failures: the server is killed while a page is open, and comes back", *GONE)
def killed(world):
    browser, server = world.browser, world.plain.begin()
    browser.open(server.url("try?collection=pages"))
    browser.write("Text", TEXT)
    browser.shows("unique")
    server.kill()
    browser.write("Text", f"{TEXT} nine ten")
    browser.shows(DOES_NOT_ANSWER, "Try again")
    faults = [f"axe: {one}" for one in browser.axe()] + browser.widths()
    server.begin()
    browser.click("Try again")
    browser.shows("unique")
    browser.until(lambda: DOES_NOT_ANSWER not in browser.text(), "the page sees that the server is back")
    assert browser.control("Text").get_attribute("value").endswith("nine ten"), "the text is lost"
    return faults


@check("failures: a page that asks again recovers by itself", *GONE)
def recovers(world):
    browser, server = world.browser, world.plain.begin()
    browser.open(server.url("live"))
    browser.shows("Read at")
    server.kill()
    browser.shows(DOES_NOT_ANSWER)
    server.begin()
    browser.until(lambda: DOES_NOT_ANSWER not in browser.text(), "the page sees that the server is back")
    browser.shows("Read at")


@check("failures: a page is opened while the server does not answer", *GONE)
def opened_too_early(world):
    browser, server = world.browser, world.plain.begin()
    browser.open(server.url("collections"))
    server.kill()
    browser.click("Clusters")
    browser.shows(DOES_NOT_ANSWER)
    server.begin()
    browser.click("Try again")
    browser.shows("The largest clusters")


def held(server, size):
    """Returns a connection with a request whose body takes all memory for bodies and does not end."""
    place = urllib.parse.urlsplit(server.address)
    connection = socket.create_connection((place.hostname, place.port))
    head = "POST /v1/collections/default/check HTTP/1.1", f"Host: {place.netloc}", "Content-Type: application/json"
    connection.sendall("\r\n".join([*head, f"Content-Length: {size}", "", '{"text": "']).encode() + b"a" * (size - 100))
    return connection


@check("failures: a server without room refuses with 503, and the page tries again", "status of 503")
def overloaded(world):
    browser, server = world.browser, world.small_room.begin()
    browser.open(server.url("try"))
    check_now = "POST", "/v1/collections/default/check", {"text": TEXT}
    connections = [held(server, 524288) for _ in range(2)]
    browser.until(lambda: server.api.answer(*check_now)[0] == 503, "the server has no room")
    browser.write("Text", TEXT)
    browser.shows("overloaded", "503", "The server asks to wait 1 s")
    faults = [f"axe: {one}" for one in browser.axe()] + browser.widths()
    for connection in connections:
        connection.close()
    browser.until(lambda: server.api.answer(*check_now)[0] == 200, "the server has room")
    browser.click("Try again")
    browser.shows("unique")
    return faults


@check("failures: a server whose memory is used up refuses documents with 507", "status of 507")
def full(world):
    browser, server = world.browser, world.full.begin()
    browser.open(server.url("try"))
    browser.put("Text", TEXT)
    browser.shows("unique")
    browser.write("Id of the new document", "a")
    browser.click("Store it")
    browser.shows("507", "memory_budget_reached")
    # The view still works.
    browser.put("Text", f"{TEXT} nine")
    browser.shows("unique")
    browser.open(server.url("live"))
    browser.shows("wrong now", "HapaxIndexNearBudget")
    return browser.widths()


def spoil(server, collection):
    """Flips a bit of a signature in the file of a collection, at each place with its first bytes."""
    file = pathlib.Path(server.path("data")) / "collections" / f"{collection}.sqlite"
    with sqlite3.connect(file) as database:
        (bytes_of,) = database.execute("SELECT bytes FROM signature ORDER BY seq LIMIT 1").fetchone()
    database.close()
    content, first = bytearray(file.read_bytes()), bytes_of[:32]
    places = [at for at in range(len(content) - 32) if content[at : at + 32] == first]
    assert places, "the signature is not in the file"
    for place in places:
        content[place] ^= 1
    file.write_bytes(content)


@check("failures: a damaged collection leaves the others alone", "status of 500")
def damaged(world):
    browser, server = world.browser, world.damaged.begin()
    assert server.stop() == []
    spoil(server, "pages")
    server.begin()
    faults = []
    for path, shown in (
        ("collections", ["1 damaged", "pages", "record 1"]),
        ("collection?collection=pages", ["collection_damaged", "hapax verify"]),
        ("try?collection=pages", ["collection_damaged"]),
        ("clusters?collection=pages", ["collection_damaged"]),
        ("quality?collection=pages", ["collection_damaged"]),
        ("operate", ["damaged", "record 1"]),
        ("operate?tab=integrity", ["is damaged", "record 1", "--repair"]),
        ("live", ["wrong now", "HapaxCollectionDamaged", "pages"]),
        ("collection?collection=default", ["What is stored"]),
    ):
        browser.open(server.url(path))
        browser.shows(*shown)
        faults += browser.widths()
        if path.startswith(("collection", "operate")):
            faults += [f"axe, {path}: {one}" for one in browser.axe()]
    browser.open(server.url("try?collection=default"))
    browser.put("Text", Texts(8).text(7))
    browser.shows("Documents compared")
    return faults
