//! Frames of RESP2, the protocol of Redis. In: bytes of a connection. Out: where a frame ends, its words, and the same
//! frame with other ports.

use std::collections::BTreeMap;

/// Returns the length of the first frame, or `None` if it is not whole.
pub fn frame(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    match bytes[0] {
        b'+' | b'-' | b':' => Some(end),
        b'$' => {
            let all = usize::try_from(number(bytes)).map_or(end, |length| end + length + 2);
            (bytes.len() >= all).then_some(all)
        }
        b'*' => (0..number(bytes)).try_fold(end, |at, _| Some(at + frame(&bytes[at..])?)),
        other => panic!("not RESP2: {:?}", char::from(other)),
    }
}

/// Returns the words of a command, which is a whole frame.
pub fn words(command: &[u8]) -> Vec<&[u8]> {
    let mut rest = &command[line(command).len() + 2..];
    let mut words = Vec::new();
    for _ in 0..number(command) {
        let begin = line(rest).len() + 2;
        let length = usize::try_from(number(rest)).expect("a word of a command is a text");
        words.push(&rest[begin..begin + length]);
        rest = &rest[begin + length + 2..];
    }
    words
}

/// Replaces the port in a redirect (`MOVED`, `ASK`), whose last word is the address of a node.
pub fn redirected(answer: &[u8], ports: &BTreeMap<u16, u16>) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line(answer)).ok().filter(|_| answer[0] == b'-')?;
    let (before, port) =
        text.rsplit_once(':').filter(|_| ["-MOVED ", "-ASK "].iter().any(|kind| text.starts_with(kind)))?;
    let port = ports.get(&port.parse().ok()?)?;
    Some(format!("{before}:{port}\r\n").into_bytes())
}

/// Replaces the ports in an answer to `CLUSTER SLOTS`. They are the numbers of the third level: those of the second
/// level are slots.
pub fn with_ports(answer: &[u8], ports: &BTreeMap<u16, u16>) -> Vec<u8> {
    fn copy(bytes: &[u8], depth: u8, ports: &BTreeMap<u16, u16>, copied: &mut Vec<u8>) {
        let end = line(bytes).len() + 2;
        match bytes[0] {
            b'*' => {
                copied.extend(&bytes[..end]);
                let mut at = end;
                for _ in 0..number(bytes) {
                    let length = frame(&bytes[at..]).expect("the frame is whole");
                    copy(&bytes[at..at + length], depth + 1, ports, copied);
                    at += length;
                }
            }
            b':' if depth == 3 => {
                let port = u16::try_from(number(bytes)).ok().and_then(|port| ports.get(&port));
                copied.extend(port.map_or(bytes.to_vec(), |port| format!(":{port}\r\n").into_bytes()));
            }
            _ => copied.extend(bytes),
        }
    }
    let mut copied = Vec::new();
    copy(answer, 0, ports, &mut copied);
    copied
}

fn line(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|two| two == b"\r\n").expect("the frame is whole");
    &bytes[..end]
}

fn number(bytes: &[u8]) -> i64 {
    let text = std::str::from_utf8(&line(bytes)[1..]).expect("UTF-8");
    text.parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_and_read() {
        let all = b"*2\r\n*1\r\n:7\r\n$-1\r\n+OK\r\n";
        assert_eq!(frame(all), Some(17));
        assert!((0..17).all(|end| frame(&all[..end]).is_none()));
        assert_eq!(words(b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n"), [&b"GET"[..], b"a\r\nb"]);
    }

    #[test]
    fn only_ports_are_replaced() {
        let ports = BTreeMap::from([(12000, 4)]);
        assert_eq!(redirected(b"-MOVED 12000 127.0.0.1:12000\r\n", &ports).unwrap(), b"-MOVED 12000 127.0.0.1:4\r\n");
        assert_eq!(redirected(b"-ERR no 127.0.0.1:12000\r\n", &ports), None);
        let slots = b"*1\r\n*3\r\n:0\r\n:12000\r\n*2\r\n$1\r\na\r\n:12000\r\n";
        assert_eq!(with_ports(slots, &ports), b"*1\r\n*3\r\n:0\r\n:12000\r\n*2\r\n$1\r\na\r\n:4\r\n");
    }
}
