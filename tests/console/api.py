"""Sends requests to the API of a server under test."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_SECONDS = 120
JSON = ("application/json", "application/problem+json")


class Api:
    def __init__(self, address, key=None):
        self.address = address
        self.key = key

    def answer(self, method, path, body=None, media_type="application/json", **query):
        """Sends a request. Returns the status, and the value of the answer: JSON if it is JSON, else a text."""
        url = self.address + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if body is not None:
            headers["Content-Type"] = media_type
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, self.read(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, self.read(refused)

    @staticmethod
    def read(answer):
        text = answer.read().decode()
        return json.loads(text) if answer.headers.get_content_type() in JSON else text

    def ask(self, method, path, body=None, **query):
        """Returns the value of an answer that must be a success."""
        status, value = self.answer(method, path, body, **query)
        assert status < 300, f"{method} {path}: {status} {value}"
        return value

    def get(self, path, **query):
        return self.ask("GET", path, **query)

    def bulk(self, collection, documents, on_duplicate="store"):
        """Inserts documents. Each of them must be accepted."""
        lines = "\n".join(json.dumps(document) for document in documents).encode()
        path = f"/v1/collections/{collection}/bulk"
        query = {"op": "insert", "on_duplicate": on_duplicate, "limit": 1}
        status, text = self.answer("POST", path, lines, "application/x-ndjson", **query)
        last = json.loads(text.rstrip("\n").rsplit("\n", 1)[-1])
        assert status == 200 and last["summary"]["errors"] == 0, text[-2000:]
        return last["summary"]

    def wait_for_job(self, started):
        """Waits until a job has ended. Returns it."""
        path = f"/v1/jobs/{urllib.parse.quote(started['job'], safe='')}"
        while (job := self.get(path))["state"] == "running":
            time.sleep(0.05)
        return job

    def metrics(self):
        """Returns the samples of /metrics, by name and labels."""
        samples = {}
        for line in self.get("/metrics").splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples
