"""Pictures of the views for the docs."""

import base64
import io
import threading
import time

from texts import NOUNS, Texts

try:
    from PIL import Image
except ImportError:
    Image = None

WIDTH, HEIGHT_MAX = 1280, 1400
COLOURS = 256
# The charts of the view Live need some time with requests.
TRAFFIC_SECONDS = 100
PAUSE_SECONDS = 0.04


def save(world, name):
    """Saves pictures of the page, which are cut off below."""
    browser = world.browser
    height = browser.run("return document.documentElement.scrollHeight")
    browser.resize(WIDTH, min(max(height, 600), HEIGHT_MAX))
    browser.run("window.scrollTo(0, 0); document.activeElement?.blur()")
    world.pictures.mkdir(parents=True, exist_ok=True)
    browser.theme("light")
    browser.frame()
    png = base64.b64decode(browser.cdp("Page.captureScreenshot", format="png")["data"])
    (world.pictures / f"console-{name}.png").write_bytes(smaller(png))
    browser.resize(WIDTH, 900)


def smaller(png):
    if Image is None:
        return png
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return min(out.getvalue(), png, key=len)


def let_clients_work(api):
    """Sends checks and inserts for some time, so that the charts have something to show."""
    texts, end = Texts(41), time.monotonic() + TRAFFIC_SECONDS
    api.ask("POST", "/v1/backups", {})
    stored = [texts.text(6)]

    def work():
        while time.monotonic() < end:
            pick = texts.random.random()
            text = texts.text(6) if pick < 0.6 else texts.random.choice(stored)
            text = texts.changed(text, 2) if 0.6 < pick < 0.85 else text
            body = {
                "id": f"https://blog.example/{texts.random.choice(NOUNS)}/{texts.random.randrange(10**6)}",
                "text": text,
            }
            if texts.random.random() < 0.3:
                api.ask("POST", "/v1/collections/default/documents", body, on_duplicate="link")
                stored.append(text)
            else:
                api.ask("POST", "/v1/collections/default/check", {"text": text})
            time.sleep(PAUSE_SECONDS * (1.5 + texts.random.random()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
