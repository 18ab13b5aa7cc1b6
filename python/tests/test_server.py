"""Signatures and verdicts, compared with those of a real server: the binary that HAPAX_BINARY names."""

import base64
import http.client
import json
import random
import subprocess

import pytest
from conftest import words
from served import BINARY, Served, environment, needs_server
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
    def __init__(self, folder, data="data"):
        super().__init__(folder, data, HAPAX__HASHING__SECRET=SECRET)
        self.address = self.url.removeprefix("http://")
        self.connection = http.client.HTTPConnection(self.address, timeout=60)

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

    def stop(self):
        self.connection.close()
        super().stop()


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
        ours = index.insert(str(row), text, on_duplicate=on_duplicate, limit=1000)
        agree(ours, json.loads(answers[row]), row)


def agree(ours, theirs, row):
    """Compares a verdict with the answer of a server."""
    assert ours.outcome == theirs.get("outcome", "checked"), f"row {row}"
    expected = [theirs.get(field) for field in ("verdict", "shingles", "duplicate_of", "similarity")]
    similarity = None if ours.similarity is None else round(ours.similarity, 6)
    assert [ours.verdict, ours.shingles, ours.duplicate_of, similarity] == expected, f"row {row}"
    matches = [(match["id"], match["similarity"]) for match in theirs.get("matches", [])]
    assert [(match.id, round(match.similarity, 6)) for match in ours.matches] == matches, f"row {row}"


def hapax(*arguments):
    ran = subprocess.run(
        [BINARY, *map(str, arguments)],
        env=environment(HAPAX__HASHING__SECRET=SECRET),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


@pytest.mark.parametrize("options", [{}, {"threshold": 0.6, "key": SECRET}, {"bands": 40, "rows": 6}])
def test_a_saved_index_becomes_a_collection_and_its_export_an_index(tmp_path, options):
    pytest.importorskip("pyarrow")
    texts, others = near_texts(23, 700), near_texts(24, 100)
    index, signer = pyhapax.Index(**options), pyhapax.Signer(key=options.get("key"))
    for row, text in enumerate(texts[:600]):
        bare = pyhapax.Signature(bytes(signer.sign(text)), signer.spec)
        index.insert(f"page/{row}", bare if row % 7 == 3 else text, on_duplicate=["link", "skip", "store"][row % 3])
    file, data = tmp_path / "corpus.parquet", tmp_path / "data"
    index.save(file)
    said = hapax("load", file, "--collection", "saved", "--data-dir", data)
    assert f"{len(index)} documents" in said
    server = Server(tmp_path)
    try:
        collection = json.loads(server.ask("GET", "/v1/collections/saved", None))
        assert collection["banding"] == {"bands": index.bands, "rows": index.rows}
        assert (collection["threshold"], collection["spec"]) == (index.threshold, index.spec)
        assert collection["banding_by_hand"] == ("bands" in options)
        for row, text in enumerate([*texts[600:], *others]):
            answer = server.ask("POST", "/v1/collections/saved/check?limit=1000", {"text": text})
            agree(index.check(text, limit=1000), json.loads(answer), row)
        known = {"id": "page/0", "text": texts[0]}
        assert json.loads(server.ask("POST", "/v1/collections/saved/documents", known))["outcome"] == "unchanged"
        copy = {"id": "another id", "text": texts[0]}
        copy = json.loads(server.ask("POST", "/v1/collections/saved/documents", copy))
        assert (copy["verdict"], copy["duplicate_of"]) == ("exact_duplicate", "page/0")
    finally:
        server.stop()
    exported = tmp_path / "export.parquet"
    hapax("export", "--data-dir", data, "--collection", "saved", "--parquet", "--output", exported)
    again = pyhapax.Index.load(exported, key=options.get("key"))
    assert repr(again) == repr(index)
    again.save(exported)
    index.save(file)
    assert pyarrow_table(exported).equals(pyarrow_table(file), check_metadata=True)


def pyarrow_table(path):
    import pyarrow.parquet as pq

    return pq.read_table(path)
