"""Generates two Python clients from openapi.yaml, as users do, and uses each against a real server.

Usage: clients.py BINARY

openapi-python-client sends the default of each parameter that is left out, and supports no media type for JSON
lines. openapi-generator sends only the given parameters. Both clients are generated without any configuration.
"""

import argparse
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

import access
from server import start, stop

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "target/clients"
DESCRIPTION = ROOT / "openapi.yaml"
BIN = pathlib.Path(sys.executable).parent
TEXTS = ["One two three four five six seven.", "Other words of another page altogether, which has more of them."]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    binary = parser.parse_args().binary.resolve()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    sys.path.insert(0, str(OUT))
    generate_openapi_python_client()
    generate_openapi_generator()

    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-clients-"))
    (folder / "keys.toml").write_text(access.keys_file())
    server, address = start(binary, folder, {"HAPAX__AUTH__KEYS_FILE": str(folder / "keys.toml")})
    faults = []
    try:
        for client in [OpenApiPythonClient, OpenApiGenerator]:
            name = client.__name__
            uses = [(access.ALL, everything, name.lower()), (access.VERDICT, verdicts_alone, "default")]
            for key, use, collection in uses:
                try:
                    use(client(address, key.text, collection))
                    print(f"clients: {name}, key `{key.name}`: as described", flush=True)
                except Exception:
                    faults.append(f"{name}, key `{key.name}`:\n{traceback.format_exc()}")
    finally:
        faults += stop(server, folder)
    if faults:
        faults.append(f"the data and the log are in {folder}")
    else:
        shutil.rmtree(folder)
    for fault in faults:
        print(f"clients: {fault}", file=sys.stderr)
    return 1 if faults else 0


def run(*command):
    """Returns the output of a command that must succeed."""
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit(f"{command[0]} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout + ran.stderr


def generate_openapi_python_client():
    output = run(
        *[BIN / "openapi-python-client", "generate", "--path", DESCRIPTION],
        *["--meta", "none", "--output-path", OUT / "hapax_python_client"],
    )
    # If a body has several media types, the generator uses those that it supports.
    texts = {"text/plain", "text/html", "application/xhtml+xml"}
    known_otherwise = {*texts, "application/x-ndjson", "application/vnd.apache.parquet"}
    left_out = set(re.findall(r"Unsupported content type (\S+)", output)) - known_otherwise
    made = {path.stem for path in (OUT / "hapax_python_client/api").rglob("*.py")}
    missing = [name for name in operations() if name not in made]
    if missing or left_out:
        sys.exit(f"openapi-python-client left out {missing} and {left_out}:\n{output}")


def generate_openapi_generator():
    run(
        *[BIN / "openapi-generator-cli", "generate", "-i", DESCRIPTION, "-g", "python"],
        *["-o", OUT / "openapi-generator", "--additional-properties", "packageName=hapax_openapi_generator"],
    )
    sys.path.insert(0, str(OUT / "openapi-generator"))


def operations():
    """Returns the names of all operations, as Python writes them."""
    ids = set(re.findall(r"operationId: (\w+)", DESCRIPTION.read_text()))
    return sorted(re.sub(r"([A-Z])", r"_\1", name).lower() for name in ids)


class OpenApiPythonClient:
    """The client of openapi-python-client."""

    def __init__(self, address, key, collection):
        self.collection = collection
        package = importlib.import_module("hapax_python_client")
        self.models = importlib.import_module("hapax_python_client.models")
        self.types = importlib.import_module("hapax_python_client.types")
        # An answer with a status that the description does not declare raises an exception.
        self.client = package.AuthenticatedClient(base_url=address, token=key, raise_on_unexpected_status=True)

    def call(self, module, **arguments):
        """Returns the status and the parsed answer."""
        operation = importlib.import_module(f"hapax_python_client.api.{module}")
        answer = operation.sync_detailed(self.collection, client=self.client, **arguments)
        return answer.status_code.value, answer.parsed

    def make(self, model, fields):
        return getattr(self.models, model).from_dict(fields)

    def create(self, settings):
        status, made = self.call("collections.create_collection", body=self.make("CollectionInput", settings))
        return status, made.to_dict()

    def check(self, document, **options):
        body = self.make("DocumentInput", document)
        return self.call("documents.check_document", body=body, **options)[1].to_dict()

    def insert(self, document, **options):
        body = self.make("DocumentInput", document)
        return self.call("documents.insert_document", body=body, **options)[1].to_dict()

    def read(self, id):
        status, answer = self.call("documents.read_documents", id=id)
        return status, answer.to_dict()

    def text(self, id):
        options = {"with_": self.models.ReadDocumentsWith.TEXT}
        return self.call("documents.read_documents", id=id, **options)[1].to_dict()["text"]

    def page(self, **options):
        return self.call("documents.read_documents", **options)[1].to_dict()

    def delete(self, id):
        return self.call("documents.delete_document", id=id)[1].to_dict()

    def delete_label(self, label):
        return self.call("documents.delete_document", label=label)[1].to_dict()

    def job(self, name):
        operation = importlib.import_module("hapax_python_client.api.operations.read_job")
        return operation.sync(name, client=self.client).to_dict()

    def batch(self, op, documents):
        body = self.make("BatchInput", {"op": op, "documents": documents})
        return self.call("many.batch", body=body)[1].to_dict()

    def bulk(self, op, lines):
        body = self.types.File(payload=lines)
        return self.call("many.bulk", body=body, op=self.models.BulkOp(op))[1].payload.read()


class OpenApiGenerator:
    """The client of openapi-generator."""

    def __init__(self, address, key, collection):
        self.collection = collection
        self.package = importlib.import_module("hapax_openapi_generator")
        configuration = self.package.Configuration(host=address, access_token=key)
        client = self.package.ApiClient(configuration)
        apis = ["DocumentsApi", "ManyApi", "CollectionsApi", "OperationsApi"]
        self.documents, self.many, self.collections, self.operations = (
            getattr(self.package, name)(client) for name in apis
        )

    def make(self, model, fields):
        return getattr(self.package, model).from_dict(fields)

    def create(self, settings):
        body = self.make("CollectionInput", settings)
        answer = self.collections.create_collection_with_http_info(collection=self.collection, collection_input=body)
        return answer.status_code, answer.data.to_dict()

    def check(self, document, **options):
        body = self.make("DocumentInput", document)
        return self.documents.check_document(collection=self.collection, document_input=body, **options).to_dict()

    def insert(self, document, **options):
        body = self.make("DocumentInput", document)
        return self.documents.insert_document(collection=self.collection, document_input=body, **options).to_dict()

    def read(self, id):
        try:
            return 200, self.documents.read_documents(collection=self.collection, id=id).to_dict()
        except self.package.ApiException as refused:
            return refused.status, json.loads(refused.body)

    def text(self, id):
        return self.documents.read_documents(collection=self.collection, id=id, var_with="text").text

    def page(self, **options):
        return self.documents.read_documents(collection=self.collection, **options).to_dict()

    def delete(self, id):
        return self.documents.delete_document(collection=self.collection, id=id).to_dict()

    def delete_label(self, label):
        return self.documents.delete_document(collection=self.collection, label=label).to_dict()

    def job(self, name):
        return self.operations.read_job(job=name).to_dict()

    def batch(self, op, documents):
        body = self.make("BatchInput", {"op": op, "documents": documents})
        return self.many.batch(collection=self.collection, batch_input=body).to_dict()

    def bulk(self, op, lines):
        return bytes(self.many.bulk(collection=self.collection, op=op, body=lines.decode()))


def everything(client):
    """Uses a client with a key that may do everything."""
    status, made = client.create({"keep": "text"})
    assert (status, made["keep"]) == (201, "text"), (status, made)
    a, b = ({"id": f"https://a.example/?page={at}&x", "text": text} for at, text in enumerate(TEXTS))

    same(client.check({"text": TEXTS[0]}), verdict="unique", outcome="checked", stored=False)
    same(client.insert({**a, "metadata": {"crawl": "2026-48"}}), verdict="unique", outcome="inserted", stored=True)
    same(client.check({"text": TEXTS[0].upper()}), verdict="exact_duplicate", duplicate_of=a["id"])
    # Without metadata, the stored metadata stays.
    same(client.insert(a), outcome="unchanged", stored=True)

    status, record = client.read(a["id"])
    same(record, id=a["id"], verdict="unique", metadata={"crawl": "2026-48"})
    assert status == 200 and "text" not in record, (status, record)
    assert client.text(a["id"]) == TEXTS[0].lower(), client.text(a["id"])
    status, problem = client.read("no such id")
    assert (status, problem["code"]) == (404, "document_not_found"), (status, problem)

    results = client.batch("insert", [a, b, {"id": "c", "text": TEXTS[1]}])["results"]
    assert [result.get("outcome") for result in results] == ["unchanged", "inserted", "skipped"], results
    results = client.batch("check", [a, {"text": ""}])["results"]
    assert [result.get("verdict") for result in results] == ["unique", "empty"], results

    first = client.page(limit=1)
    second = client.page(limit=1, cursor=first["next_cursor"])
    ids = [document["id"] for page in (first, second, client.page()) for document in page["documents"]]
    assert ids == [a["id"], b["id"], a["id"], b["id"]], ids

    # `default` is empty, and has another `keep`.
    several = client.check({"text": TEXTS[0]}, collections="default")
    same(several, verdict="exact_duplicate", duplicate_of=a["id"])
    assert [one["collection"] for one in several["collections"]] == [client.collection, "default"], several
    assert several["matches"][0]["collection"] == client.collection, several
    same(client.insert(a, collections="default"), outcome="unchanged", elsewhere=[])

    lines(client, [a, {"id": "d", "text": "a page of bulk, with \u00fc and \U0001f600 in it"}, {"id": "e"}])
    same(client.delete(a["id"]), deleted=1)
    same(client.delete(a["id"]), deleted=0)
    summary = client.batch("delete", [{"id": b["id"]}, {"id": "d"}])["summary"]
    same(summary, documents=2, deleted=2, errors=0)
    same(client.insert({**b, "labels": {"site": "b.example"}}), outcome="inserted")
    job = client.delete_label("site:b.example")
    same(job, kind="delete_label", documents=1, label="site:b.example")
    same(client.job(job["job"]), job=job["job"], documents=1)
    assert client.page()["documents"] == [], client.page()


def lines(client, documents):
    """Sends documents as lines."""
    sent = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
    answers = [json.loads(line) for line in client.bulk("insert", sent.encode()).splitlines()]
    assert [answer["kind"] for answer in answers] == ["verdict", "verdict", "error", "summary"], answers
    assert [answer.get("outcome") for answer in answers[:2]] == ["unchanged", "inserted"], answers
    same(answers[3]["summary"], documents=3, errors=1, stored=2)


def verdicts_alone(client):
    """Uses a client with a key that sees only verdicts."""
    document = {"id": "f", "text": TEXTS[0]}
    same(client.check(document), verdict="unique", outcome="checked")
    same(client.insert(document), verdict="unique", outcome="inserted", stored=True)
    same(client.batch("check", [document])["results"][0], verdict="unique")
    (line, last) = client.bulk("delete", b'{"id": "f"}\n').splitlines()
    same(json.loads(line), kind="deleted", id="f", deleted=1)
    same(client.delete("f"), deleted=0)


def same(answer, **fields):
    for name, value in fields.items():
        assert answer.get(name) == value, f"`{name}` is not {value!r} in {answer}"


if __name__ == "__main__":
    sys.exit(main())
