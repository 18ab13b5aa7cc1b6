//! Known answers of every stage, in `vectors.json`. A difference here means that stored signatures no longer agree with
//! new ones. Undo the change, or make it a new spec version. To add cases, write the file with `cargo run -p hapax-core
//! --example vectors > crates/hapax-core/tests/vectors.json`. This test only compares.

mod spec_page;
mod stages;

use serde_json::Value;

fn strings(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().expect("a string").into()).collect()
}

#[test]
fn every_stage_gives_its_known_answers() {
    let vectors: Value = serde_json::from_str(include_str!("vectors.json")).expect("JSON");
    let secret = vectors["secret"].as_str().expect("hex");
    let mut compared = 0;
    for case in vectors["cases"].as_array().expect("a list") {
        let spec = case["spec"].as_str().expect("a spec");
        let secret = (!spec.ends_with("key=none")).then_some(secret);
        let made = match case.get("text") {
            Some(text) => stages::of_text(spec, secret, text.as_str().expect("a text")),
            None => stages::of_set(spec, secret, &strings(&case["set"]), &strings(&case["integers"])),
        };
        let known = &case["stages"];
        for (stage, value) in known.as_object().expect("stages") {
            assert_eq!(&made[stage], value, "{stage} of {case}");
        }
        assert_eq!(&made, known, "{case}");
        compared += 1;
    }
    assert!(compared >= 200, "only {compared} cases");
}
