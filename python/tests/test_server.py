"""Signatures and verdicts, compared with those of a real server: the binary that HAPAX_BINARY names."""

import base64
import http.client
import json
import random

import pytest
from conftest import words
from served import Served, needs_server
from test_index import near_texts

import pyhapax

pytestmark = needs_server

SECRET = "000102030405060708090a0b0c0d0e0f"
SETTINGS = [
    {},
    {"sketch": "classic128x16", "shingle": "char5"},
    {"sketch": "oph64x32", "fold": "nfkc", "marks": "strip", "digits": "zero"},
    {"key": "configured", "shingle": "word3"},
]
TEXTS = 2500


class Server(Served):
    def __init__(self, folder):
        super().__init__(folder, HAPAX__HASHING__SECRET=SECRET)
        address = self.url.removeprefix("http://")
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def ask(self, method, path, body, kind="application/json"):
        if kind == "application/json":
            body = json.dumps(body)
        self.connection.request(method, path, body.encode(), {"content-type": kind})
        response = self.connection.getresponse()
        answer = response.read()
        assert response.status < 300, answer
        return answer

    def create(self, name, settings):
        return json.loads(self.ask("PUT", f"/v1/collections/{name}", settings))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_signatures_are_byte_for_byte_those_of_the_server(server, number):
    settings = SETTINGS[number]
    collection = server.create(f"signed{number}", settings)
    signer = pyhapax.Signer(collection["spec"], key=SECRET if "key" in settings else None)
    assert signer.fingerprint == collection["fingerprint"]
    generator = random.Random(number)
    texts = [" ".join(words(generator, generator.randint(0, 12)) for _ in range(4)) for _ in range(TEXTS)]
    batch = signer.sign_batch(texts)
    for row, text in enumerate(texts):
        answer = json.loads(server.ask("POST", f"/v1/collections/signed{number}/sign", {"text": text}))
        signature = batch[row]
        assert answer["empty"] == (signature is None), f"row {row} of seed {number}"
        if signature is not None:
            assert base64.b64decode(answer["signature"]) == bytes(signature), f"row {row} of seed {number}"
            assert answer["shingles"] == signature.shingles


@pytest.mark.parametrize("on_duplicate", ["skip", "link", "store"])
@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_verdicts_are_those_of_the_server(server, on_duplicate, threshold):
    name = f"judged-{on_duplicate}-{round(threshold * 10)}"
    collection = server.create(name, {"threshold": threshold})
    index = pyhapax.Index(threshold=threshold)
    assert collection["banding"] == {"bands": index.bands, "rows": index.rows}
    texts = [*near_texts(17, 600), "", "…"]
    texts += [text.replace(" ", ", ") for text in texts[:100]] + [text.upper() for text in texts[50:150]]
    lines = "".join(json.dumps({"id": str(row), "text": text}) + "\n" for row, text in enumerate(texts))
    path = f"/v1/collections/{name}/bulk?op=insert&on_duplicate={on_duplicate}&limit=1000"
    answers = server.ask("POST", path, lines, "application/x-ndjson").decode().splitlines()
    for row, text in enumerate(texts):
        theirs = json.loads(answers[row])
        ours = index.insert(str(row), text, on_duplicate=on_duplicate, limit=1000)
        fields = ["verdict", "outcome", "shingles", "duplicate_of", "similarity"]
        made = [ours.verdict, ours.outcome, ours.shingles, ours.duplicate_of, ours.similarity]
        expected = [theirs.get(field) for field in fields]
        if made[4] is not None:
            made[4] = round(made[4], 6)
        assert made == expected, f"row {row}"
        matches = [(match["id"], match["similarity"]) for match in theirs.get("matches", [])]
        assert [(match.id, round(match.similarity, 6)) for match in ours.matches] == matches, f"row {row}"
