//! The bytes of a text -> its characters. The charset that the sender names may be wrong or missing. A wrong or missing
//! charset never causes an error. Knows nothing of records.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::extract::is_utf8;

/// Decodes the text by its byte order mark, or else by the label. If both are missing, the text is read as UTF-8 if the
/// bytes are valid, and otherwise as windows-1252, as in browsers.
pub(super) fn decoded(bytes: &[u8], label: Option<&str>) -> String {
    let labelled = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = labelled.unwrap_or_else(|| if is_utf8(bytes) { UTF_8 } else { WINDOWS_1252 });
    // `decode` uses a byte order mark in preference to `encoding`.
    encoding.decode(bytes).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_the_label_and_the_bytes_tell_the_encoding() {
        for (bytes, label, expected) in [
            (b"caf\xC3\xA9".as_slice(), None, "café"),
            (b"caf\xE9", None, "café"),
            // The text is cut inside a character.
            (b"caf\xC3\xA9 \xE2\x82", None, "café \u{FFFD}"),
            (b"caf\xE9", Some("ISO-8859-1"), "café"),
            (b"\x8D\x60", Some("Shift_JIS"), "港"),
            (b"\xEF\xBB\xBFcaf\xC3\xA9", Some("shift_jis"), "café"),
            (b"\xFE\xFF\x00h\x00i", None, "hi"),
            (b"caf\xC3\xA9", Some("nonsense"), "café"),
            (b"<meta charset=koi8-r> \xC9", None, "<meta charset=koi8-r> É"),
        ] {
            assert_eq!(decoded(bytes, label), expected, "{label:?}");
        }
    }
}
