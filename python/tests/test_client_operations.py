"""The methods and answers of pyhapax.client agree with openapi.yaml. If an operation, a parameter or a field is added
there and is missing in the client, a test here fails.
"""

import dataclasses
import inspect
import re
import types
import typing

import pytest
from extra import client_extra

client = client_extra()
pytest.importorskip("yaml")

from pyhapax.client import answers, document_requests, server_answers, server_requests  # noqa: E402

# Additional methods, each with the operation that it calls. They send the page itself as the body.
PAGES_ALONE = {"check_html": "checkDocument", "insert_html": "insertDocument"}
# The parameters and fields that a method leaves out, with the reasons.
LEFT_OUT = {
    # Always true: this client reads while it writes.
    "bulk": {"duplex"},
    # `sign` takes no signatures and stores nothing, so it needs none of these fields.
    "sign": {
        "id", "signature", "fingerprint", "content_hash", "shingles", "metadata", "labels", "date", "payload_digest",
    },
    # `find_overlaps` takes no sets and no signatures and stores nothing, so it needs none of these fields.
    "find_overlaps": {
        "id", "set", "signature", "fingerprint", "content_hash", "shingles", "metadata", "labels", "date",
        "payload_digest",
    },
    # `extract` uses only the page of a document, so it needs none of these fields.
    "extract": {
        "id", "text", "set", "signature", "fingerprint", "content_hash", "shingles", "metadata", "labels", "date",
        "payload_digest",
    },
}  # fmt: skip
ADDED = {"bulk": {"documents", "progress"}, "load_collection": {"file"}}
# Answers that have one schema in openapi.yaml and several classes in Python.
UNIONS = {
    "DocumentOrPage": [answers.DocumentRecord, answers.DocumentPage],
    "BatchResult": [answers.Verdict, answers.DeletedDocument, answers.FailedDocument],
    "BulkLine": [answers.Verdict, answers.DeletedDocument, answers.FailedDocument],
}
# Fields of these answers that the client reads itself (READ), or that only answers to single requests have
# (ONLY_SINGLE).
READ = {"BulkLine": {"kind", "line", "lines", "summary"}, "BatchResult": set(), "DocumentOrPage": set()}
ONLY_SINGLE = {"BulkLine": {"explanation"}, "BatchResult": {"explanation"}, "DocumentOrPage": set()}


def snake(name):
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def resolve(document, value):
    while "$ref" in value:
        target = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        value = target
    return value


def operations(document):
    """Yield (name, parameters, schema of the JSON body or None) of each operation."""
    for item in document["paths"].values():
        for method, operation in item.items():
            if method == "parameters":
                continue
            parameters = [
                resolve(document, each) for each in [*item.get("parameters", []), *operation.get("parameters", [])]
            ]
            content = resolve(document, operation.get("requestBody", {})).get("content", {})
            json = content.get("application/json")
            yield operation["operationId"], parameters, json and resolve(document, json["schema"])


def names(method):
    return {name.rstrip("_") for name in inspect.signature(method).parameters} - {"self"}


@pytest.mark.parametrize("kind", [client.Client, client.AsyncClient])
def test_every_operation_is_a_method_with_every_parameter_and_field(openapi, kind):
    known = set()
    for operation, parameters, body in operations(openapi):
        method = snake(operation)
        expected = {each["name"] for each in parameters} | set((body or {}).get("properties", {}))
        expected = expected - LEFT_OUT.get(method, set()) | ADDED.get(method, set())
        assert names(getattr(kind, method)) == expected, method
        known.add(method)
    public = {name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert public - {"close", "aclose"} == known | set(PAGES_ALONE)


def test_methods_for_pages_have_the_parameters_of_a_raw_body(openapi):
    of_operation = {operation: parameters for operation, parameters, _ in operations(openapi)}
    for method, operation in PAGES_ALONE.items():
        expected = {each["name"] for each in of_operation[operation]} | {"html"}
        assert names(getattr(client.Client, method)) == expected


def test_enumerations_of_parameters_are_the_types(openapi):
    compared = 0
    for operation, parameters, body in operations(openapi):
        method = snake(operation)
        build = getattr(document_requests, method, None) or getattr(server_requests, method)
        hints = typing.get_type_hints(build)
        schemas = {each["name"]: each["schema"] for each in parameters} | (body or {}).get("properties", {})
        for name, given in schemas.items():
            schema = resolve(openapi, given)
            if schema.get("type") != "string" or "enum" not in schema or name in LEFT_OUT.get(method, ()):
                continue
            hint = hints.get(name) or hints[f"{name}_"]
            assert literals(hint) == set(schema["enum"]), f"{method}: {name}"
            compared += 1
    assert compared > 20


def literals(hint):
    """Return the words of a Literal or an optional Literal."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    return set(typing.get_args(hint))


def test_documents_and_pairs_have_the_fields_of_the_schemas(openapi):
    for kind, name in [
        (client.DocumentInput, "DocumentInput"),
        (client.Comparand, "Comparand"),
        (server_requests.GoldenPair, "GoldenPair"),
        (server_requests.BandingInput, "Banding"),
    ]:
        assert set(kind.__annotations__) == set(openapi["components"]["schemas"][name]["properties"])


def answer_classes():
    found = {**vars(answers), **vars(server_answers)}
    return {name: kind for name, kind in found.items() if dataclasses.is_dataclass(kind)}


def test_every_answer_has_the_fields_of_its_schema(openapi):
    schemas, classes = openapi["components"]["schemas"], answer_classes()
    compared = set()
    for name in reachable(openapi):
        schema = schemas[name]
        if schema.get("type") != "object" or "properties" not in schema or name in UNIONS:
            continue
        fields = {each.name.rstrip("_"): each for each in dataclasses.fields(classes[name])}
        assert set(fields) == set(schema["properties"]), name
        required = {each for each, field in fields.items() if is_required(field)}
        assert required == set(schema.get("required", [])), name
        compared.add(name)
    for name, kinds in UNIONS.items():
        fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
        assert fields - ONLY_SINGLE[name] == set(schemas[name]["properties"]) - READ[name], name
    assert len(compared) > 45


def is_required(field):
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def reachable(document):
    """Return the names of the schemas that answers use."""
    waiting, found = [], set()
    for item in document["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                waiting += [resolve(document, each).get("content", {}) for each in operation["responses"].values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/components/schemas/")
            if name in document["components"]["schemas"] and name not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return sorted(found)


def test_words_of_answers_are_those_of_the_schemas(openapi):
    for name in ["VerdictKind", "Outcome", "Method"]:
        assert set(typing.get_args(getattr(answers, name))) == set(openapi["components"]["schemas"][name]["enum"])
    schemas = openapi["components"]["schemas"]
    for name, kind in answer_classes().items():
        for field, hint in typing.get_type_hints(kind).items():
            schema = schemas.get(name, {}).get("properties", {}).get(field.rstrip("_"), {})
            words = literals(hint) if "Literal" in str(hint) else None
            if words is not None and "enum" in resolve(openapi, schema):
                assert words == set(resolve(openapi, schema)["enum"]), f"{name}: {field}"


def test_fields_of_a_newer_server_are_skipped():
    from pyhapax.client.decode import decode

    newer = {"deleted": 1, "a_new_field": {"with": "anything"}}
    assert decode(answers.Deleted, newer) == answers.Deleted(deleted=1)


def test_names_in_a_path_cannot_leave_it():
    request = document_requests.get_documents(["a"], collection="../x?y#z")
    assert request.path == "/v1/collections/..%2Fx%3Fy%23z/documents/get"
    assert server_requests.read_job("../../livez").path == "/v1/jobs/..%2F..%2Flivez"
