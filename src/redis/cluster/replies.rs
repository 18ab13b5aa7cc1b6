//! Bytes of a node -> values, as soon as they are complete. Reads the protocol RESP2, as nodes speak it to clients that
//! have not asked for another one. The library reads it too, but takes many times as long for the short answers that a
//! document needs a hundred of.

use redis::Value;

/// Arrays in arrays, at most. `CLUSTER SLOTS` has four.
const DEPTH_MAX: usize = 16;
/// The most bytes or values that a node may announce: the largest value that it can store.
const LENGTH_MAX: i64 = 512 << 20;

/// The bytes are no answer of a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoReply;

/// Reads the first value. Returns it with the number of its bytes, or `None` if it is not complete yet.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Value, usize)>, NoReply> {
    let mut rest = bytes;
    let value = value(&mut rest, DEPTH_MAX)?;
    Ok(value.map(|value| (value, bytes.len() - rest.len())))
}

fn value(rest: &mut &[u8], depth: usize) -> Result<Option<Value>, NoReply> {
    let begin = *rest;
    let Some(end) = memchr::memchr(b'\n', begin) else { return Ok(None) };
    let line = begin[..end].strip_suffix(b"\r").ok_or(NoReply)?;
    let (kind, line) = line.split_first().ok_or(NoReply)?;
    *rest = &begin[end + 1..];
    match kind {
        b':' => Ok(Some(Value::Int(number(line)?))),
        b'+' if line == b"OK" => Ok(Some(Value::Okay)),
        b'+' => Ok(Some(Value::SimpleString(String::from_utf8_lossy(line).into_owned()))),
        // The library knows the kinds of errors.
        b'-' => redis::parse_redis_value(&begin[..=end]).map(Some).map_err(|_| NoReply),
        b'$' => match length(line)? {
            None => Ok(Some(Value::Nil)),
            Some(length) => {
                let Some(bytes) = rest.get(..length) else { return Ok(None) };
                let Some(end) = rest.get(length..length + 2) else { return Ok(None) };
                if end != b"\r\n" {
                    return Err(NoReply);
                }
                *rest = &rest[length + 2..];
                Ok(Some(Value::BulkString(bytes.to_vec())))
            }
        },
        b'*' => match length(line)? {
            None => Ok(Some(Value::Nil)),
            Some(_) if depth == 0 => Err(NoReply),
            Some(length) => {
                // Each value has at least three bytes.
                let mut values = Vec::with_capacity(length.min(rest.len() / 3 + 1));
                for _ in 0..length {
                    let Some(value) = value(rest, depth - 1)? else { return Ok(None) };
                    values.push(value);
                }
                Ok(Some(Value::Array(values)))
            }
        },
        _ => Err(NoReply),
    }
}

/// Reads a length; `None` means that there is no value.
fn length(line: &[u8]) -> Result<Option<usize>, NoReply> {
    match number(line)? {
        -1 => Ok(None),
        length @ 0..=LENGTH_MAX => Ok(Some(length as usize)),
        _ => Err(NoReply),
    }
}

fn number(line: &[u8]) -> Result<i64, NoReply> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(NoReply)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[u8] =
        b"+OK\r\n+PONG\r\n:-7\r\n$-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*-1\r\n*0\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n\
        -MOVED 3999 127.0.0.1:6381\r\n-ERR no\r\n*3\r\n$10\r\n1000000007\r\n-NOSCRIPT No matching script.\r\n+a\r\n";

    #[test]
    fn values_are_read_as_the_library_reads_them() {
        let mut rest = REPLIES;
        let mut count = 0;
        while !rest.is_empty() {
            let (value, bytes) = read(rest).unwrap().unwrap();
            assert_eq!(Ok(value), redis::parse_redis_value(&rest[..bytes]));
            rest = &rest[bytes..];
            count += 1;
        }
        assert_eq!(count, 12);
    }

    #[test]
    fn a_value_that_is_not_complete_is_not_read() {
        let mut rest = REPLIES;
        while !rest.is_empty() {
            let (_, bytes) = read(rest).unwrap().unwrap();
            for end in 0..bytes {
                assert_eq!(read(&rest[..end]), Ok(None), "{end} of {bytes}");
            }
            rest = &rest[bytes..];
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"+OK\n",
            b":1x\r\n",
            b"$-2\r\n",
            b"$536870913\r\n",
            b"$1\r\nxyz",
            b"*1\r\n%1\r\n",
            &b"*1\r\n".repeat(40),
        ] {
            assert_eq!(read(bytes), Err(NoReply), "{bytes:?}");
        }
        // No memory is reserved for values that have not arrived.
        assert_eq!(read(b"*536870912\r\n"), Ok(None));
    }
}
