//! Pieces of a stream -> its lines, numbered.
//! Counts every line, gives out those that are not blank, and passes over those that are too long without keeping
//! them. Pure; knows nothing of JSON.

use bytes::{Bytes, BytesMut};

/// One line, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// From 1; blank lines count.
    pub number: u64,
    /// The line; `None` where it is too long.
    pub text: Option<Bytes>,
}

/// Cuts a stream at its line feeds.
#[derive(Debug)]
pub struct Splitter {
    bytes_max: usize,
    held: BytesMut,
    /// The line being read has passed the limit: it is counted, not kept.
    skipping: bool,
    number: u64,
}

impl Splitter {
    /// Lines have at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: BytesMut::new(), skipping: false, number: 0 }
    }

    /// Lines begun so far, blank ones included.
    pub fn lines(&self) -> u64 {
        self.number + u64::from(self.skipping || !self.held.is_empty())
    }

    /// Bytes of the line that is not yet complete.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes the next piece and gives out the lines that end in it.
    pub fn feed(&mut self, mut piece: Bytes, mut out: impl FnMut(Line)) {
        while let Some(at) = piece.iter().position(|&byte| byte == b'\n') {
            let tail = piece.split_to(at);
            piece = piece.slice(1..);
            if let Some(line) = self.complete(tail) {
                out(line);
            }
        }
        self.keep(&piece);
    }

    /// The last line, where the stream does not end in a line feed.
    pub fn end(&mut self) -> Option<Line> {
        if self.held.is_empty() && !self.skipping {
            return None;
        }
        self.complete(Bytes::new())
    }

    fn complete(&mut self, tail: Bytes) -> Option<Line> {
        self.number += 1;
        let number = self.number;
        // A line within one piece is a slice of it; only one that spans pieces is copied.
        let text = if self.held.is_empty() && !self.skipping {
            (tail.len() <= self.bytes_max).then_some(tail)
        } else {
            self.keep(&tail);
            (!std::mem::take(&mut self.skipping)).then(|| self.held.split().freeze())
        };
        self.held = BytesMut::new();
        match text {
            Some(text) if text.iter().all(u8::is_ascii_whitespace) => None,
            text => Some(Line { number, text }),
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.skipping || self.held.len() + piece.len() > self.bytes_max {
            self.skipping |= !piece.is_empty();
            self.held = BytesMut::new();
        } else {
            self.held.extend_from_slice(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &[u8], piece: usize, max: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut splitter = Splitter::new(max);
        let mut lines = Vec::new();
        for piece in text.chunks(piece.max(1)) {
            splitter.feed(Bytes::copy_from_slice(piece), |line| lines.push(line));
        }
        lines.extend(splitter.end());
        lines.into_iter().map(|line| (line.number, line.text.map(|text| text.to_vec()))).collect()
    }

    #[test]
    fn blank_lines_count_and_are_skipped() {
        let lines = split(b"a\n\n \r\nb\n\n", 100, 10);
        assert_eq!(lines, [(1, Some(b"a".to_vec())), (4, Some(b"b".to_vec()))]);
    }

    #[test]
    fn the_last_line_needs_no_line_feed() {
        assert_eq!(split(b"a\nb", 1, 10).len(), 2);
        assert_eq!(split(b"", 1, 10).len(), 0);
        assert_eq!(split(b"\n", 1, 10).len(), 0);
    }

    #[test]
    fn too_long_lines_are_named_and_not_kept() {
        let mut splitter = Splitter::new(10);
        let mut lines = Vec::new();
        for _ in 0..1000 {
            splitter.feed(Bytes::from_static(b"0123456789"), |line| lines.push(line));
            assert!(splitter.held() <= 10);
        }
        splitter.feed(Bytes::from_static(b"\nshort\n"), |line| lines.push(line));
        assert_eq!(lines[0], Line { number: 1, text: None });
        assert_eq!(lines[1], Line { number: 2, text: Some(Bytes::from_static(b"short")) });
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'a')], 0..200),
            piece in 1usize..20,
            max in 0usize..12,
        ) {
            let expected: Vec<_> = text
                .split(|&byte| byte == b'\n')
                .enumerate()
                .filter(|(_, line)| line.len() > max || !line.iter().all(u8::is_ascii_whitespace))
                .map(|(at, line)| (at as u64 + 1, (line.len() <= max).then(|| line.to_vec())))
                .collect();
            prop_assert_eq!(split(&text, piece, max), expected);
        }
    }
}
