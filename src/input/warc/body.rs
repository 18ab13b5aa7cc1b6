//! The body of an archived HTTP response -> the bytes of its content: chunks are joined, and content encodings are
//! undone. Some archives store a decoded body with the original header. A body that is clearly not encoded is therefore
//! used unchanged. Knows nothing of records and documents.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Read};

use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};

use super::header::Header;

/// The largest number of encodings that are applied to one body. Servers hardly ever use more than one.
const ENCODINGS_MAX: usize = 3;
/// The memory that a zstd frame may require, as a power of two: browsers allow 8 MiB (RFC 8878, section 3.1.1.1.2).
const WINDOW_LOG_MAX: u32 = 23;

/// Returns the content of a body, of at most `bytes_max` bytes. If a body ends early, its beginning is returned.
pub(super) fn content<'a>(header: &Header, body: &'a [u8], bytes_max: usize) -> Result<Cow<'a, [u8]>, String> {
    let mut content = Cow::Borrowed(body);
    let chunked = header.get("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    if chunked && let Some(joined) = joined(&content)? {
        content = Cow::Owned(joined);
    }
    let encodings = header.get("content-encoding").unwrap_or_default().to_ascii_lowercase();
    let encodings: Vec<_> = encodings.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if encodings.len() > ENCODINGS_MAX {
        return Err(format!("the body has {} content encodings; the limit is {ENCODINGS_MAX}", encodings.len()));
    }
    for name in encodings.iter().rev() {
        if let Some(decoded) = decoded(name, &content, bytes_max)? {
            content = Cow::Owned(decoded);
        }
    }
    Ok(content)
}

/// Joins the chunks of a body (RFC 9112, section 7.1). Returns `None` if the body has no chunks. The first line of a
/// text may look like the size of a chunk, so the bytes after the first chunk decide.
fn joined(body: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut content = Vec::with_capacity(body.len());
    let mut rest = body;
    while !rest.is_empty() {
        let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let size = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(size) = size.filter(|_| !digits.starts_with(b"+")) else {
            let at = body.len() - rest.len();
            return if at == 0 { Ok(None) } else { Err(format!("byte {at} of the body is not the size of a chunk")) };
        };
        let is_first = rest.len() == body.len();
        rest = &rest[rest.len().min(line.len() + 1)..];
        if size == 0 {
            return Ok((!is_first || rest.trim_ascii().is_empty()).then_some(content));
        }
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        content.extend_from_slice(chunk);
        let end = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n"));
        // If the body was cut inside the chunk, no line end follows. Then the line of the size must end with CRLF, as
        // servers write it.
        let is_chunk = end.is_some() || after.is_empty() && line.ends_with(b"\r");
        if is_first && !is_chunk {
            return Ok(None);
        }
        rest = end.unwrap_or(after);
    }
    Ok(Some(content))
}

/// The bytes of a body, and whether the decoder requested more bytes than the body has.
struct Ending<'a> {
    rest: &'a [u8],
    is_over: &'a Cell<bool>,
}

impl Read for Ending<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_over.set(self.rest.is_empty());
        self.rest.read(buffer)
    }
}

/// Undoes one encoding. Returns `None` if there is nothing to undo.
fn decoded(encoding: &str, body: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, String> {
    // The decoder of `br` reports a body that ends early as invalid data.
    let is_over = Cell::new(false);
    let decoder: Box<dyn Read + '_> = match encoding {
        "gzip" | "x-gzip" if body.starts_with(&[0x1F, 0x8B]) => Box::new(GzDecoder::new(body)),
        // The data should have a zlib header, but some servers leave it out (RFC 9110, section 8.4.1.2).
        "deflate" if has_zlib_header(body) => Box::new(ZlibDecoder::new(body)),
        "deflate" => Box::new(DeflateDecoder::new(body)),
        "br" => Box::new(brotli_decompressor::Decompressor::new(Ending { rest: body, is_over: &is_over }, 4096)),
        "zstd" if body.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) => {
            let decoder = zstd::stream::read::Decoder::with_buffer(body).and_then(|mut decoder| {
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Ok(decoder)
            });
            Box::new(decoder.map_err(|error| error.to_string())?)
        }
        "gzip" | "x-gzip" | "zstd" | "identity" | "none" | "utf-8" => return Ok(None),
        other => return Err(format!("the content encoding {other:?} is unknown")),
    };
    let mut content = Vec::new();
    let read = decoder.take(bytes_max as u64 + 1).read_to_end(&mut content);
    let ends_early = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof || is_over.get();
    match read {
        Ok(_) if content.len() <= bytes_max => Ok(Some(content)),
        // These two encodings have no magic number, so a body that is valid UTF-8 is taken for one that is already
        // decoded.
        _ if ["br", "deflate"].contains(&encoding) && std::str::from_utf8(body).is_ok() => Ok(None),
        Err(error) if ends_early(&error) && !content.is_empty() => Ok(Some(content)),
        Ok(_) => Err(format!("the body has more than {bytes_max} bytes after decompression, the most that is read")),
        Err(error) => Err(format!("the body is not valid {encoding}: {error}")),
    }
}

/// Checks the header as described in RFC 1950, section 2.2.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..] if method & 0x0F == 8 && (u16::from(*method) * 256 + u16::from(*flags)).is_multiple_of(31))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"some words of a page, some words of a page";

    fn of(fields: &str, body: &[u8]) -> Result<Vec<u8>, String> {
        let header = Header::parse(format!("HTTP/1.1 200 OK\r\n{fields}").as_bytes());
        content(&header, body, 100).map(Cow::into_owned)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn encodings_are_undone() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(TEXT).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(TEXT).unwrap();
        for (fields, body) in [
            ("", TEXT.to_vec()),
            ("Content-Encoding: gzip", gzip(TEXT)),
            ("Content-Encoding: x-gzip, GZIP", gzip(&gzip(TEXT))),
            ("Content-Encoding: deflate", zlib.finish().unwrap()),
            ("Content-Encoding: deflate", deflate.finish().unwrap()),
            ("Content-Encoding: zstd", zstd::encode_all(TEXT, 1).unwrap()),
            ("Content-Encoding: gzip", TEXT.to_vec()),
            ("Content-Encoding: deflate", TEXT.to_vec()),
            ("Content-Encoding: br", TEXT.to_vec()),
            // The first bytes are an uncompressed block, and the last byte is an empty last block (RFC 7932, section
            // 9.2).
            ("Content-Encoding: br", [&[0x8B, 0x14, 0x80], TEXT, &[0x03]].concat()),
        ] {
            assert_eq!(of(fields, &body).as_deref(), Ok(TEXT), "{fields} {body:?}");
        }
    }

    #[test]
    fn chunks_are_joined() {
        let chunked = |body: &[u8]| of("Transfer-Encoding: chunked", body);
        assert_eq!(chunked(b"5\r\nsome \r\n0003;x=y\r\nwor\r\n0\r\n\r\n").unwrap(), b"some wor");
        assert_eq!(chunked(b"5\nsome \n0\n\n").unwrap(), b"some ");
        assert_eq!(chunked(TEXT).unwrap(), TEXT, "decoded before it was archived");
        assert_eq!(chunked(b"50\r\nends early").unwrap(), b"ends early");
        assert!(chunked(b"3\r\nabc\r\n3\r\nabcxyz\r\n0\r\n").unwrap_err().contains("byte 14"));
        assert_eq!(chunked(b"FFFFFFFFFFFFFFFF\r\nab").unwrap(), b"ab");
        assert_eq!(chunked(b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n").unwrap(), b"abc");
        assert_eq!(chunked(b"0\r\n\r\n").unwrap(), b"");
    }

    #[test]
    fn a_decoded_body_whose_first_line_looks_like_the_size_of_a_chunk_is_whole() {
        for text in ["2026\nAnnual report", "3\nsheep and a dog", "0\nis a number", "0\r\nis a number", "2\r\nmore\r\n"]
        {
            assert_eq!(of("Transfer-Encoding: chunked", text.as_bytes()).unwrap(), text.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn bombs_and_damage_are_errors() {
        assert!(of("Content-Encoding: gzip", &gzip(&[b'x'; 101])).unwrap_err().contains("more than 100 bytes"));
        assert!(of("Content-Encoding: sdch", TEXT).unwrap_err().contains("\"sdch\""));
        assert!(of("Content-Encoding: gzip, gzip, gzip, gzip", TEXT).is_err());
        let mut damaged = gzip(TEXT);
        let sum = damaged.len() - 8;
        damaged[sum] ^= 1;
        assert!(of("Content-Encoding: gzip", &damaged).unwrap_err().contains("not valid gzip"));
        let whole = gzip(TEXT);
        assert_eq!(of("Content-Encoding: gzip", &whole[..whole.len() - 2]).as_deref(), Ok(TEXT), "without its sum");
        let brotli = [&[0x8B, 0x14, 0x80], TEXT, &[0x03]].concat();
        assert_eq!(of("Content-Encoding: br", &brotli[..23]).as_deref(), Ok(&TEXT[..20]));
        // The damage is at the beginning, and all bytes fit into the decoder's buffer.
        assert!(of("Content-Encoding: br", &[&[0xFF; 20], TEXT].concat()).unwrap_err().contains("not valid br"));
    }
}
