//! The bytes of a page -> its HTML. The encoding is determined as in browsers: by a byte order mark, then by the
//! header, then by a declaration in the page, then by a guess from the bytes. Bytes that do not fit the encoding become
//! U+FFFD, as in browsers, so every page can be read.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use html5gum::{Token, Tokenizer};

/// The number of bytes at the beginning of a page that are searched for a declaration, as in the HTML standard.
const DECLARATION_BYTES: usize = 1024;
/// The number of bytes that the guess uses. The guess counts pairs of letters, and a megabyte has enough pairs.
const GUESS_BYTES: usize = 1 << 20;

/// Decodes a page. `charset` is the parameter of the page's `Content-Type` header, if there is one. An unknown
/// `charset` is ignored.
pub fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let encoding = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| Encoding::for_label(charset?.trim().as_bytes()))
        .or_else(|| declared(&bytes[..bytes.len().min(DECLARATION_BYTES)]))
        .unwrap_or_else(|| guessed(bytes));
    encoding.decode(bytes).0.into_owned()
}

/// Returns the encoding that a page declares: `<meta charset=…>`, `<meta http-equiv=… content="…; charset=…">` or
/// `<?xml encoding=…?>`. `start` is the beginning of the page.
fn declared(start: &[u8]) -> Option<&'static Encoding> {
    if start.starts_with(b"<?xml") {
        let declaration = start.split(|&byte| byte == b'>').next()?;
        if let Some(encoding) = label_after(declaration, b"encoding") {
            return Some(encoding);
        }
    }
    let metas = Tokenizer::new(start).filter_map(|token| match token {
        Ok(Token::StartTag(tag)) if **tag.name == *b"meta" => Some(tag),
        _ => None,
    });
    for meta in metas {
        let value = |name: &[u8]| meta.attributes.iter().find(|(key, _)| ***key == *name).map(|(_, value)| &value[..]);
        let encoding = value(b"charset").and_then(label).or_else(|| label_after(value(b"content")?, b"charset"));
        if encoding.is_some() {
            return encoding;
        }
    }
    None
}

/// Returns the encoding that `name=LABEL` in `text` names.
fn label_after(text: &[u8], name: &[u8]) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let rest = text[memchr::memmem::find(&text, name)? + name.len()..].trim_ascii_start();
    let value = rest.strip_prefix(b"=")?.trim_ascii_start();
    let quoted = value.first().filter(|quote| matches!(quote, b'"' | b'\''));
    let of_value = match quoted {
        Some(quote) => value[1..].split(|byte| byte == quote).next()?,
        None => value.split(|&byte| byte.is_ascii_whitespace() || byte == b';').next()?,
    };
    label(of_value)
}

fn label(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label)?;
    // A page whose declaration can be read as ASCII is not in UTF-16, even if the declaration says UTF-16.
    Some(match encoding {
        encoding if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        encoding if encoding == X_USER_DEFINED => WINDOWS_1252,
        encoding => encoding,
    })
}

/// Returns whether these bytes are UTF-8. The last character may be cut. But if all characters before a cut character
/// are ASCII, the bytes do not count as UTF-8, because text in other encodings can also end in such a byte.
pub fn is_utf8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii(),
    }
}

fn guessed(bytes: &[u8]) -> &'static Encoding {
    if is_utf8(bytes) {
        return UTF_8;
    }
    let start = &bytes[..bytes.len().min(GUESS_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(start, start.len() == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_wins_over_the_header_and_the_header_over_the_page() {
        let page = b"<meta charset=koi8-r>\xC1";
        assert!(decode(page, None).ends_with('а'));
        assert!(decode(page, Some("windows-1252")).ends_with('Á'));
        assert!(decode(page, Some("no-such-charset")).ends_with('а'));
        assert_eq!(decode(b"\xEF\xBB\xBF\xC3\xA9", Some("windows-1252")), "é");
        assert_eq!(decode(b"\xFF\xFEa\0\xE9\0", None), "aé");
    }

    #[test]
    fn declarations_are_found() {
        for declaration in [
            "<META HTTP-EQUIV='Content-Type' CONTENT='text/html; charset=iso-8859-7'>",
            "<!-- <meta charset=utf-8> --><meta charset=\"ISO-8859-7\">",
            "<?xml version='1.0' encoding='iso-8859-7'?>",
        ] {
            let page = [declaration.as_bytes(), b"\xE1"].concat();
            assert!(decode(&page, None).ends_with('α'), "{declaration}");
        }
        let late = [" ".repeat(1024).as_bytes(), b"<meta charset=koi8-r>", "é".as_bytes()].concat();
        assert!(decode(&late, None).ends_with('é'));
        assert_eq!(decode("<meta charset=utf-16>é".as_bytes(), None).chars().last(), Some('é'));
    }

    #[test]
    fn undeclared_encodings_are_guessed_and_odd_bytes_replaced() {
        let (russian, _, _) = encoding_rs::WINDOWS_1251.encode("Быстрая лиса прыгает через ленивую собаку");
        assert_eq!(decode(&russian, None), "Быстрая лиса прыгает через ленивую собаку");
        let (japanese, _, _) =
            encoding_rs::SHIFT_JIS.encode("これは日本語で書かれた短い文章です。文字コードを当ててください。");
        assert!(decode(&japanese, None).starts_with("これは日本語"));
        assert_eq!(decode(b"a\xFFb", Some("utf-8")), "a\u{FFFD}b");
    }

    #[test]
    fn a_page_that_is_cut_inside_a_character_is_utf8() {
        let page = "Быстрая лиса прыгает через ленивую собаку".as_bytes();
        let cut = decode(&page[..page.len() - 1], None);
        assert_eq!(cut, "Быстрая лиса прыгает через ленивую собак\u{FFFD}");
        assert_eq!(decode(b"caf\xE9", None), "café");
    }
}
