//! The lines of a header -> its fields. WARC records and archived HTTP responses have the same kind of header (ISO
//! 28500, section 4; RFC 9112, section 5). The parser is lenient, because archives store headers exactly as servers
//! sent them.

/// The number of bytes of a header that are read. Servers send fewer. A record may have a longer header, and its fields
/// would take many times as much memory.
const READ_BYTES_MAX: usize = 64 * 1024;

/// The fields of a header, in their order.
#[derive(Debug, Default)]
pub(super) struct Header(Vec<(String, String)>);

impl Header {
    /// Reads the lines after the first one. A line that begins with white space continues the line before it. A line
    /// without a colon is left out, and so are all bytes after [`READ_BYTES_MAX`].
    pub(super) fn parse(lines: &[u8]) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines[..lines.len().min(READ_BYTES_MAX)].split(|&byte| byte == b'\n').skip(1) {
            let text = String::from_utf8_lossy(line);
            if let (Some(last), true) = (fields.last_mut(), line.first().is_some_and(|byte| b" \t".contains(byte))) {
                last.1.push(' ');
                last.1.push_str(text.trim());
            } else if let Some((name, value)) = text.split_once(':') {
                fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        Self(fields)
    }

    /// Returns the value of the first field with this name, which must be in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// Returns a media type in lower case without its parameters, and the parameter `charset` if it has one.
pub(super) fn media_type(value: &str) -> (String, Option<String>) {
    let mut parts = value.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset =
        parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    (essence, charset.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_leniently() {
        let header = Header::parse(b"HTTP/1.1 200 OK\r\nA: 1\r\n  and 2\r\nnonsense\r\nB :x:y\r\na: 3\nC:\xFF");
        assert_eq!(header.get("a"), Some("1 and 2"));
        assert_eq!(header.get("b"), Some("x:y"));
        assert_eq!(header.get("c"), Some("\u{FFFD}"));
        assert_eq!(header.get("nonsense"), None);
    }

    #[test]
    fn of_a_long_header_only_the_beginning_is_read() {
        let long = [b"HTTP/1.1 200 OK\r\na: 1\r\n".as_slice(), &b"b:c\n".repeat(4_000_000), b"d: 2\r\n"].concat();
        let header = Header::parse(&long);
        assert_eq!((header.get("a"), header.get("d")), (Some("1"), None));
        assert!(header.0.len() < READ_BYTES_MAX / 4);
    }

    #[test]
    fn media_types_lose_their_parameters() {
        assert_eq!(media_type("Text/HTML; x=1; Charset=\"UTF-8\""), ("text/html".into(), Some("UTF-8".into())));
        assert_eq!(media_type("application/http;msgtype=response"), ("application/http".into(), None));
        assert_eq!(media_type(""), (String::new(), None));
    }
}
