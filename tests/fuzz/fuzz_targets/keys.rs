//! A keys file -> its keys, or what is wrong with it. Keys that are printed and read again are the same, and a key that
//! is added changes none of the others.

use std::fmt::Write;

use hapax::keys::{Key, KeyDigest, parse};

/// Returns a key as text, for comparisons. Values that are not set are left out.
fn printed(key: &Key) -> String {
    let mut text =
        format!("[[key]]\nname = {:?}\nid = {:?}\nsha256 = \"{}\"\n", key.name(), key.id(), key.digest().to_hex());
    let scopes: Vec<_> = key.scopes().words().collect();
    writeln!(text, "scopes = {scopes:?}\nscores = \"{}\"", key.scores().as_str()).unwrap();
    if let Some(collections) = key.collections() {
        let collections: Vec<_> = collections.iter().map(ToString::to_string).collect();
        writeln!(text, "collections = {collections:?}").unwrap();
    }
    for (name, time) in [("created", key.created()), ("expires", key.expires())] {
        time.iter().for_each(|time| writeln!(text, "{name} = \"{time}\"").unwrap());
    }
    text.push_str("[key.limits]\n");
    let limits = key.limits();
    for (name, limit) in [
        ("requests_per_second", limits.requests_per_second),
        ("bytes_per_second", limits.bytes_per_second),
        ("documents_per_second", limits.documents_per_second),
        ("requests_in_flight", limits.requests_in_flight),
    ] {
        limit.iter().for_each(|limit| writeln!(text, "{name} = {limit}").unwrap());
    }
    text
}

fn file(keys: &[Key]) -> String {
    keys.iter().fold("version = 1\n".to_owned(), |text, key| text + &printed(key))
}

pub fn run(data: &[u8]) {
    let keys = match parse(data) {
        Ok(keys) => keys,
        Err(error) => {
            assert!(error.to_string().len() < 5_000, "an error shows the beginning of what is wrong: {error}");
            return;
        }
    };
    let text = file(&keys);
    let again = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert_eq!(file(&again), text);
    if keys.iter().any(|key| key.id() == "added") || keys.len() == 1000 {
        return;
    }
    let sum = KeyDigest::of(b"added").to_hex();
    let more = format!("{text}[[key]]\nname = \"a\"\nid = \"added\"\nsha256 = \"{sum}\"\nscopes = [\"check\"]\n");
    let mut more = parse(more.as_bytes()).expect("one more key");
    more.pop();
    assert_eq!(file(&more), text);
}
