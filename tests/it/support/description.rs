//! `openapi.yaml`, parsed: the routes, and a check of answers against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use hapax::http::OPENAPI;
use serde_json::Value;

/// The description, as JSON.
pub static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_saphyr::from_str(OPENAPI).expect("openapi.yaml is YAML"));

/// The entry of a route.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub query: BTreeSet<String>,
    pub statuses: BTreeSet<u16>,
    /// The scopes of which the key must have one. An empty text means any key. The set is empty if no key is needed.
    pub scopes: BTreeSet<String>,
}

/// Returns the entry of each route, by method (upper case) and path.
pub fn routes() -> BTreeMap<(String, String), Entry> {
    let mut routes = BTreeMap::new();
    for (path, item) in DESCRIPTION["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters") {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let query = parameters
                .iter()
                .map(resolve)
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                .collect();
            let statuses =
                operation["responses"].as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect();
            let scopes = operation["security"].as_array().expect("each operation says what it requires").iter();
            let scopes = scopes.map(|one| one["key"][0].as_str().unwrap_or_default().to_owned()).collect();
            routes.insert((method.to_uppercase(), path.clone()), Entry { query, statuses, scopes });
        }
    }
    routes
}

/// Follows `$ref`, if the value has one.
pub fn resolve(value: &Value) -> &Value {
    match value["$ref"].as_str() {
        Some(reference) => resolve(DESCRIPTION.pointer(reference.strip_prefix('#').unwrap()).expect(reference)),
        None => value,
    }
}

/// Returns the template that a path fits: `/v1/collections/{collection}/check`.
pub fn template(path: &str) -> Option<&'static str> {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let (template, path) = (template.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template.zip(path).all(|(part, given)| part == given || (part.starts_with('{') && !given.is_empty()))
    };
    // A literal part would fit better than a parameter, but no path fits two of these templates.
    paths.keys().map(String::as_str).find(|template| fits(template))
}

/// Panics unless the description allows this answer with this body.
pub fn check(method: &str, path: &str, status: u16, content_type: &str, body: &[u8]) {
    let what = format!("{method} {path} -> {status}");
    if status >= 400 {
        assert_eq!(content_type, "application/problem+json", "{what}");
        if method != "HEAD" {
            let problem: Value = serde_json::from_slice(body).unwrap_or_else(|_| panic!("{what}: not JSON"));
            assert_eq!(problem["status"], status, "{what}");
            conforms(&what, &problem, &DESCRIPTION["components"]["schemas"]["Problem"]);
        }
    }
    let method = if method == "HEAD" { "get" } else { &method.to_lowercase() };
    let operation = template(path).map(|template| &DESCRIPTION["paths"][template][method]);
    let Some(operation) = operation.filter(|operation| operation.is_object()) else {
        // 401, 403 and 429 are sent before the route is looked up.
        assert!(matches!(status, 401 | 403 | 404 | 405 | 429), "{what}: no such route");
        return;
    };
    let response = resolve(&operation["responses"][status.to_string()]);
    assert!(response.is_object(), "{what}: not declared; {}", String::from_utf8_lossy(body));
    let media = &response["content"][content_type];
    assert!(media.is_object(), "{what}: {content_type} is not declared");
    if status < 300 && content_type == "application/json" && !body.is_empty() {
        let body: Value = serde_json::from_slice(body).unwrap_or_else(|_| panic!("{what}: not JSON"));
        conforms(&what, &body, &media["schema"]);
    }
}

/// Checks types, required fields and enumerations. Undeclared fields and nulls are not allowed.
pub fn conforms(what: &str, value: &Value, schema: &Value) {
    let schema = resolve(schema);
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{what}: {value} is not one of {allowed:?}");
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = value.as_object().unwrap_or_else(|| panic!("{what}: {value} is not an object"));
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(required.as_str().unwrap()), "{what}: no {required} in {value}");
            }
            for (name, field) in fields {
                let (property, others) = (&schema["properties"][name], &schema["additionalProperties"]);
                let property = if property.is_null() { others } else { property };
                assert!(property.is_object() || others == true, "{what}: undeclared {name}");
                conforms(&format!("{what}.{name}"), field, property);
            }
        }
        Some("array") => {
            let items = value.as_array().unwrap_or_else(|| panic!("{what}: {value} is not an array"));
            items.iter().for_each(|item| conforms(&format!("{what}[]"), item, &schema["items"]));
        }
        Some("string") => assert!(value.is_string(), "{what}: {value} is not a string"),
        Some("integer") => assert!(value.is_i64() || value.is_u64(), "{what}: {value} is not an integer"),
        Some("number") => assert!(value.is_number(), "{what}: {value} is not a number"),
        Some("boolean") => assert!(value.is_boolean(), "{what}: {value} is not a boolean"),
        Some(other) => panic!("{what}: schema of type {other}"),
        // The schema allows any value, as in a client's metadata.
        None => {}
    }
}
