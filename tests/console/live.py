"""The numbers of the pages are those of /metrics."""

import re

from world import check

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OF_CONNECTIONS = {"hapax_http_connections", "process_open_fds"}
TRIES = 5
UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]


def series(name):
    """The name of a series, and its labels in no order."""
    before, _, labels = name.partition("{")
    return before, frozenset(LABEL.findall(labels))


def formats(value):
    """What a page may write for a number. For times it must say the number in `data-value`."""
    size, at = value, 0
    while abs(size) >= 1024 and at < len(UNITS) - 1:
        size, at = size / 1024, at + 1
    digits = 0 if at == 0 or size >= 100 else 1
    percents = [f"{100 * value:.{digits}f} %" for digits in (0, 1)]
    return {f"{round(value):,}", f"{size:.{digits}f} {UNITS[at]}", *percents, f"{value:.3f}", f"{value:g}"}


def compare(browser, api, url):
    """Opens a view, and compares its numbers with /metrics. Returns the names of the compared series, and the faults."""
    before = {series(name): value for name, value in api.metrics().items()}
    browser.open(url)
    # The page reads /metrics when it is opened.
    browser.until("return watched.numbers().some(([, , text]) => text !== '–')", "there are numbers from /metrics")
    shown = browser.run("return watched.numbers()")
    after = {series(name): value for name, value in api.metrics().items()}
    names, faults = set(), []
    for name, raw, text in shown:
        key = series(name)
        if key not in after:
            if text != "–":
                faults.append(f"/metrics has no {name}, the page has {text!r}")
        # What changed meanwhile cannot be compared, and the connections of this script are counted, too.
        elif before.get(key) == after[key] and key[0] not in OF_CONNECTIONS:
            names.add(key[0])
            # A time is written as in the zone of the browser, so the page must have its number in `data-value`.
            is_same = float(raw) == after[key] if raw is not None else text in formats(after[key])
            if not is_same:
                faults.append(f"{name} is {after[key]} in /metrics; the page has {raw} {text!r}")
    return names, faults


def of_view(world, path, wanted):
    """Returns the faults of the numbers of a view. `wanted`: series that it must show. Those that change meanwhile are
    compared when the view is opened again."""
    api, missing = world.main.begin().api, set(wanted.split())
    for _ in range(TRIES):
        names, faults = compare(world.browser, api, world.main.url(path))
        missing -= names
        if faults or not missing:
            break
    return [f"{path}: {one}" for one in faults] + ([f"{path}: not compared: {sorted(missing)}"] if missing else [])


@check("live: each number is that of /metrics")
def live(world):
    whole = """hapax_memory_used_bytes hapax_memory_budget_bytes hapax_documents hapax_bucket_documents_largest
        hapax_backups_total hapax_disk_reserve_bytes hapax_commit_queue_depth hapax_http_connections_max"""
    one = "hapax_documents hapax_verdicts_total hapax_index_bytes hapax_bucket_documents_largest hapax_buckets_over_cap"
    return of_view(world, "live", whole) + of_view(world, "live?collection=pages", one)


@check("live: numbers from /metrics in other views")
def others(world):
    api, canary = world.main.begin().api, 'hapax_canary_documents_total{collection="pages"}'
    # The canary begins within a minute.
    world.browser.until(lambda: api.metrics().get(canary), "the canary has looked up something", 90)
    return [
        *of_view(world, "operate?tab=integrity", "hapax_scrub_errors_total hapax_scrub_records_total"),
        *of_view(world, "operate?tab=backups", "hapax_backups_total hapax_backup_last_success_timestamp_seconds"),
        *of_view(world, "operate?tab=audit", "hapax_audit_lines_total hapax_audit_bytes hapax_audit_dropped_total"),
        *of_view(world, "buckets?collection=pages", "hapax_bucket_documents_largest hapax_buckets_over_cap"),
        *of_view(world, "quality?collection=pages", "hapax_canary_documents_total hapax_canary_recall_ratio"),
    ]


@check("live: what clients do is seen")
def traffic(world):
    browser, api = world.browser, world.main.begin().api
    browser.open(world.main.url("live?collection=titles"))
    browser.shows("Read at")
    number = 'return document.querySelector(`[data-metric*="hapax_verdicts_total"][data-metric*="check"][data-metric*="unique"]`)?.innerText'
    before = int(browser.until(number, "the verdicts are counted").replace(",", ""))
    for at in range(30):
        api.ask("POST", "/v1/collections/titles/check", {"text": f"a title with the number {at * 7919}"})
        # Nobody has used this route before.
        api.ask("POST", "/v1/collections/titles/extract", {"html": "<p>A title</p>"})
    browser.until(lambda: int(browser.run(number).replace(",", "")) == before + 30, "30 more checks are shown")
    routes = [f"POST /v1/collections/{{collection}}/{route} 30" for route in ("check", "extract")]
    browser.shows("unique 100.0 %", *routes)
    assert browser.count(".chart canvas, .u-wrap canvas") >= 7, "there are no charts"
