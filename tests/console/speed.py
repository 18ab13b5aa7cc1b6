"""A view of 10,000 clusters: it is drawn at once, and asks for one page of them."""

import data
from world import check

PAINT_MS_MAX = 100
LOADS = 5
PAGE_MAX = 100
TIMES = """
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    return [paint?.startTime, watched.firstRow];
"""


@check("clusters: 10,000 of them, one page after the other")
def pages(world):
    browser, server = world.browser, world.crowd()
    browser.open(server.url("clusters?collection=crowd"))
    first = server.api.get("/v1/collections/crowd/clusters/largest", limit=50)
    assert first["total"] == data.CLUSTERS, first["total"]
    browser.shows(f"{data.CLUSTERS:,}", *(one["representative"] for one in first["clusters"][:3]))
    assert browser.count("main tbody tr") == 50
    browser.click("Next page")
    second = server.api.get("/v1/collections/crowd/clusters/largest", limit=50, cursor=first["next_cursor"])
    browser.shows("Clusters 51 to 100", *(one["representative"] for one in second["clusters"][:3]))
    browser.driver.refresh()
    browser.shows("Clusters 51 to 100", second["clusters"][49]["representative"])
    browser.click("First page")
    browser.shows("Clusters 1 to 50", first["clusters"][0]["representative"])
    return browser.widths()


@check("clusters: the first paint with 10,000 of them")
def paint(world):
    browser, server = world.browser, world.crowd()
    url = server.url("clusters?collection=crowd")
    paints, rows = [], []
    # The first load fills the cache.
    for load in range(LOADS + 1):
        browser.driver.get(url)
        browser.settle()
        found = browser.until(lambda: (times := browser.run(TIMES)) and all(times) and times, "the page is painted")
        if load > 0:
            paints.append(found[0])
            rows.append(found[1])
    asked = [one for one in browser.sent() if "/clusters" in one and "/v1/" in one]
    print(f"    first paint {min(paints):.0f} ms, first row {min(rows):.0f} ms (the best of {LOADS} loads)", flush=True)
    assert len(asked) == LOADS + 1 and all("limit=50" in one for one in asked), asked
    assert min(paints) < PAINT_MS_MAX, f"the first paint is after {paints} ms"
