"""Keys: the dialog that asks for one, scopes, and keys that are added, revoked or expire while a page is open."""

import dataclasses

import world
from api import Api
from world import check

REFUSED = "status of 401"


def log_in(browser, server, key):
    """Opens the console without a key, and gives the key in the dialog."""
    browser.use_key(server, None)
    browser.open(server.url("try?collection=pages"))
    browser.shows("This server answers only requests with an API key")
    browser.write("API key", f"{key}\n")


@check("keys: a wrong key is refused, and the right one is asked for once", REFUSED)
def wrong_key(run):
    browser, server = run.browser, run.keyed.begin()
    log_in(browser, server, "this is not a key of the server")
    browser.shows("API key", "This server needs a key")
    assert browser.count("dialog[open] .note.warn") == 1, browser.text()
    faults = [f"axe, dialog: {one}" for one in browser.axe()] + browser.widths()
    browser.write("API key", world.ALL.text)
    browser.click("Use this key")
    browser.shows("Key: all", "no text yet")
    browser.driver.refresh()
    browser.settle()
    browser.shows("Key: all")
    browser.open(server.url("collections"))
    browser.shows("private")
    assert browser.count("dialog") == 0
    browser.click("Key: all")
    browser.click("Forget the key")
    browser.shows("This server needs a key")
    assert browser.run("return sessionStorage.length") == 0
    return faults


@check("keys: an expired key", REFUSED)
def expired(run):
    browser = run.browser
    log_in(browser, run.keyed.begin(), next(one.text for one in world.KEYS if one.name == "past"))
    browser.until("return document.querySelector('dialog[open] .note.warn')", "the key is refused")
    browser.shows("This server needs a key")


def may_do_nothing_more(browser):
    """Waits until the page asks for a key. What was on the page is not on it any more."""
    browser.shows("This server needs a key")
    browser.hides("Key: leaving", "Key: late")


@check("keys: a key is revoked while a page is open", REFUSED)
def revoked_meanwhile(run):
    browser, server = run.browser, run.keyed.begin()
    leaving = next(one for one in server.keys if one.name == "leaving")
    browser.use_key(server, leaving.text)
    browser.open(server.url("try?collection=pages"))
    browser.shows("Key: leaving")
    id = next(one["id"] for one in server.api.get("/v1/keys")["keys"] if one["name"] == "leaving")
    server.api.ask("DELETE", f"/v1/keys/{id}")
    server.keys.remove(leaving)
    refused = Api(server.address, leaving.text)
    browser.until(lambda: refused.answer("GET", "/v1/version")[0] == 401, "the key is revoked")
    browser.write("Text", "one two three four five six")
    may_do_nothing_more(browser)
    browser.write("API key", world.ALL.text + "\n")
    browser.shows("Key: all")
    browser.use_key(server, None)


@check("keys: a key expires while a page is open", REFUSED)
def expires_meanwhile(run):
    browser, server = run.browser, run.keyed.begin()
    late = next(one for one in server.keys if one.name == "late")
    browser.use_key(server, late.text)
    # The page Live asks again by itself.
    browser.open(server.url("live"))
    browser.shows("Key: late", "Process and memory")
    server.keys[server.keys.index(late)] = dataclasses.replace(late, expires="2021-01-01T00:00:00Z")
    server.write_keys()
    may_do_nothing_more(browser)
    browser.use_key(server, None)


@check("keys: one is added, shown once, used, and revoked", REFUSED)
def added_and_revoked(run):
    browser, server = run.browser, run.keyed.begin()
    browser.use_key(server, world.ALL.text)
    browser.open(server.url("operate?tab=keys"))
    browser.shows(*(key.name for key in server.keys), "your key", "expired")
    browser.click("Add the key")
    browser.write("Name", "made-here")
    browser.choose("Who uses it?", "check,read")
    browser.write("Collections", "pages, default")
    browser.click("Add the key")
    browser.shows("Copy this key now")
    text = browser.driver.find_element("css selector", "input.secret").get_attribute("value")
    assert text.startswith("hapax_") and len(text) > 30, text
    found = next(one for one in server.api.get("/v1/keys")["keys"] if one["name"] == "made-here")
    assert found["scopes"] == ["check", "read"] and found["collections"] == ["pages", "default"], found
    assert "text" not in found
    faults = [f"axe: {one}" for one in browser.axe()] + browser.widths()
    browser.click("I have saved the key")
    assert text not in browser.driver.page_source and browser.count("input.secret") == 0
    browser.open(server.url("operate?tab=keys"))
    browser.shows("made-here")
    assert text not in browser.driver.page_source
    made = Api(server.address, text)
    browser.until(lambda: made.answer("GET", "/v1/version")[0] == 200, "the new key is used", 10)
    assert made.answer("GET", "/v1/collections/pages")[0] == 200
    assert made.answer("GET", "/v1/collections/private")[0] == 403
    browser.click(f"Revoke the key made-here {found['id']}")
    browser.click("Revoke the key")
    browser.shows("is revoked")
    browser.until(lambda: made.answer("GET", "/v1/version")[0] == 401, "the key is revoked", 10)
    browser.use_key(server, None)
    return faults


def offered(browser, *texts):
    return [text for text in texts if browser.has_button(text)]


@check("keys: what a key with check and read may not do is not offered")
def reader(run):
    browser, server = run.browser, run.keyed.begin()
    browser.use_key(server, world.READER.text)
    faults = []

    def barred(path, shown, *texts):
        browser.open(server.url(path))
        browser.shows(shown)
        for text in offered(browser, *texts):
            faults.append(f"{path} offers {text!r}")

    barred("try?collection=pages", "Key: reader", "Live", "Store it")
    barred("collections", "pages", "Create", "Create a collection")
    barred("collections?create=1", "pages", "Create the collection")
    barred("collection?collection=pages&tab=settings", "Threshold", "Save the changes", "Drop the collection")
    barred("collection?collection=pages&tab=banding", "Before and after", "Apply this banding")
    barred("collection?collection=pages&tab=labels", "site", "Delete")
    barred("quality?collection=pages", "golden set", "Store the golden set", "Delete the golden set")
    barred("operate", "ready", "Backups", "Integrity", "Keys", "Audit log")
    barred("operate?tab=jobs", "jobs", "Start the merge")
    barred("operate?tab=keys", "This part needs a key with the scope keys", "Add the key")
    barred("operate?tab=backups", "This part needs a key with the scope admin", "Start the backup")
    barred("live", "This page needs a key with the scope metrics")
    barred("clusters?collection=pages", "The largest clusters")
    barred("buckets?collection=pages", "Buckets")
    browser.use_key(server, None)
    return faults


@check("keys: a key that sees only verdicts", "status of 403")
def verdicts_only(run):
    browser, server = run.browser, run.keyed.begin()
    browser.use_key(server, world.VERDICT.text)
    browser.open(server.url("try?collection=pages"))
    browser.put("Text", "a text with six words in it")
    browser.shows("unique", "This key sees only verdicts")
    browser.hides("Best similarity")
    faults = [f"offers {text!r}" for text in offered(browser, "Live", "Clusters", "Quality")]
    browser.use_key(server, None)
    return faults


@check("keys: a key for one collection", "status of 403")
def tenant(run):
    browser, server = run.browser, run.keyed.begin()
    browser.use_key(server, world.TENANT.text)
    browser.open(server.url("collections"))
    browser.shows("pages")
    browser.hides("private")
    browser.open(server.url("operate"))
    browser.shows("pages")
    browser.hides("private")
    faults = [f"operate offers {text!r}" for text in offered(browser, "Backups", "Keys", "Audit log")]
    browser.open(server.url("try?collection=private"))
    browser.shows("private")
    assert browser.count("main .failure") >= 1, browser.text()
    browser.use_key(server, None)
    return faults
