"""What those who run the server do: backups, jobs, the state, the audit log."""

import urllib.parse

import data
from texts import Texts
from world import check


ROWS = "return [...document.querySelectorAll('main tbody tr:not(.evidence)')].map((row) => row.innerText)"


@check("operate: a backup is started, and done", "status of 409")
def backup(world):
    browser, api = world.browser, world.main.begin().api
    browser.open(world.main.url("operate?tab=backups"))
    browser.write("Name", "console-test")
    browser.click("Start the backup")
    browser.shows("console-test", "hapax restore", "done")
    latest = api.get("/v1/backups")["latest"]
    assert (latest["name"], latest["state"]) == ("console-test", "done"), latest
    browser.shows(*(one["name"] for one in latest["collections"]))
    browser.write("Name", "console-test")
    browser.click("Start the backup")
    browser.shows("already")


@check("operate: a merge is started, and done")
def merge(world):
    browser, api = world.browser, world.main.begin().api
    texts = Texts(31)
    for name in ("merged-from", "merged-into"):
        api.answer("PUT", f"/v1/collections/{name}", {"digits": "zero"})
    api.bulk("merged-from", [{"id": f"{n}", "text": texts.text(4)} for n in range(20)])
    browser.open(world.main.url("operate?tab=jobs"))
    browser.choose("Into", "merged-into")
    browser.choose("From", "merged-from")
    browser.click("Start the merge", within="form")
    browser.click("Start the merge")
    browser.shows("Merge of merged-from into merged-into", "20 of 20 documents", "done")
    assert api.get("/v1/collections/merged-into")["documents"] == 20
    job = browser.parameters["job"]
    assert api.get(f"/v1/jobs/{urllib.parse.quote(job)}")["state"] == "done"


@check("operate: the audit log is searched")
def audit(world):
    browser, api = world.browser, world.main.begin().api
    browser.open(world.main.url("operate?tab=audit"))
    browser.write("Id of the document", data.PAIR)
    browser.choose("Operation", "insert")
    browser.click("Find")
    browser.until(lambda: browser.parameters.get("id") == data.PAIR, "the address has the filter")
    browser.settle()
    found = api.get("/v1/audit", id=data.PAIR, op="insert")["decisions"]
    rows = browser.run(ROWS)
    assert len(rows) == len(found) >= 3, (rows, found)
    browser.click("Show")
    match = found[0]["matches"][0]
    browser.shows(match["id"], f"{match['similarity']:.3f}", found[0]["request_id"], found[0]["content"])
    browser.write("Id of the document", "nobody has this id")
    browser.click("Find")
    browser.shows("No decision meets all of these conditions")


@check("operate: decisions of the audit log, page after page")
def audit_pages(world):
    browser = world.browser
    browser.open(world.main.url("operate?tab=audit&op=insert&collection=pages"))
    browser.shows("50 decisions")
    first = browser.run(ROWS)
    browser.click("Older decisions")
    browser.settle()
    older = browser.run(ROWS)
    assert (len(first), len(older)) == (50, 50), (first, older)
    assert not set(first) & set(older), set(first) & set(older)


@check("operate: a server without backups and without an audit log says how to turn them on", "status of 403")
def off(world):
    browser = world.browser
    browser.open(world.plain.url("operate?tab=backups"))
    browser.click("Start the backup")
    browser.shows("This server has no directory for backups", "HAPAX__BACKUP__DIR=")
    browser.open(world.plain.url("operate?tab=audit"))
    browser.shows("This server has no audit log", "HAPAX__AUDIT__DIR=")
