//! A raw query -> its parameters. They are the parameters that `form_urlencoded` reads, and each occurs once. If they
//! are written and read again, they stay the same.

use std::borrow::Cow;

use hapax::http::query::Query;

const NAMES: [&str; 6] = ["id", "limit", "threshold", "with", "cursor", "duplex"];

pub fn run(data: &[u8]) {
    let Ok(raw) = std::str::from_utf8(data) else { return };
    let query = match Query::parse(raw, &NAMES) {
        Ok(query) => query,
        Err(problem) => {
            assert!(!problem.errors.is_empty() && problem.errors.len() <= raw.len());
            return;
        }
    };
    let read: Vec<(Cow<'_, str>, Cow<'_, str>)> = form_urlencoded::parse(raw.as_bytes()).collect();
    for (name, value) in &read {
        assert_eq!(query.get(name), Some(&**value), "{name}");
    }
    assert_eq!(read.len(), NAMES.iter().filter(|name| query.get(name).is_some()).count());
    let written = form_urlencoded::Serializer::new(String::new()).extend_pairs(&read).finish();
    let again = Query::parse(&written, &NAMES).expect("what was written is read");
    assert!(NAMES.iter().all(|name| query.get(name) == again.get(name)));
    // The values of parameters with a type are within their limits.
    if let Ok(limit) = query.integer("limit", 10, 1..=1000) {
        assert!((1..=1000).contains(&limit));
        assert!(query.get("limit").is_none_or(|text| text.parse() == Ok(limit)));
    }
    if let Ok(Some(threshold)) = query.threshold() {
        assert!(threshold > 0.0 && threshold <= 1.0);
    }
    if let Ok(Some(id)) = query.id() {
        assert_eq!(Some(id.as_str()), query.get("id"));
    }
    let _ = (query.flag("duplex"), query.choice("with", &[("none", 0), ("metadata", 1)]));
}
