//! Finds when clients will be without a key: the next time at which the last valid key of a name expires. Knows nothing
//! of files and requests.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::key::Key;

/// A key that expires sooner than this causes a warning, if it is the last key with its name.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Returns whether `end` is so soon that it causes a warning.
pub fn is_soon(end: Timestamp, now: Timestamp) -> bool {
    end.duration_since(now) < SOON
}

/// Returns the name whose last valid key expires first, and when it expires. A key does not count if another valid key
/// with the same name expires later, or never. A name does not count if all its keys have expired.
pub fn next_to_end<'a>(keys: impl Iterator<Item = &'a Key>, now: Timestamp) -> Option<(&'a str, Timestamp)> {
    // `None`: a key of this name never expires.
    let mut ends: HashMap<&str, Option<Timestamp>> = HashMap::new();
    for key in keys.filter(|key| !key.is_expired(now)) {
        let last = ends.entry(key.name()).or_insert(key.expires());
        *last = last.zip(key.expires()).map(|(last, end)| last.max(end));
    }
    ends.into_iter().filter_map(|(name, end)| Some((name, end?))).min_by_key(|&(name, end)| (end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::file::parse;
    use crate::keys::key::KeyDigest;

    #[test]
    fn the_last_key_of_a_name_counts() {
        let next = |keys: &[(&str, &str)]| {
            let mut text = String::from("version = 1\n");
            for (at, (name, expires)) in keys.iter().enumerate() {
                let hash = KeyDigest::of(at.to_string().as_bytes()).to_hex();
                text +=
                    &format!("[[key]]\nname = \"{name}\"\nid = \"i{at}\"\nsha256 = \"{hash}\"\nscopes = [\"check\"]\n");
                if !expires.is_empty() {
                    text += &format!("expires = \"{expires}-01-01T00:00:00Z\"\n");
                }
            }
            let keys = parse(text.as_bytes()).unwrap();
            let now = "2026-06-01T00:00:00Z".parse().unwrap();
            next_to_end(keys.iter(), now).map(|(name, end)| (name.to_owned(), end.strftime("%Y").to_string()))
        };
        let found = |name: &str, year: &str| Some((name.to_owned(), year.to_owned()));
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[("a", ""), ("b", "2020")]), None, "one lasts, the other is over");
        assert_eq!(next(&[("a", "2028"), ("b", "2027")]), found("b", "2027"));
        assert_eq!(next(&[("a", "2028"), ("b", "2027"), ("b", "2030")]), found("a", "2028"), "b has another");
        assert_eq!(next(&[("b", "2027"), ("b", "")]), None);
        assert_eq!(next(&[("b", ""), ("b", "2027")]), None);
    }
}
