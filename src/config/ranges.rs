//! Functions that check single values. Each returns the value, or an error that says which values are allowed. They
//! must never know the meaning of a key.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;

/// Returns the error for `value`. `allowed` says which values are valid.
pub(super) fn impossible(key: &'static str, value: impl fmt::Display, allowed: String) -> ConfigError {
    ConfigError::Impossible { key, value: value.to_string(), allowed }
}

/// Checks that a number is in `range`.
pub(super) fn within(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(impossible(key, value, format!("must be between {} and {}", range.start(), range.end())))
}

/// Checks that a number is 0 or in `range`.
pub(super) fn zero_or_within(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    if value == 0 || range.contains(&value) {
        return Ok(value);
    }
    Err(impossible(key, value, format!("must be 0, or between {} and {}", range.start(), range.end())))
}

/// Like [`zero_or_within`], but returns `None` for 0.
pub(super) fn optional(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<Option<u64>, ConfigError> {
    zero_or_within(key, value, range).map(|value| Some(value).filter(|&value| value > 0))
}

/// Checks that a number is in `range` and fits this machine's `usize`.
pub(super) fn count(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
    let value = within(key, value, range)?;
    usize::try_from(value)
        .map_err(|_| impossible(key, value, format!("must be at most {} on this machine", usize::MAX)))
}

/// Parses every entry of a list. The error names the first entry that is not valid.
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

/// Checks that a number of milliseconds is in `range`.
pub(super) fn milliseconds(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<Duration, ConfigError> {
    within(key, value, range).map(Duration::from_millis)
}

/// Returns the value that belongs to `text` in `words`.
pub(super) fn word<T: Copy>(key: &'static str, text: &str, words: &[(&str, T)]) -> Result<T, ConfigError> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let allowed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        impossible(key, format!("\"{text}\""), format!("must be one of {allowed}"))
    })
}
