"""Chromium, driven by WebDriver. It notes what no page of the console may do: errors, and requests to other origins."""

import json
import os
import pathlib
import sys
import time
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
OPTIONS = [
    "--headless=new",
    # CI runs as root, and in containers that give Chromium no sandbox.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
]
PATIENCE_SECONDS = 20
# A page has its data when it asks for nothing for this long.
QUIET_MS = 120
# The Makefile puts it there.
AXE = (pathlib.Path(sys.prefix) / "axe.min.js").read_text()
WATCH = (pathlib.Path(__file__).parent / "watch.js").read_text()
# Chromium asks for it if a file that is not a page is opened, which only `use_key` does.
UNASKED = "/favicon.ico"
SIZES = [(360, 740), (768, 1024), (1280, 900), (3840, 2160)]


class Browser:
    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in [*OPTIONS, f"--user-data-dir={folder}", "--window-size=1280,900"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER, env={**os.environ, "TZ": "UTC"}))
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.driver.get("about:blank")
        # What Chromium's own first page does is no concern of the console.
        self.requests = list(self.sent())
        self.resize(1280, 900)
        self.theme("light")

    def quit(self):
        self.driver.quit()

    def cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def resize(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, theme):
        # While a colour changes slowly, axe sees colours between the two themes.
        features = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}.items()
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features])

    # Pages ---------------------------------------------------------------------------------------------------------

    def open(self, url):
        """Opens an address, as if a person typed it, and waits until the view has its data."""
        self.driver.get(url)
        self.settle()

    def go(self, url):
        """Shows another view of the page that is open, as a link does."""
        if self.url.partition("/console/")[0] != url.partition("/console/")[0]:
            return self.open(url)
        self.run("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", url)
        self.settle()

    def settle(self):
        """Waits until the view is drawn and asks for nothing."""
        quiet = f"return document.querySelector('h1') !== null && watched.isQuiet({QUIET_MS})"
        self.until(quiet, "the view is drawn, and asks for nothing any more")

    def use_key(self, server, key):
        """Gives a key to the pages of a server, without the dialog that asks for it. None: forgets the key."""
        self.driver.get(server.url("icon.svg"))
        if key is None:
            self.run("sessionStorage.clear()")
        else:
            self.run("sessionStorage.setItem('hapax.key', arguments[0])", key)

    @property
    def url(self):
        return self.driver.current_url

    @property
    def parameters(self):
        """The parameters of the address."""
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query))

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, condition, what, seconds=PATIENCE_SECONDS):
        """Waits until a script or a function returns something true, and returns that."""
        end = time.monotonic() + seconds
        while True:
            try:
                found = self.run(condition) if isinstance(condition, str) else condition()
            except StaleElementReferenceException:
                found = None
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; the page says: {self.text()[-700:]!r}")
            time.sleep(0.03)

    # What a page says ------------------------------------------------------------------------------------------------

    def text(self):
        """What a person reads on the page, with single spaces."""
        return self.run("return watched.text()")

    def shows(self, *texts, seconds=PATIENCE_SECONDS):
        """Waits until the page shows all of these texts."""
        for text in texts:
            wanted = " ".join(str(text).split())
            self.until(lambda: wanted in self.text(), f"the page shows {text!r}", seconds)

    def hides(self, *texts):
        shown = self.text()
        for text in texts:
            assert text not in shown, f"the page shows {text!r}: {shown[-700:]!r}"

    def heading(self):
        return self.run("return document.querySelector('h1')?.innerText ?? ''")

    def count(self, css):
        return len(self.driver.find_elements("css selector", css))

    # What a person does ----------------------------------------------------------------------------------------------

    def element(self, name, *arguments, what):
        """Waits for an element that a function of watch.js finds."""
        script = f"return watched.{name}(...arguments)"
        return self.until(lambda: self.run(script, *arguments), what)

    def control(self, label, is_choice=False):
        """The control with this label: one that takes a text, or a select, a radio button or a checkbox."""
        return self.element("control", label, is_choice, what=f"there is a control with the label {label!r}")

    def has_button(self, text):
        """Whether the page offers a button or a link with this text."""
        return self.run("return watched.button(arguments[0])", text) is not None

    def click(self, text, within=None):
        """Clicks the button or the link with this text. `within`: a selector of the elements to look in."""

        def act():
            found = self.run("return watched.button(...arguments)", text, within)
            if found is None or not found.is_enabled():
                return False
            self.run("arguments[0].scrollIntoView({block: 'center'})", found)
            try:
                found.click()
            except WebDriverException as refused:
                if "click intercepted" in str(refused) or "not interactable" in str(refused):
                    return False
                raise
            return True

        self.until(act, f"the button {text!r} can be clicked")

    def write(self, label, text):
        """Types a text into a control, key by key."""
        control = self.control(label)
        control.clear()
        control.send_keys(text)

    def put(self, label, text):
        """Puts a text into a control at once, as if it was pasted. Keys cannot type all characters."""
        self.run("watched.put(...arguments)", self.control(label), text)

    def choose(self, label, value):
        """Chooses an option of a select by its value. Of a radio button or a checkbox, the value is true or false."""
        control = self.control(label, is_choice=True)
        if control.tag_name == "select":
            self.run("watched.put(...arguments)", control, value)
        elif control.is_selected() != value:
            self.run("arguments[0].scrollIntoView({block: 'center'})", control)
            control.click()

    def focused(self):
        return self.driver.switch_to.active_element

    # Faults ----------------------------------------------------------------------------------------------------------

    def faults(self, origins, expected, secrets):
        """Returns what the pages did since the last call that no page may do. `origins`: those of the servers.
        `expected`: words of the errors that a check causes. `secrets`: texts that must not be in an address."""
        found = []
        for entry in self.driver.get_log("browser"):
            if entry["level"] == "SEVERE" and not any(word in entry["message"] for word in (*expected, UNASKED)):
                found.append(f"console: {entry['message'][:600]}")
        self.requests = list(self.sent())
        for address in self.requests:
            if not address.startswith((*(f"{origin}/" for origin in origins), "data:", "blob:")):
                found.append(f"a request to another origin: {address[:300]}")
            if any(secret in urllib.parse.unquote(address) for secret in secrets):
                found.append(f"a key is in an address: {address[:300]}")
        found += [f"{one} breaks the security policy" for one in self.run("return window.watched?.violations ?? []")]
        return found + self.kept(secrets) + self.layout()

    def sent(self):
        """The addresses of the requests since the last call."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]

    def kept(self, secrets):
        """Returns a fault if the browser keeps more than it may: the theme for ever, the key in this tab."""
        if not self.url.startswith("http"):
            return []
        local, session, cookies = self.run("return [{...localStorage}, {...sessionStorage}, document.cookie]")
        found = []
        if set(local) - {"hapax.theme"} or set(session) - {"hapax.key"} or cookies:
            found.append(f"the browser keeps {sorted(local)} {sorted(session)} {cookies!r}")
        if any(secret in json.dumps(local) + self.url for secret in secrets):
            found.append("a key is in the local storage or in the address")
        return found

    def save(self, path):
        """Saves a picture of the page, and its text."""
        self.driver.save_screenshot(f"{path}.png")
        path.with_name(f"{path.name}.txt").write_text(f"{self.url}\n{self.text()}\n")

    def layout(self):
        """Returns a fault if the page is wider than the window."""
        wide = self.run("return window.watched?.tooWide() ?? []")
        size = self.run("return window.innerWidth")
        return [f"wider than the window of {size} pixels: {', '.join(wide)}"] if wide else []

    def widths(self, sizes=SIZES):
        """Returns the faults of the layout in windows of several sizes."""
        found = []
        for size in sizes:
            self.resize(*size)
            self.frame()
            found += self.layout()
        self.resize(1280, 900)
        return found

    def frame(self):
        """Waits until the page is drawn again."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def axe(self):
        """Returns what axe finds in the page, in both themes."""
        found = []
        for theme in ("dark", "light"):
            self.theme(theme)
            if not self.run("return 'axe' in window"):
                self.run(AXE)
            found += [f"axe, {theme}: {one}" for one in self.driver.execute_async_script("watched.axe(arguments[0])")]
        return found
