"""The data of the servers under test. It is always the same."""

import json

from texts import Texts

CLUSTERS = 10_000
SEED = 7
# The document that the checks look up, and its copies.
STORY = "https://news.example/harbour/1"
PAIR = "https://mirror1.example/harbour/1"
GOLDEN_MISSED = "half of it rewritten"
GOLDEN_WRONG = "the same text, labelled as different"

HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "<svg/onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "' OR 1=1; -- \" ` ${window.hacked=1}",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\u202egnp.exe\u202d \u2066reversed",
    "مرحبا/صفحة؟س=١",
    "😀" * 512,
    "w" * 2048,
    "line\nbreak\ttab",
    "%3Cscript%3E&lt;b&gt;&amp;",
]


def documents(texts, count):
    """Returns pages of three sites, of which every third has copies with small changes on other sites."""
    lines = []
    for number in range(1, count + 1):
        site, text = ["news", "travel", "history"][number % 3], texts.text(7)
        path = f"{texts.random.choice(['harbour', 'market', 'library'])}/{number}" if number > 1 else "harbour/1"
        site = "news" if number == 1 else site
        lines.append(
            {
                "id": f"https://{site}.example/{path}",
                "text": text,
                "metadata": {"crawl": "2026-48", "title": texts.sentence()},
                "labels": {"site": f"{site}.example", "crawl": "2026-48"},
            }
        )
        for copy in range(1, [0, 4, 1, 2][number % 4] + 1 if number % 3 == 1 else 1):
            lines.append(
                {
                    "id": f"https://mirror{copy}.example/{path}",
                    "text": texts.changed(text, copy - 1 if number > 1 else copy),
                    "labels": {"site": f"mirror{copy}.example", "crawl": "2026-48"},
                }
            )
    return lines


def form(texts, count):
    """Returns pages that differ only in one word: they fill a bucket."""
    page = texts.text(14)
    return [
        {"id": f"https://forms.example/{number}", "text": f"{page} number{number}", "labels": {"site": "forms.example"}}
        for number in range(count)
    ]


def golden(texts):
    """Returns labelled pairs: most are judged as labelled, one is missed, and one is wrongly reported."""
    pairs = []
    for number in range(12):
        text = texts.text(6)
        pairs.append({"name": f"copy {number}", "duplicate": True, "a": text, "b": texts.changed(text, number % 2)})
        pairs.append({"name": f"others {number}", "duplicate": False, "a": text, "b": texts.text(6)})
    text = texts.text(6)
    pairs.append({"name": GOLDEN_MISSED, "duplicate": True, "a": text, "b": texts.changed(text, 30)})
    pairs.append({"name": GOLDEN_WRONG, "duplicate": False, "a": text, "b": text})
    return {"pairs": pairs}


def lines(values):
    return "\n".join(json.dumps(value) for value in values)


def story():
    """Returns the text of the first document, as it was sent."""
    return documents(Texts(SEED), 1)[0]["text"]


def main(api):
    """A server with a collection of each kind."""
    texts = Texts(SEED)
    api.ask("PUT", "/v1/collections/pages", {"keep": "text"})
    api.ask("PUT", "/v1/collections/archive", {"keep": "text"})
    api.ask("PUT", "/v1/collections/benchmarks", {"index": "containment"})
    api.ask("PUT", "/v1/collections/titles", {"shingle": "char5", "threshold": 0.7, "ttl": 864000})
    lines = documents(texts, 120)
    api.bulk("pages", [*lines, *form(texts, 40)])
    api.bulk("default", lines[:60], "link")
    api.bulk("archive", documents(texts, 30))
    api.bulk("benchmarks", [{"id": f"exam/{number}", "text": texts.text(2)} for number in range(12)], "skip")
    api.ask("PUT", "/v1/collections/pages/golden", golden(texts))
    api.wait_for_job(api.ask("POST", "/v1/collections/archive/merge", {"from": "pages", "on_duplicate": "link"}))
    api.ask("DELETE", "/v1/collections/archive/documents", label="site:travel.example")


def small(api):
    """A few documents."""
    texts = Texts(8)
    api.ask("PUT", "/v1/collections/pages", {"keep": "text"})
    api.ask("PUT", "/v1/collections/private", {"keep": "text"})
    lines = documents(texts, 12)
    api.bulk("pages", lines)
    api.bulk("default", lines)


def crowd(api):
    """Many clusters of two short documents."""
    texts = Texts(9)
    api.ask("PUT", "/v1/collections/crowd", {"sketch": "fss64x8"})
    for first in range(0, CLUSTERS, 5000):
        lines = []
        for number in range(first, min(CLUSTERS, first + 5000)):
            text = f"{texts.sentence()} {number}"
            lines += [{"id": f"page/{number}", "text": text}, {"id": f"copy/{number}", "text": text}]
        api.bulk("crowd", lines, "link")


def cut(text, size):
    """Returns the beginning of a text in at most `size` bytes."""
    return text.encode()[:size].decode(errors="ignore")


def label_of(id):
    """Returns a value of a label: at most 256 bytes, without control characters."""
    return cut(" ".join(id.split()), 256)


def hostile(api):
    """Documents whose ids, texts, metadata and labels try to become a part of the page."""
    texts = Texts(10)
    pairs = []
    for name in ("hostile", "other"):
        api.ask("PUT", f"/v1/collections/{name}", {"keep": "text"})
    for id in HOSTILE:
        text = f"{texts.text(3)} {id[:400]} {texts.text(3)}"
        metadata, label = {"title": id, id[:60]: [id]}, label_of(id)
        others = [cut(id, 2000) + " copy", "copy " + cut(id, 2000)]
        lines = [{"id": id, "text": text}] + [{"id": other, "text": texts.changed(text, 1)} for other in others]
        api.bulk("hostile", [{**line, "metadata": metadata, "labels": {"site": label}} for line in lines])
        pairs.append({"name": cut(id, 256), "duplicate": False, "a": text, "b": text})
    page = texts.text(14)
    api.bulk(
        "hostile",
        [{"id": f"{number} {cut(id, 2000)}", "text": f"{page} {number}"} for number, id in enumerate(HOSTILE)],
    )
    api.ask("PUT", "/v1/collections/hostile/golden", {"pairs": pairs})
    api.wait_for_job(api.ask("POST", "/v1/collections/other/merge", {"from": "hostile", "on_duplicate": "store"}))
    api.ask("DELETE", "/v1/collections/other/documents", label=f"site:{label_of(HOSTILE[1])}")
