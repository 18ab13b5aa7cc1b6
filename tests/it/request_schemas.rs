//! The server accepts or refuses every field of a request body as `openapi.yaml` says. In an earlier version, the
//! server accepted `{"name":null}` and `{"s_hi":null}`, as if the fields were absent. And it refused a threshold of 0,
//! although `openapi.yaml` allowed 0.

use serde_json::{Map, Value, json};

use crate::support::client::{Client, fields, words};
use crate::support::description::{DESCRIPTION, resolve};
use crate::support::library::dir;
use crate::support::local::Local;

/// The path of a field within the body, and its schema.
struct Field {
    path: Vec<String>,
    schema: &'static Value,
}

impl Field {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Returns all fields, including those of nested objects.
fn all_fields(schema: &'static Value, path: &[String]) -> Vec<Field> {
    let mut all = Vec::new();
    for (name, schema) in resolve(schema)["properties"].as_object().into_iter().flatten() {
        let path = [path, std::slice::from_ref(name)].concat();
        let schema = resolve(schema);
        all.extend(all_fields(schema, &path));
        all.push(Field { path, schema });
    }
    all
}

/// Returns a body that is accepted if the field has a good value.
fn around(target: &str, field: &Field, value: &Value) -> Value {
    let content = |name: &str| matches!(name, "text" | "set" | "signature" | "fingerprint" | "id");
    let last = field.path.last().unwrap().as_str();
    let mut body = match target.rsplit('/').next().unwrap() {
        "check" | "documents" | "overlaps" | "sign" if !content(last) || last == "id" => {
            json!({ "id": "a", "text": words(1) })
        }
        "check" | "documents" | "overlaps" | "sign" => json!({ "id": "a" }),
        "get" | "delete" => json!({ "ids": ["a"] }),
        "merge" => json!({ "from": "shingled" }),
        "batch" => json!({ "op": "check", "documents": [{ "text": words(1) }] }),
        "compare" => {
            let mut both = json!({ "a": { "text": words(1) }, "b": { "text": words(2) } });
            if field.path.len() > 1 {
                both[&field.path[0]] = json!({});
            }
            both
        }
        "keys" => json!({ "name": "k", "scopes": ["check"] }),
        "dedup" => json!({ "documents": [] }),
        // Both fields must be less than `s_hi`.
        "tune" if matches!(last, "s_lo" | "s_bg") => json!({ "s_hi": 1 }),
        _ => json!({}),
    };
    let banding = json!({ "bands": 20, "rows": 4 });
    match &field.path[..] {
        [outer, _] if outer == "banding" => body["banding"] = banding,
        [outer, inner, _] if inner == "banding" => body[outer] = json!({ "banding": banding }),
        _ => {}
    }
    let mut at = &mut body;
    for name in &field.path[..field.path.len() - 1] {
        at = at.as_object_mut().unwrap().entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
    at[last] = value.clone();
    body
}

/// Returns values that the schema refuses.
fn refused(schema: &Value) -> Vec<Value> {
    let kind = schema["type"].as_str().unwrap();
    let of_types = [
        ("boolean", json!(true)),
        ("number", json!(1.5)),
        ("string", json!("\u{1}no such value\u{1}")),
        ("array", json!([])),
        ("object", json!({})),
    ];
    let fits = |given: &str| given == kind;
    let mut refused: Vec<_> = of_types.into_iter().filter(|(given, _)| !fits(given)).map(|(_, value)| value).collect();
    refused.push(Value::Null);
    if schema["enum"].is_array() || schema["pattern"].is_string() {
        refused.extend([json!("no such value"), json!("")]);
    }
    if schema["minLength"] == 1 {
        refused.push(json!(""));
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        refused.push(json!("x".repeat(most as usize + 1)));
    }
    if kind == "integer" || kind == "number" {
        let step: f64 = if kind == "integer" { 1.0 } else { 1e-9 };
        let number = |value: f64| if kind == "integer" { json!(value as i64) } else { json!(value) };
        for (bound, exclusive, sign) in BOUNDS {
            refused.extend(schema[exclusive].as_f64().map(number));
            let beyond = |value: f64| number(value + sign * step.max(value.abs() * 1e-9));
            refused.extend(schema[bound].as_f64().map(beyond));
        }
    }
    refused
}

/// Each bound of a number, its exclusive form, and the direction of the excluded values.
const BOUNDS: [(&str, &str, f64); 2] = [("minimum", "exclusiveMinimum", -1.0), ("maximum", "exclusiveMaximum", 1.0)];

/// Returns values that the schema accepts.
fn taken(schema: &Value) -> Vec<Value> {
    let kind = schema["type"].as_str().unwrap();
    let mut taken: Vec<Value> = schema["enum"].as_array().cloned().unwrap_or_default();
    if kind == "integer" || kind == "number" {
        let number = |value: f64| if kind == "integer" { json!(value as i64) } else { json!(value) };
        for (bound, exclusive, sign) in BOUNDS {
            taken.extend(schema[bound].as_f64().map(number));
            taken.extend(schema[exclusive].as_f64().map(|value| number(value - sign * 1e-6)));
        }
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        taken.extend([json!("x"), json!("x".repeat(most as usize))]);
    }
    if kind == "boolean" {
        taken.extend([json!(true), json!(false)]);
    }
    taken.extend(schema.get("default").cloned());
    taken
}

/// Fields whose bounds depend on other fields: a value within the bounds may be refused because of another field.
const DEPENDENT: [(&str, &str); 7] = [
    ("banding.bands", "it must fit the signature"),
    ("banding.rows", "it must fit the signature"),
    ("content_hash", "only next to a signature"),
    ("index", "a list is compared by similarity only"),
    ("key", "the server has to have a secret"),
    ("keep", "of a collection it is frozen, and of backups it needs a name"),
    ("shingles", "only next to a signature"),
];

/// Returns the collection to which a request is sent.
fn collection_of(path: &str, method: &str) -> &'static str {
    match path.ends_with("/overlaps") {
        true => "items",
        // Every changeable setting can be changed in a collection that keeps shingles.
        false if method == "patch" => "shingled",
        false => "default",
    }
}

#[test]
fn fields_of_bodies_are_taken_and_refused_as_described() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/shingled", &json!({ "keep": "shingles" })).status, 201);
    assert_eq!(client.json("PUT", "/v1/collections/items", &json!({ "index": "containment" })).status, 201);
    let mut fields_seen = 0;
    for (path, item) in DESCRIPTION["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if !schema.is_object() {
                continue;
            }
            let target = path.replace("{collection}", collection_of(path, method));
            // Each good value would begin a backup, so good values are not sent.
            let begins = target.ends_with("/backups");
            for field in all_fields(schema, &[]) {
                fields_seen += 1;
                let send = |value: &Value| {
                    let target = match target.ends_with("/documents") {
                        true => format!("{target}?on_existing=replace&on_duplicate=store"),
                        false => target.clone(),
                    };
                    client.json(&method.to_uppercase(), &target, &around(&target, &field, value))
                };
                let what = format!("{method} {path}: {}", field.name());
                for value in refused(field.schema) {
                    let problem = send(&value).problem(422, "invalid_value");
                    let named = fields(&problem);
                    let prefix = format!("{}[", field.name());
                    let names = |named: &&str| {
                        **named == field.name() || named.starts_with(&prefix) || field.name().starts_with(*named)
                    };
                    assert!(named.iter().any(names), "{what} is {value}, and {named:?} are named");
                }
                let name = field.name();
                let setting = name.strip_prefix("settings.").unwrap_or(&name);
                let dependent = DEPENDENT.iter().any(|(name, _)| *name == setting);
                for value in taken(field.schema).into_iter().filter(|_| !dependent && !begins) {
                    let answer = send(&value);
                    let fine = answer.status < 300 || !fields(&answer.json()).contains(&field.name().as_str());
                    assert!(fine, "{what} is {value}: {}", answer.text());
                }
            }
        }
    }
    assert!(fields_seen > 50, "{fields_seen}");
    // A null is refused everywhere, even in parts that are not described field by field.
    for (target, body) in [
        ("/v1/collections/default/check", json!({ "set": [null] })),
        ("/v1/collections/default/documents/get", json!({ "ids": [null] })),
    ] {
        client.post(target, &body).problem(422, "invalid_value");
    }
}

/// In an earlier version, a threshold of 5e-324 was accepted and returned as 0, which is not a threshold. Every
/// threshold was returned rounded to six decimals.
#[test]
fn a_threshold_comes_back_as_it_was_given() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let check = |target: &str| client.post(target, &json!({ "text": words(1) })).ok()["threshold"].clone();
    for (at, threshold) in [5e-324, 0.123_456_789, 0.8, 1.0].into_iter().enumerate() {
        let path = format!("/v1/collections/of-{at}");
        assert_eq!(client.json("PUT", &path, &json!({ "threshold": threshold })).json()["threshold"], json!(threshold));
        assert_eq!(client.get(&path).ok()["threshold"], json!(threshold));
        assert_eq!(check(&format!("{path}/check")), json!(threshold));
        assert_eq!(check(&format!("/v1/collections/default/check?threshold={threshold}")), json!(threshold));
    }
}
