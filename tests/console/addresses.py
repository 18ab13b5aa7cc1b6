"""Addresses, the keyboard and the theme: back and forward, shared addresses, focus."""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import data
from world import check


@check("addresses: back and forward show the views again")
def back_and_forward(world):
    browser = world.browser
    browser.open(world.main.url("collections"))
    browser.click("pages", within="main")
    browser.until(lambda: browser.heading() == "pages", "the collection is shown")
    browser.click("Settings")
    browser.shows("Save the changes")
    browser.click("Clusters", within="#nav")
    browser.shows("The largest clusters")
    browser.click(data.STORY)
    browser.shows("The cluster")
    trail = []
    for _ in range(4):
        browser.driver.back()
        browser.settle()
        trail.append(browser.heading())
    assert trail == ["Clusters", "pages", "pages", "Collections"], trail
    browser.shows("titles")
    for _ in range(4):
        browser.driver.forward()
        browser.settle()
    browser.shows("The cluster", data.PAIR)
    assert browser.parameters["id"] == data.STORY, browser.url
    assert browser.run("return document.querySelector('#nav [aria-current=page]').innerText") == "Clusters and buckets"


@check("addresses: a shared address restores what was chosen")
def shared(world):
    browser = world.browser
    browser.open(world.main.url("try?collection=pages&threshold=0.55&id=a"))
    browser.shows("0.55; the collection has 0.8")
    assert browser.control("Threshold").get_attribute("value") == "0.55"
    assert browser.control("Id of the text").get_attribute("value") == "a"
    browser.open(world.main.url("collections?create=1&name=shared&index=containment&shingle=word9"))
    assert browser.control("Name").get_attribute("value") == "shared"
    browser.shows("shingle=word9", "sketch=none")
    browser.open(world.main.url("collection?collection=pages&tab=banding&bands=20&rows=5&j=0.6"))
    browser.shows("20 bands of 5 rows use 100 of the 256 slots")
    browser.open(world.main.url("operate?tab=audit&collection=pages&verdict=near_duplicate&limit=200"))
    assert browser.control("Verdict", True).get_attribute("value") == "near_duplicate"
    assert browser.control("Collection").get_attribute("value") == "pages"
    browser.open(world.main.url("collections?q=titl"))
    browser.shows("titles")
    assert browser.count("main tbody tr") == 1, browser.text()
    browser.open(world.main.url("live?collection=pages&minutes=15"))
    assert browser.control("Period of the charts", True).get_attribute("value") == "15"
    assert browser.control("Collection", True).get_attribute("value") == "pages"


@check("addresses: views and collections that do not exist", "status of 404")
def nowhere(world):
    browser = world.browser
    browser.open(world.main.url("?collection=titles"))
    assert browser.url.endswith("/console/try?collection=titles"), browser.url
    for view in ("try", "compare", "collection", "clusters", "buckets", "quality"):
        browser.open(world.main.url(f"{view}?collection=nowhere"))
        browser.shows("nowhere")
        assert browser.count("main .failure") >= 1, f"{view}: {browser.text()}"
    browser.open(world.main.url("nothing"))
    browser.shows("There is no such page")
    assert world.main.api.answer("GET", "/console/nothing")[0] == 404
    status, problem = world.main.api.answer("GET", "/console/nothing.js")
    assert (status, problem["code"]) == (404, "route_not_found"), problem


@check("addresses: the collection stays chosen in other views")
def chosen(world):
    browser = world.browser
    browser.open(world.main.url("try?collection=titles"))
    for view in ("Compare", "Clusters", "Quality"):
        browser.click(view, within="#nav")
        browser.until(f"return document.querySelector('h1')?.innerText === '{view}'", f"{view} is shown")
        assert browser.parameters["collection"] == "titles", browser.url
    browser.settle()
    browser.choose("Collection", "pages")
    browser.until(lambda: browser.parameters["collection"] == "pages", "another collection is chosen")
    browser.shows(data.GOLDEN_MISSED)


CLIPBOARD = "navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))"


@check("addresses: a request as a command")
def curl(world):
    browser = world.browser
    origin = world.main.begin().address
    browser.cdp("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(world.main.url(f"clusters?collection=pages&id={data.STORY}"))
    browser.click("Copy as curl")
    browser.shows("copied")
    command = browser.driver.execute_async_script(CLIPBOARD)
    assert command.startswith(f"curl '{origin}/v1/collections/pages/clusters?"), command
    assert "id=https%3A%2F%2Fnews.example%2Fharbour%2F1" in command, command


@check("theme: it is chosen with a button, and kept")
def theme(world):
    browser = world.browser
    browser.open(world.main.url("collections"))
    back = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(back)
    browser.click("Theme: auto")
    browser.click("Theme: light")
    browser.until(lambda: browser.run(back) != light, "the page is dark")
    dark = browser.run(back)
    browser.open(world.main.url("live"))
    assert browser.run(back) == dark
    faults = [f"axe: {one}" for one in browser.axe()]
    browser.click("Theme: dark")
    browser.until(lambda: browser.run(back) == light, "the page is light again")
    return faults


def press(browser, *keys):
    ActionChains(browser.driver).send_keys(*keys).perform()


NAMED = """
    const it = document.activeElement;
    if (it === document.body) return "";
    return (it.getAttribute("aria-label") ?? it.labels?.[0]?.innerText ?? it.innerText).trim();
"""


REACHED = [
    "Try it",
    "Live",
    "Theme: auto",
    "Collection",
    "Copy as curl",
    "Text",
    "Open a file",
    "Threshold",
    "Store it",
]


def walk(browser):
    """Presses Tab up to the end of the page. Returns what gets the focus, and that of which it cannot be seen."""
    reached, unseen = [], []
    while len(reached) < 80:
        press(browser, Keys.TAB)
        name = browser.run(NAMED)
        if name == "":
            break
        reached.append(name)
        if not browser.run("return watched.focus()"):
            unseen.append(name)
    return reached, unseen


@check("keyboard: Tab reaches everything, and the focus is visible")
def keyboard(world):
    browser = world.browser
    browser.open(world.main.url("try?collection=pages"))
    reached, unseen = walk(browser)
    assert reached[0] == "Skip to the content", reached
    missing = [one for one in REACHED if one not in reached]
    faults = [f"Tab does not reach {missing}: {reached}"] if missing else []
    return faults + [f"the focus cannot be seen: {unseen}"] * bool(unseen)


@check("keyboard: Enter follows a link, the skip link leads to the content, Escape closes a dialog")
def enter_and_escape(world):
    browser = world.browser
    browser.open(world.main.url("try?collection=pages"))
    press(browser, Keys.TAB, Keys.ENTER)
    browser.until("return document.activeElement.id === 'view'", "the focus is in the content")
    browser.open(world.main.url("try?collection=pages"))
    for _ in range(20):
        press(browser, Keys.TAB)
        if browser.focused().text == "Collections":
            break
    press(browser, Keys.ENTER)
    browser.until(lambda: browser.heading() == "Collections", "Enter follows the link")
    browser.open(world.main.url("collection?collection=pages&tab=settings"))
    drop = browser.element("button", "Drop the collection", what="there is a button that drops")
    browser.run("arguments[0].focus()", drop)
    press(browser, Keys.ENTER)
    browser.until(
        "return document.querySelector('dialog[open]')?.contains(document.activeElement)", "the focus is in the dialog"
    )
    faults = [f"axe, dialog: {one}" for one in browser.axe()] + browser.widths()
    press(browser, Keys.ESCAPE)
    browser.until("return document.querySelector('dialog') === null", "Escape closes the dialog")
    assert browser.run("return document.activeElement === arguments[0]", drop), (
        "the focus does not return to the button"
    )
    return faults
