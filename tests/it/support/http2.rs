//! Builds HTTP/2 frames byte by byte. HTTP libraries do not send the wrong or unfinished frames that tests need.

/// The beginning of a connection, without its settings.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest payload of a frame.
const PAYLOAD_MAX: usize = 16_384;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the frames of a POST request's head. The body follows.
pub fn post_head(stream: u32, target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let own = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", target)];
    let head: Vec<u8> = own.iter().chain(headers).flat_map(|(name, value)| field(name, value)).collect();
    let last = head.len().div_ceil(PAYLOAD_MAX) - 1;
    let pieces = head.chunks(PAYLOAD_MAX).enumerate();
    // The kinds are HEADERS, then CONTINUATION. The flag is END_HEADERS.
    pieces
        .flat_map(|(at, piece)| frame(if at == 0 { 1 } else { 9 }, if at == last { 4 } else { 0 }, stream, piece))
        .collect()
}

/// Returns a header field as a literal (RFC 7541, section 6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [length(text.len()), text.as_bytes().to_vec()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Returns an integer with a prefix of 7 bits (RFC 7541, section 5.1).
fn length(mut length: usize) -> Vec<u8> {
    if length < 127 {
        return vec![length as u8];
    }
    length -= 127;
    let mut bytes = vec![127];
    while length >= 128 {
        bytes.push((length % 128) as u8 | 128);
        length /= 128;
    }
    bytes.push(length as u8);
    bytes
}
