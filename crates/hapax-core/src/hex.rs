//! Lower-case hexadecimal digits, the form of fingerprints and content hashes in texts.

/// Returns the number that 32 lower-case hex digits represent; `None` for any other text.
pub(crate) fn of_hex(digits: &str) -> Option<u128> {
    let is_whole = digits.len() == 32 && digits.bytes().all(is_lower_hex);
    is_whole.then(|| u128::from_str_radix(digits, 16).expect("32 hex digits fit 128 bits"))
}

pub(crate) fn is_lower_hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f')
}
