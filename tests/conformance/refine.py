"""Adds rules to the schemas of openapi.yaml that openapi.yaml states only in words, or not at all.

openapi.yaml has no `oneOf`, because generators of clients do not handle it well. The refined schemas use `oneOf`, so
that most generated requests are valid. Ids, texts and names of collections come from short lists half of the time, so
that requests meet documents that other requests have stored. Answers may have only fields that openapi.yaml names.
"""

import base64
import os

import access

COLLECTIONS = ["default", "exact", "links", "secret", "external"]
IDS = ["a", "b", "c", "https://a.example/x", "https://b.example/x", "é\u0000\n/?&=%25", "x" * 2048]
STORY = """The quick brown fox jumps over the lazy dog near the river bank, and the dog dreams of a boat that carries it
slowly past the mill, under the old bridge and out to the sea, where no fox has ever been seen"""
TEXTS = [
    # Two near duplicates.
    f"{STORY} today.",
    f"{STORY} tonight.",
    "some words of the first page",
    "",
    "\ufeff \u0301",
    "word " * 5000,
]
SIGNATURES = [base64.b64encode(bytes(range(64))).decode(), base64.b64encode(bytes(64)).decode()]
SPECS = [
    "external:theirs:128x16",
    "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none",
    "hapax1;unicode=17;fold=none;marks=strip;digits=zero;shingle=char8;sketch=oph128x32;key=none",
]


def refine(description):
    """Changes the parsed openapi.yaml in place."""
    schemas = description["components"]["schemas"]
    for schema in list(schemas.values()):
        close(schema)
    requests(description, schemas)
    parameters(description)
    bulk(description, schemas)
    mode = os.environ["HAPAX_CONFORMANCE_MODE"]
    if mode == "none":
        without_key(description)
    elif mode == "verdict":
        only_verdicts(description)


def close(schema):
    """Refuses fields that the schema does not name."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            close(part)


def often(values, schema):
    return {"anyOf": [{"type": schema["type"], "enum": values}, schema]}


def requests(description, schemas):
    given = schemas["DocumentInput"]["properties"]
    identifier = {"anyOf": [{"type": "string", "enum": IDS}, {"type": "string", "minLength": 1, "maxLength": 2048}]}
    text = often(TEXTS, {"type": "string"})
    elements = {
        "anyOf": [
            {"type": "string"},
            {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},
        ]
    }
    contents = {
        "text": {"text": text},
        "set": {"set": {"type": "array", "items": elements}},
        "signature": {"signature": {"type": "string", "enum": SIGNATURES}},
    }

    def document(required, others):
        kinds = [
            {
                "type": "object",
                "additionalProperties": False,
                "required": [*required, name],
                "properties": {**others, **content},
            }
            for name, content in contents.items()
        ]
        return {"oneOf": kinds}

    both = {"id": identifier, "metadata": given["metadata"]}
    schemas["DocumentInput"] = document([], both)
    schemas["StoredInput"] = document(["id"], both)
    alone = {"type": "object", "additionalProperties": False, "required": ["id"], "properties": {"id": identifier}}
    schemas["IdInput"] = alone
    schemas["Comparand"] = {"oneOf": [*document([], {})["oneOf"], alone]}
    schemas["Ids"]["properties"]["ids"]["items"] = identifier
    schemas["BatchInput"] = {
        "oneOf": [
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["op", "documents"],
                "properties": {
                    "op": {"type": "string", "enum": [op]},
                    "documents": {
                        "type": "array",
                        "maxItems": 1000,
                        "items": {"$ref": f"#/components/schemas/{name}"},
                    },
                },
            }
            for op, name in [("check", "DocumentInput"), ("insert", "StoredInput"), ("delete", "IdInput")]
        ]
    }
    schemas["CollectionInput"]["properties"]["spec"] = {"type": "string", "enum": SPECS}
    insert = description["paths"]["/v1/collections/{collection}/documents"]["post"]["requestBody"]["content"]
    insert["application/json"]["schema"] = {"$ref": "#/components/schemas/StoredInput"}
    for path in description["paths"].values():
        for operation in path.values():
            raw = operation.get("requestBody", {}).get("content", {}).get("text/plain") if "tags" in operation else None
            if raw:
                raw["schema"] = text


def parameters(description):
    known = description["components"]["parameters"]
    known["Collection"]["schema"] = often(COLLECTIONS, known["Collection"]["schema"])
    # `twin` has the spec of `default`, so that documents of any form fit both.
    known["Collections"]["schema"] = often(["twin", "twin,exact", "links,default"], known["Collections"]["schema"])
    known["LabelToDelete"]["schema"] = often(["site:a", "crawl:2026-48"], {"type": "string"})
    known["Job"]["schema"] = often(["default.1", "exact.2"], known["Job"]["schema"] | {"type": "string"})
    for name in ["RawId", "IdToDelete", "IdFilter", "ClusterOf"]:
        known[name]["schema"] = often(IDS, {"type": "string", "minLength": 1, "maxLength": 2048})


def bulk(description, schemas):
    """Describes a body as an array of documents, and an answer as an array of lines. hooks.py writes and reads them."""
    operation = description["paths"]["/v1/collections/{collection}/bulk"]["post"]
    any_document = [{"$ref": f"#/components/schemas/{name}"} for name in ["DocumentInput", "StoredInput", "IdInput"]]
    body = operation["requestBody"]["content"]["application/x-ndjson"]
    body["schema"] = {"type": "array", "items": {"anyOf": any_document}}
    body["example"] = [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}]
    answer = operation["responses"]["200"]["content"]["application/x-ndjson"]
    answer["schema"] = {"type": "array", "items": {"$ref": "#/components/schemas/BulkLine"}}
    answer.pop("example")
    # This media type has the same lines.
    operation["requestBody"]["content"].pop("application/octet-stream")


def without_key(description):
    """Removes the keys from the description, for a server without keys."""
    description.pop("security")
    for path in description["paths"].values():
        for operation in path.values():
            if "tags" in operation:
                operation.pop("security", None)


def only_verdicts(description):
    """Removes the parameters that a key with `scores = "verdict"` may not send, and the fields that it never sees."""
    for path in description["paths"].values():
        for operation in path.values():
            if "tags" in operation and operation["operationId"] in access.COARSE:
                parameters = operation.get("parameters", [])
                allowed = [one for one in parameters if name_of(description, one) in access.COARSE_PARAMETERS]
                operation["parameters"] = allowed
    # run.py has stored a near duplicate of this text.
    description["components"]["examples"]["DocumentInput-text"]["value"]["text"] = TEXTS[1]
    properties = description["components"]["schemas"]["Verdict"]["properties"]
    for name in set(properties) - access.COARSE_FIELDS:
        properties.pop(name)


def name_of(description, parameter):
    reference = parameter.get("$ref", "").rpartition("/")[2]
    return description["components"]["parameters"][reference]["name"] if reference else parameter["name"]
