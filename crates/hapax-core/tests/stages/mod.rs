//! The results of every stage for one text or set, as JSON. `examples/vectors.rs` writes them to `vectors.json`, and
//! `tests/vectors.rs` compares them with `vectors.json`.

use hapax_core::{Pipeline, SecretKey, SignScratch, Signed, Spec, TextSpec, tuning};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

/// A longer list is represented by its beginning and by a digest of the whole list.
const LIST_MAX: usize = 8;

fn text_spec(spec: &str) -> TextSpec {
    match Spec::parse(spec).expect("a valid spec") {
        Spec::Text(spec) => spec,
        Spec::External { .. } => panic!("an external spec signs nothing"),
    }
}

fn pipeline(spec: &str, secret: Option<&str>) -> Pipeline {
    let secret = secret.map(|hex| SecretKey::from_hex(hex).expect("32 hex digits"));
    Pipeline::new(&text_spec(spec), secret.as_ref()).expect("the secret is the spec's")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn numbers(stages: &mut Map<String, Value>, name: &str, list: &[u64]) {
    let shown: Vec<String> = list.iter().take(LIST_MAX).map(|x| format!("{x:016x}")).collect();
    let bytes: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
    stages.insert(name.into(), json!(shown));
    stages.insert(format!("{name}_count_digest"), json!([list.len(), format!("{:016x}", xxh3_64(&bytes))]));
}

fn signed(stages: &mut Map<String, Value>, spec: &TextSpec, signed: &Signed) {
    stages.insert("windows".into(), json!(signed.shingles));
    stages.insert("content".into(), json!(format!("{:032x}", signed.content.0)));
    let digest = format!("{:016x}", xxh3_64(&signed.signature));
    stages.insert("signature_bytes_digest".into(), json!([signed.signature.len(), digest]));
    stages.insert("signature_begins".into(), json!(hex(&signed.signature[..32])));
    let banding = tuning::default_banding(spec.shape, 0.8);
    let keys: Vec<u64> = banding.keys(&signed.signature, spec.shape).map(|key| key.0).collect();
    stages.insert("banding".into(), json!([banding.bands(), banding.rows()]));
    numbers(stages, "band_keys", &keys);
}

/// Every stage of a text.
pub(crate) fn of_text(spec: &str, secret: Option<&str>, text: &str) -> Value {
    let (pipeline, mut scratch) = (pipeline(spec, secret), SignScratch::default());
    let mut stages = Map::new();
    let tokens = pipeline.tokens(text);
    let hashes: Vec<u64> = tokens.iter().map(|token| pipeline.token_hash(token)).collect();
    stages.insert("fingerprint".into(), json!(Spec::Text(text_spec(spec)).fingerprint().to_string()));
    stages.insert("canonical".into(), json!(pipeline.canonical(text)));
    stages.insert("tokens".into(), json!(tokens));
    numbers(&mut stages, "token_hashes", &hashes);
    numbers(&mut stages, "shingle_set", &pipeline.shingle_set(&mut scratch, text));
    match pipeline.sign(&mut scratch, text) {
        Some(made) => {
            numbers(&mut stages, "ranks", pipeline.ranks(&scratch).as_slice());
            signed(&mut stages, pipeline.spec(), &made);
        }
        None => drop(stages.insert("empty".into(), json!(true))),
    }
    Value::Object(stages)
}

/// Every stage of a set; integers are decimal strings.
pub(crate) fn of_set(spec: &str, secret: Option<&str>, texts: &[String], integers: &[String]) -> Value {
    let (pipeline, mut scratch) = (pipeline(spec, secret), SignScratch::default());
    let mut elements: Vec<u64> = texts.iter().map(|text| pipeline.element_text(text)).collect();
    elements.extend(integers.iter().map(|n| pipeline.element_integer(n.parse().expect("an integer"))));
    let mut stages = Map::new();
    numbers(&mut stages, "elements", &elements);
    match pipeline.sign_set(&mut scratch, &mut elements) {
        Some(made) => signed(&mut stages, pipeline.spec(), &made),
        None => drop(stages.insert("empty".into(), json!(true))),
    }
    Value::Object(stages)
}
