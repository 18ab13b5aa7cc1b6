//! The bytes of a text or a page -> its characters. The label may be wrong or absent, and never makes it fail. Knows
//! nothing of records.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// The beginning of a page in which it may name its encoding (HTML, "prescan a byte stream to determine its encoding").
const PRESCAN_BYTES: usize = 1024;

/// Decodes by the byte order mark, else the label, else what the page itself says, else as UTF-8 if it is valid, else as
/// windows-1252, as browsers do.
pub(super) fn decoded(bytes: &[u8], label: Option<&str>, is_html: bool) -> String {
    let labelled = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let named = || is_html.then(|| in_page(bytes)).flatten();
    let encoding = labelled.or_else(named).unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    // A byte order mark comes before all that.
    encoding.decode(bytes).0.into_owned()
}

fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN_BYTES)]).to_ascii_lowercase();
    let (_, value) = head.split_once("charset")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = value.split(|c: char| c.is_whitespace() || "\"'>;/".contains(c)).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A page that can be read as ASCII up to here is not UTF-16.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_the_mark_the_page_and_the_bytes_tell_the_encoding() {
        for (bytes, label, is_html, expected) in [
            (b"caf\xC3\xA9".as_slice(), None, false, "café"),
            (b"caf\xE9", None, false, "café"),
            (b"caf\xE9", Some("ISO-8859-1"), true, "café"),
            (b"\x8D\x60", Some("Shift_JIS"), false, "港"),
            (b"\xEF\xBB\xBFcaf\xC3\xA9", Some("shift_jis"), false, "café"),
            (b"\xFE\xFF\x00h\x00i", None, false, "hi"),
            (b"caf\xC3\xA9", Some("nonsense"), false, "café"),
            (b"<meta charset = 'koi8-r'>\xC9", None, true, "<meta charset = 'koi8-r'>и"),
            (
                b"<meta content=\"text/html; charset=koi8-r\">\xC9",
                None,
                true,
                "<meta content=\"text/html; charset=koi8-r\">и",
            ),
            (b"charset=koi8-r \xC9", None, false, "charset=koi8-r É"),
            (b"<meta charset=utf-16>\xC3\xA9", None, true, "<meta charset=utf-16>é"),
        ] {
            assert_eq!(decoded(bytes, label, is_html), expected, "{label:?}");
        }
    }
}
