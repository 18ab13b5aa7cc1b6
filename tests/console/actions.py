"""What a person does with documents and collections: each main action, and what the API says afterwards."""

import data
from texts import Texts
from views import of
from world import check

MORE = " and nobody was surprised"


def marks(browser):
    return browser.run("return [...document.querySelectorAll('.marked mark')].map((mark) => mark.textContent)")


@check("try: a typed text, its verdict, its passages, and another threshold")
def try_a_text(world):
    browser, api = world.browser, world.main.begin().api
    text = of(api, "/documents", id=data.STORY, **{"with": "text"})["text"]
    browser.open(world.main.url("try?collection=pages"))
    browser.shows("no text yet")
    browser.write("Text", "A text that nobody has sent so far, about nothing in particular.")
    browser.shows("unique", "No stored document was found")
    browser.write("Text", text)
    browser.shows("exact duplicate", data.STORY)
    browser.control("Text").send_keys(MORE)
    browser.shows("near duplicate")
    match = api.ask("POST", "/v1/collections/pages/check", {"text": text + MORE})["matches"][0]
    browser.shows(match["id"], f"{match['similarity']:.3f}", f"{match['low']:.3f}", f"{match['high']:.3f}")
    browser.until(lambda: any(len(mark) > 100 for mark in marks(browser)), "the shared passages are marked")
    assert not any(MORE in mark for mark in marks(browser)), marks(browser)
    turning = (int(100 * match["similarity"]) + 1) / 100
    browser.shows(f"With a threshold of {turning:.2f} or more this would be unique")
    browser.shows("Where the time went")
    assert browser.count(".stage, .interval") > 2
    browser.click(f"Check with {turning:.2f}")
    browser.shows("unique", "or less this would be a near duplicate of")
    assert browser.parameters["threshold"] == f"{turning:g}", browser.url
    browser.click("Clear")
    browser.shows("no text yet")


@check("try: a page of HTML, and a file")
def try_a_page(world):
    browser, api = world.browser, world.main.begin().api
    text = of(api, "/documents", id=data.STORY, **{"with": "text"})["text"]
    page = f"<!doctype html><title>A title</title><body><nav><a href=/>Menu</a></nav><article><p>{text}</p></article>"
    browser.open(world.main.url("try?collection=pages"))
    browser.put("Text", page)
    browser.click("Treat it as an HTML page")
    browser.shows("duplicate", data.STORY, "A title", "the main text")
    browser.click("Clear")
    file = world.folder / "page.html"
    file.write_text(page)
    browser.driver.find_element("css selector", "input[type=file]").send_keys(str(file))
    browser.shows("page.html", "A title", "duplicate", data.STORY)


@check("try: a text is stored, and found")
def store(world):
    browser, api = world.browser, world.main.begin().api
    text, id = Texts(21).text(6), "https://new.example/1"
    browser.open(world.main.url("try?collection=default"))
    browser.put("Text", text)
    browser.shows("unique")
    browser.click("Store it")
    browser.shows("Enter an id first")
    browser.write("Id of the new document", id)
    browser.click("Store it")
    browser.shows("The document is stored", "exact duplicate")
    assert of(api, "/documents", "default", id=id)["id"] == id


@check("try: items in a text")
def items(world):
    browser, api = world.browser, world.main.begin().api
    texts = Texts(22)
    item = texts.text(2)
    api.ask("POST", "/v1/collections/benchmarks/documents", {"id": "exam/shown", "text": item})
    browser.open(world.main.url("try?collection=benchmarks"))
    browser.put("Text", f"{texts.text(3)} {item} {texts.text(3)}")
    browser.shows("1 item", "exam/shown", "100 %")
    browser.until(lambda: any(mark in item for mark in marks(browser)), "the item is marked in the text")


@check("compare: two ids, two texts, what is shared and what differs")
def compare(world):
    browser, api = world.browser, world.main.begin().api
    browser.open(world.main.url("compare?collection=pages"))
    browser.shows("Choose two documents")
    browser.choose("Stored document", True)
    browser.write("Document A: id", data.STORY + "\n")
    browser.write("Document B: id", data.PAIR + "\n")
    exact = api.ask("POST", "/v1/collections/pages/compare", {"a": {"id": data.STORY}, "b": {"id": data.PAIR}})["exact"]
    browser.shows(
        f"{exact['jaccard']:.3f}", "the two are duplicates", f"{exact['shingles_a']:,}", f"{exact['shingles_b']:,}"
    )
    assert browser.parameters["a"] == data.STORY and browser.parameters["b"] == data.PAIR, browser.url
    shared = browser.until(lambda: marks(browser), "the shared passages are marked")
    browser.choose("What is marked", "different")
    browser.until(lambda: marks(browser) != shared, "what differs is marked")
    browser.open(world.main.url("compare?collection=pages"))
    browser.click("Use two sample texts")
    browser.shows("Jaccard, exact", "A is in B", "B is in A")
    browser.until(lambda: marks(browser), "the shared passages are marked")


@check("collections: one is created with the spec that the page showed")
def create(world):
    browser, api = world.browser, world.main.begin().api
    browser.open(world.main.url("collections"))
    browser.click("Create")
    browser.write("Name", "Wrong name")
    browser.shows("lowercase letters, digits")
    browser.write("Name", "made-here")
    browser.write("Length of a shingle", "3")
    browser.choose("Accents are removed", True)
    browser.click("Advanced settings")
    browser.choose("The signature and the text", True)
    browser.write("Threshold", "0.7")
    browser.until(lambda: browser.parameters.get("threshold") == "0.7", "the address has the choices")
    shown = browser.run("return document.querySelector('.create code.spec').innerText")
    browser.click("Create the collection")
    browser.shows("made-here", "First, store documents")
    made = api.get("/v1/collections/made-here")
    assert made["spec"] == shown and "shingle=word3" in shown and "marks=strip" in shown, (made, shown)
    assert (made["threshold"], made["keep"]) == (0.7, "text"), made


@check("collection: the threshold is changed, and the banding")
def change(world):
    browser, api = world.browser, world.main.begin().api
    api.answer("PUT", "/v1/collections/changed", {})
    browser.open(world.main.url("collection?collection=changed&tab=settings"))
    browser.write("Threshold", "0.65")
    browser.click("Save the changes")
    browser.click("Change")
    browser.until(lambda: api.get("/v1/collections/changed")["threshold"] == 0.65, "the threshold is 0.65")
    browser.shows("are changed")
    browser.click("Banding")
    browser.write("Bands, as a number", "16")
    browser.write("Rows of a band, as a number", "6")
    browser.shows("16 bands of 6 rows use 96 of the 256 slots")
    browser.click("Apply this banding")
    browser.click("Apply the banding")
    browser.shows("set by hand")
    about = api.get("/v1/collections/changed")
    assert about["banding"] == {"bands": 16, "rows": 6} and about["banding_by_hand"], about


@check("collection: it is dropped only if its name is typed")
def drop(world):
    browser, api = world.browser, world.main.begin().api
    api.answer("PUT", "/v1/collections/dropped", {})
    browser.open(world.main.url("collection?collection=dropped&tab=settings"))
    browser.click("Drop the collection")
    browser.write("Type", "droppe")
    drop = browser.element("button", "Drop", what="there is a button that drops")
    assert not drop.is_enabled(), "a wrong name is enough"
    browser.control("Type").send_keys("d")
    browser.click("Drop")
    browser.until(lambda: api.answer("GET", "/v1/collections/dropped")[0] == 404, "the collection is dropped")
    browser.until(lambda: browser.heading() == "Collections", "the list of collections is shown")
    browser.open(world.main.url("collection?collection=default&tab=settings"))
    browser.shows("The collection default always exists")


@check("collection: documents are deleted by label")
def delete_label(world):
    browser, api = world.browser, world.main.begin().api
    texts = Texts(23)
    labelled = [{"id": f"gone/{n}", "text": texts.text(4), "labels": {"batch": "gone"}} for n in range(5)]
    api.bulk("titles", labelled)
    browser.open(world.main.url("collection?collection=titles&tab=labels"))
    browser.shows("batch", "gone", "5")
    browser.click("Delete the documents with batch:gone")
    browser.click("Delete 5 documents")
    browser.shows("5 documents with the label")
    assert of(api, "/documents", "titles")["documents"] == []
    browser.click("Follow the job in Operate")
    browser.shows("Deletion of the label batch:gone in titles")


@check("quality: a golden set is stored, and its failing pairs are shown")
def golden(world):
    browser, api = world.browser, world.main.begin().api
    pairs = data.golden(Texts(24))
    browser.open(world.main.url("quality?collection=default"))
    browser.shows("There is no golden set yet")
    browser.put("Pairs", '{"a": "one", "b": "two"}')
    browser.shows("duplicate must be true or false")
    browser.put("Pairs", data.lines(pairs["pairs"]))
    browser.click("Store the golden set")
    browser.shows(data.GOLDEN_MISSED, data.GOLDEN_WRONG)
    report = api.get("/v1/collections/default/golden")
    browser.shows(f"{100 * report['recall']:.1f} %", f"{100 * report['precision']:.1f} %")
    browser.choose("Pairs that are shown", "not_a_duplicate")
    browser.until(lambda: data.GOLDEN_MISSED not in browser.text(), "only pairs with one reason are shown")
    assert browser.parameters["reason"] == "not_a_duplicate", browser.url
    browser.click("Delete the golden set")
    browser.click("Delete the golden set")
    browser.shows("There is no golden set yet")
    assert api.get("/v1/collections/default/golden")["pairs"] == 0


@check("clusters: from a document to its cluster, and two members side by side", "status of 404")
def members(world):
    browser = world.browser
    browser.open(world.main.url("clusters?collection=pages"))
    browser.write("Id of a document", data.PAIR + "\n")
    browser.shows("The cluster", data.STORY, data.PAIR)
    browser.choose(f"Choose {data.PAIR}", True)
    browser.choose(f"Choose {data.PAIR.replace('mirror1', 'mirror2')}", True)
    browser.click("Compare the two documents")
    browser.shows("Jaccard, exact")
    assert browser.heading() == "Compare" and browser.parameters["a"] == data.PAIR, browser.url
    browser.open(world.main.url("clusters?collection=pages&id=nobody"))
    browser.shows("There is no such document")


@check("buckets: what two documents of a full bucket share")
def buckets(world):
    browser, api = world.browser, world.main.begin().api
    found = of(api, "/buckets", limit=10)["buckets"]
    browser.open(world.main.url("buckets?collection=pages"))
    browser.click(f"Show the bucket of band {found[1]['band']} with 40 documents")
    browser.shows(f"40 documents in a bucket of band {found[1]['band']}")
    assert browser.parameters["bucket"] == f"{found[1]['band']}.{found[1]['key']}", browser.url
    shared = browser.until("return document.querySelector('blockquote')?.innerText", "the shared passage is shown")
    text = of(api, "/documents", id=found[1]["sample"][0], **{"with": "text"})["text"]
    assert shared.strip()[:200] in text, (shared, text)
