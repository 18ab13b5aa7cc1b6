//! A value as it was given -> the value, or which ones are allowed.
//! Must never know: what a key means.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;

/// Refuses `value`; `allowed` says what would be taken.
pub(super) fn impossible(key: &'static str, value: impl fmt::Display, allowed: String) -> ConfigError {
    ConfigError::Impossible { key, value: value.to_string(), allowed }
}

/// A number in `range`.
pub(super) fn within(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(impossible(key, value, format!("must be from {} to {}", range.start(), range.end())))
}

/// A number in `range` that this machine can count to.
pub(super) fn count(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
    let value = within(key, value, range)?;
    usize::try_from(value)
        .map_err(|_| impossible(key, value, format!("must be at most {} on this machine", usize::MAX)))
}

/// Every entry of a list, or the first that is refused.
pub(super) fn each<T>(
    key: &'static str,
    list: &[String],
    parse: impl Fn(&str) -> Option<T>,
    allowed: &str,
) -> Result<Vec<T>, ConfigError> {
    list.iter()
        .map(|text| {
            parse(text).ok_or_else(|| impossible(key, format!("{text:?}"), format!("must be a list of {allowed}")))
        })
        .collect()
}

/// A time whose milliseconds are in `range`.
pub(super) fn milliseconds(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<Duration, ConfigError> {
    within(key, value, range).map(Duration::from_millis)
}

/// The value that one of `words` stands for.
pub(super) fn word<T: Copy>(key: &'static str, text: &str, words: &[(&str, T)]) -> Result<T, ConfigError> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let allowed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        impossible(key, format!("\"{text}\""), format!("must be one of {allowed}"))
    })
}
