"""Ids, texts, metadata, labels and addresses that try to become a part of the page: they are shown, and are only text."""

import urllib.parse

import data
from world import check


def address(view, **parameters):
    return f"{view}?{urllib.parse.urlencode({'collection': 'hostile', **parameters}, quote_via=urllib.parse.quote)}"


def faults_of(browser, where):
    """Returns what a client's text changed in the page."""
    found = [f"{where}: {one}" for one in browser.run("return watched.foreign()")]
    found += [f"{where}: not isolated: {one}" for one in browser.run("return watched.mixed()")]
    if browser.run("return window.hacked !== undefined"):
        found.append(f"{where}: a script of a client ran")
    return found + [f"{where}: {one}" for one in browser.widths([(360, 740), (1280, 900)])]


def start_of(id):
    """The beginning of an id, as the text of a page has it."""
    return " ".join(id[:40].split())


def brief(id):
    return ascii(id[:30])


@check("hostile: try, with matches, metadata and passages")
def try_it(world):
    browser, api = world.browser, world.hostile.begin().api
    browser.go(world.hostile.url("try?collection=hostile"))
    found = []
    for id in data.HOSTILE:
        text = api.get("/v1/collections/hostile/documents", id=id, **{"with": "text"})["text"]
        browser.put("Text", text)
        browser.shows(start_of(id))
        browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        browser.settle()
        # Two copies and the document itself: each has metadata with the id as a name and as a value.
        assert browser.count(".match pre") >= 3, browser.text()
        found += faults_of(browser, f"try {brief(id)}")
    return found


@check("hostile: try and compare, with ids in the address")
def compare(world):
    browser = world.browser
    found = []
    for id in data.HOSTILE:
        browser.go(world.hostile.url(address("compare", a=id, b=f"copy {data.cut(id, 2000)}")))
        browser.shows("Jaccard, exact")
        found += faults_of(browser, f"compare {brief(id)}")
        browser.go(world.hostile.url(address("try", id=id, threshold=id)))
        found += faults_of(browser, f"try {brief(id)}")
    return found


@check("hostile: clusters, members and buckets")
def clusters(world):
    browser, api = world.browser, world.hostile.begin().api
    found = []
    browser.go(world.hostile.url("clusters?collection=hostile"))
    page = api.get("/v1/collections/hostile/clusters/largest", limit=50)
    browser.shows(*(start_of(one["representative"]) for one in page["clusters"]))
    found += faults_of(browser, "clusters")
    for id in data.HOSTILE:
        browser.go(world.hostile.url(address("clusters", id=id)))
        browser.shows("The cluster", start_of(f"copy {id}"))
        browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        found += faults_of(browser, f"cluster {brief(id)}")
    browser.go(world.hostile.url("buckets?collection=hostile"))
    bucket = api.get("/v1/collections/hostile/buckets", limit=10)["buckets"][0]
    browser.shows(*(start_of(id) for id in bucket["sample"]))
    return found + faults_of(browser, "buckets")


@check("hostile: labels, statistics, golden sets, jobs, reports and the audit log", "status of 404")
def lists(world):
    browser, api = world.browser, world.hostile.begin().api
    merge = next(one["job"] for one in api.get("/v1/jobs")["jobs"] if one["kind"] == "merge")
    names = [start_of(id) for id in data.HOSTILE]
    found = []
    for path, shown in (
        ("collection?collection=hostile&tab=labels", names),
        ("collection?collection=hostile&tab=statistics", names),
        ("quality?collection=hostile", names),
        ("operate?tab=jobs", [f"site:{start_of(data.HOSTILE[1])}"]),
        (f"operate?tab=jobs&job={merge}", names[:4]),
        ("operate?tab=audit&collection=hostile&op=insert", [start_of(f"11 {data.HOSTILE[11]}")]),
        (address("operate", tab="audit", id=data.HOSTILE[0]), names[:1]),
        (address("operate", tab="audit", id=data.HOSTILE[2]), names[2:3]),
        (address("operate", tab="audit", id=data.HOSTILE[8]), [data.HOSTILE[8][:20]]),
    ):
        browser.go(world.hostile.url(path))
        browser.shows(*shown)
        browser.run("for (const one of document.querySelectorAll('tr button[aria-expanded=false]')) one.click()")
        found += faults_of(browser, path)
    return found


@check("hostile: names of collections and other parameters in the address", "status of 4")
def parameters(world):
    browser = world.browser
    found = []
    for text in data.HOSTILE:
        for path in (
            address("try", collection=text),
            address("collection", collection=text, tab=text),
            address("clusters", cursor=text, **{"from": text}),
            address("operate", tab="jobs", job=text),
            address("operate", tab="audit", since=text, verdict=text),
            address("live", collection=text, minutes=text),
        )[data.HOSTILE.index(text) % 3 :: 3]:
            browser.go(world.hostile.url(path))
            found += faults_of(browser, path[:80])
    return found
