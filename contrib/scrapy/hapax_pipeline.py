"""A Scrapy item pipeline that drops pages which hapax has seen before. README.md says how to use it.

Items are dicts with the `url` of a page, its `html` and its `body` in bytes.
"""

import asyncio
import base64
import hashlib
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone

from scrapy.exceptions import DropItem

# Nothing is stored, and the same request may be sent again: see docs/revisits.md.
RETRIED = {408, 429, 503, 507}


class HapaxPipeline:
    def __init__(self, settings):
        query = "on_existing=replace&limit=1"
        collection = settings.get("HAPAX_COLLECTION", "default")
        self.url = f"{settings['HAPAX_URL'].rstrip('/')}/v1/collections/{collection}/documents?{query}"
        self.headers = {"content-type": "application/json"}
        if key := settings.get("HAPAX_KEY"):
            self.headers["authorization"] = f"Bearer {key}"
        self.crawl = settings.get("HAPAX_CRAWL")
        self.timeout = settings.getfloat("HAPAX_TIMEOUT_SECONDS", 130)
        self.patience = settings.getfloat("HAPAX_PATIENCE_SECONDS", 600)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings)

    async def process_item(self, item):
        """Adds the verdict to a page that is new, changed or as it was. Drops one that duplicates another page."""
        # In a thread, so that other pages are fetched meanwhile.
        verdict = await asyncio.to_thread(self.insert, self.document(item))
        if not verdict["stored"]:
            raise DropItem(f"{verdict['verdict']} of {verdict.get('duplicate_of')}")
        return {**item, "hapax": verdict}

    def document(self, item):
        digest = base64.b32encode(hashlib.sha1(item["body"]).digest()).decode()
        labels = {"site": urllib.parse.urlsplit(item["url"]).hostname}
        return {
            "id": item["url"],
            "html": item["html"],
            "labels": labels | ({"crawl": self.crawl} if self.crawl else {}),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "payload_digest": f"sha1:{digest}",
        }

    def insert(self, document):
        """Sends a document until it is answered. To send it twice is safe, so an answer that is lost does not matter."""
        request = urllib.request.Request(self.url, json.dumps(document).encode(), self.headers)
        give_up, wait = time.monotonic() + self.patience, 1
        while True:
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refused:
                problem, after = refused.read().decode(errors="replace"), refused.headers.get("retry-after")
                if refused.code not in RETRIED or time.monotonic() > give_up:
                    raise RuntimeError(f"hapax refused {document['id']}: {problem}") from None
                seconds = int(after) if after else wait
            except (OSError, ValueError, http.client.HTTPException):
                if time.monotonic() > give_up:
                    raise
                seconds = wait
            # Something random, so that many crawlers do not come back together.
            time.sleep(seconds + random.random())
            wait = min(2 * wait, 60)
