"""Each view and each tab: it opens by its address, shows what the API says, fits every window, and axe finds nothing."""

import dataclasses
import typing

import data
import pictures
from world import check


@dataclasses.dataclass(frozen=True)
class State:
    """A state of a view that has an address. `shown(api)`: texts that it must show. `act(browser)`: what a person does
    first. `picture`: whether it is in the docs. `expected`: words of errors in the browser's console."""

    name: str
    path: str
    heading: str
    shown: typing.Callable
    act: typing.Callable | None = None
    picture: bool = False
    expected: tuple = ()


def number(value):
    return f"{value:,}"


def of(api, rest="", collection="pages", **query):
    """Reads what the API says of a collection."""
    return api.get(f"/v1/collections/{collection}{rest}", **query)


def text_of(api, id):
    return of(api, "/documents", id=id, **{"with": "text"})["text"]


# The text of a stored document with other words at its end.
COPY = data.story().rsplit(" ", 6)[0] + " and nobody was surprised."


def write_a_copy(browser):
    browser.put("Text", COPY)
    browser.shows("near duplicate", data.STORY)
    browser.settle()


def tried(api):
    verdict = api.ask("POST", "/v1/collections/pages/check", {"text": COPY}, explain="true")
    return ["near duplicate", f"{verdict['similarity']:.3f}", number(verdict["shingles"]), *ids(verdict["matches"])]


def ids(found, field="id"):
    return [one[field] for one in found]


def compared(api):
    answer = api.ask("POST", "/v1/collections/pages/compare", {"a": {"id": data.STORY}, "b": {"id": data.PAIR}})
    exact, estimate = answer["exact"], answer["estimate"]
    shares = [exact["jaccard"], estimate["similarity"], estimate["low"], estimate["high"]]
    ratios = [f"{100 * exact[side]:.1f} %" for side in ("containment_a_in_b", "containment_b_in_a")]
    return [
        *(f"{share:.3f}" for share in shares),
        number(exact["intersection"]),
        *ratios,
        *text_of(api, data.STORY).split()[:4],
    ]


def overview(api):
    about = of(api)
    return [
        number(about["documents"]),
        f"{about['banding']['bands']} × {about['banding']['rows']}",
        about["spec"],
        about["fingerprint"],
    ]


def listed(api):
    found = api.get("/v1/collections")["collections"]
    assert len(found) == 5, found
    return [text for one in found for text in (one["name"], number(one["documents"]))]


def labels(api):
    found = of(api, "/labels")["labels"]
    return [text for one in found for text in (one["value"], number(one["documents"]))]


def statistics(api):
    found = of(api, "/statistics")["all"]
    return [number(found[name]) for name in ("documents", "unique", "near_duplicates", "exact_duplicates")]


def largest(api):
    page = of(api, "/clusters/largest", limit=50)
    return [number(page["total"]), *ids(page["clusters"], "representative")]


def one_cluster(api):
    found = of(api, "/clusters", id=data.STORY)
    assert len(found["members"]) == 4, found
    shares = [f"{member['similarity']:.3f}" for member in found["members"][1:]]
    return [*ids(found["members"]), *shares, "representative"]


def fullest(api):
    bucket = of(api, "/buckets", limit=10)["buckets"][0]
    assert bucket["documents"] == 40, bucket
    return ["40 documents", f"band {bucket['band']}", *bucket["sample"]]


def golden(api):
    report = of(api, "/golden")
    assert sorted(ids(report["failed"], "name")) == sorted([data.GOLDEN_MISSED, data.GOLDEN_WRONG]), report
    ratios = [f"{100 * report[name]:.1f} %" for name in ("recall", "precision")]
    return [*ratios, number(report["pairs"]), *ids(report["failed"], "name"), "Canary", "Drift"]


def live(api):
    return [number(of(api)["documents"]), "pages", "benchmarks", "Memory"]


def live_opened(api):
    return [*live(api), api.get("/v1/version")["version"], "Free space", "Processors in use"]


def ready(api):
    return ["ready", api.get("/v1/version")["version"], *listed(api)]


def jobs(api):
    found = api.get("/v1/jobs")["jobs"]
    assert {one["kind"] for one in found} == {"merge", "delete_label"}, found
    return [*ids(found, "job"), "site:travel.example", "inserted", "linked", "done"]


def reports(api):
    job = next(one["job"] for one in api.get("/v1/jobs")["jobs"] if one["kind"] == "merge")
    return [job, "inserted", *ids(api.get(f"/v1/jobs/{job}/reports", limit=20)["reports"])]


def merge_of(api):
    return next(one["job"] for one in api.get("/v1/jobs")["jobs"] if one["kind"] == "merge")


def decisions(api):
    found = api.get("/v1/audit", limit=50, op="insert", collection="default")["decisions"]
    assert len(found) >= 40, found
    return [*ids(found)[:20], "insert", "unique"]


def scrubbed(api):
    return [one["name"] for one in api.get("/v1/collections")["collections"]] + ["hapax verify"]


def says(*texts):
    return lambda api: texts


VIEWS = [
    State("try", "try?collection=pages", "Try it", tried, write_a_copy, picture=True),
    State("try-items", "try?collection=benchmarks", "Try it", says(), None),
    State("compare", f"compare?collection=pages&a={data.STORY}&b={data.PAIR}", "Compare", compared, picture=True),
    State("live", "live", "Live", live, picture=True),
    State("live-opened", "live?open=lookups,disk,process", "Live", live_opened),
    State("collections", "collections", "Collections", listed, picture=True),
    State(
        "create",
        "collections?create=1&name=pages-2027&keep=text",
        "Create a collection",
        says("hapax1;unicode=17;"),
    ),
    State("collection", "collection?collection=pages", "pages", overview),
    State(
        "settings", "collection?collection=pages&tab=settings", "pages", says("Drop the collection", "Save the changes")
    ),
    State(
        "banding",
        "collection?collection=pages&tab=banding",
        "pages",
        says("31 bands of 8 rows", "Before and after"),
        picture=True,
    ),
    State("labels", "collection?collection=pages&tab=labels", "pages", labels),
    State("statistics", "collection?collection=pages&tab=statistics", "pages", statistics),
    State("empty", "collection?collection=titles", "titles", says("First, store documents", "hapax import")),
    State("clusters", "clusters?collection=pages", "Clusters", largest, picture=True),
    State("cluster", f"clusters?collection=pages&id={data.PAIR}", "Clusters", one_cluster, picture=True),
    State("no-clusters", "clusters?collection=titles", "Clusters", says("on_duplicate=link")),
    State("buckets", "buckets?collection=pages", "Buckets", fullest, picture=True),
    State("quality", "quality?collection=pages", "Quality", golden, picture=True),
    State("no-golden", "quality?collection=archive", "Quality", says("There is no golden set yet")),
    State("operate", "operate", "Operate", ready, picture=True),
    State("jobs", "operate?tab=jobs", "Operate", jobs),
    State("reports", "operate?tab=jobs&job=archive.", "Operate", reports),
    State("backups", "operate?tab=backups", "Operate", says("Start the backup", "hapax backup")),
    State("integrity", "operate?tab=integrity", "Operate", scrubbed),
    State(
        "keys-off",
        "operate?tab=keys",
        "Operate",
        says("This server has no keys file", "hapax keys add"),
        expected=("status of 403",),
    ),
    State("audit", "operate?tab=audit&collection=default&op=insert", "Operate", decisions, picture=True),
]


def view(state):
    @check(f"view {state.name}: its data, four widths, and axe in two themes", *state.expected)
    def run(world):
        browser, api = world.browser, world.main.begin().api
        # The name of a job has a number that is not always the same.
        path = state.path.replace("archive.", merge_of(api)) if state.name == "reports" else state.path
        browser.open(world.main.url(path))
        if state.act:
            state.act(browser)
        if world.pictures and state.name == "live":
            pictures.let_clients_work(api)
        faults = []
        if browser.heading() != state.heading:
            faults.append(f"the heading is {browser.heading()!r}")
        if "hapax" not in browser.driver.title:
            faults.append(f"the title is {browser.driver.title!r}")
        try:
            browser.shows(*state.shown(api))
        except AssertionError as missing:
            faults.append(str(missing))
        if state.picture and world.pictures:
            pictures.save(world, state.name)
        faults += browser.run("return watched.copyable()")
        # What can be opened is checked, too.
        browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        browser.settle()
        return faults + browser.widths() + browser.axe()


for one in VIEWS:
    view(one)
