"""The console below a sub-path, behind a real nginx."""

import contextlib
import urllib.parse

import data
import world
from nginx import Nginx
from views import VIEWS
from world import check

PATH = "/hapax/"


# A server is started too fast to be seen, so nginx gives the answers of one that is starting.
STARTING = """
location ~ ^/hapax/(readyz|v1/collections/pages)$ {
    default_type application/problem+json;
    add_header Retry-After 1 always;
    return 503 '{"type": "urn:hapax:problem:starting", "code": "starting", "title": "The server is starting", "status": 503,
        "detail": "the collections are being opened: 42 % done", "progress": 0.42,
        "collections": [{"name": "pages", "progress": 0.17}]}';
}
"""


@contextlib.contextmanager
def nginx(run, server, more="", port=None):
    proxy = Nginx(run.folder / f"nginx-{server.name}", server.begin().address, PATH, more, port)
    run.proxies.append(proxy.address)
    try:
        yield proxy
    finally:
        proxy.stop()


@check("proxy: all views below a sub-path")
def sub_path(run):
    browser, faults = run.browser, []
    with nginx(run, run.main) as proxy:
        browser.open(proxy.address + PATH)
        assert browser.url == f"{proxy.address}{PATH}console/try", browser.url
        links = browser.run(
            "return [...document.querySelectorAll('a[href]')].map((link) => new URL(link.href).pathname)"
        )
        assert all(link.startswith(f"{PATH}console/") for link in links), links
        for text, heading in (
            ("Collections", "Collections"),
            ("pages", "pages"),
            ("Clusters", "Clusters"),
            ("Operate", "Operate"),
        ):
            browser.click(text)
            browser.until(lambda: browser.heading() == heading, f"{heading} is shown")
            assert browser.url.startswith(f"{proxy.address}{PATH}console/"), browser.url
        for state in VIEWS:
            if state.name in ("reports", "keys-off"):
                continue
            browser.open(f"{proxy.address}{PATH}console/{state.path}")
            if browser.heading() != state.heading or browser.count("main .failure, main .empty h1"):
                faults.append(f"{state.path}: {browser.text()[:500]}")
        browser.open(f"{proxy.address}{PATH}console/clusters?collection=pages&id={urllib.parse.quote(data.STORY)}")
        browser.shows(data.PAIR)
        browser.put("Id of a document", data.PAIR)
        browser.click("Find its cluster")
        browser.shows("asked for")
        missed = [line for line in proxy.log.read_text().splitlines() if '" 404 ' in line]
        outside = [line for line in proxy.log.read_text().splitlines() if f" {PATH}" not in line]
    return faults + missed + outside


@check("proxy: a key, and a server that is gone", "status of 401", "status of 502", "ERR_CONNECTION")
def with_key(run):
    browser, server = run.browser, run.keyed
    with nginx(run, server) as proxy:
        browser.open(f"{proxy.address}{PATH}console/collections")
        browser.shows("This server answers only requests with an API key")
        browser.write("API key", world.ALL.text + "\n")
        browser.shows("Key: all", "private")
        browser.open(f"{proxy.address}{PATH}console/try?collection=pages")
        browser.put("Text", "one two three four five six")
        browser.shows("unique")
        server.kill()
        browser.put("Text", "one two three four five six seven")
        browser.shows("A proxy between this page and hapax answered with status 502")
        server.begin()
        browser.until(lambda: server.api.answer("GET", "/readyz")[0] == 200, "the server is back")
        # nginx tries a server again that was gone only after some seconds.
        browser.until(lambda: press_again(browser), "the page recovers")


def press_again(browser):
    """Presses the button until the verdict is there."""
    if browser.has_button("Try again"):
        browser.click("Try again")
        browser.settle()
    return "unique" in browser.text()


@check("proxy: a server that is starting", "status of 503", "ERR_CONNECTION")
def starting(run):
    browser = run.browser
    with nginx(run, run.main, STARTING) as proxy:
        browser.open(f"{proxy.address}{PATH}console/operate")
        browser.shows("starting", "42 %", "17 %", "being opened")
        faults = [f"axe: {one}" for one in browser.axe()] + browser.widths()
        browser.open(f"{proxy.address}{PATH}console/collection?collection=pages")
        browser.shows("The server is starting", "The server asks to wait 1 s")
        browser.open(f"{proxy.address}{PATH}console/operate")
        browser.shows("starting")
    with nginx(run, run.main, port=proxy.port):
        browser.until(
            lambda: "being opened" not in browser.text() and "ready" in browser.text(), "the page sees that it is ready"
        )
    return faults
