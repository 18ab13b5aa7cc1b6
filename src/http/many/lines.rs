//! Pieces of a stream -> its lines, numbered.
//! Counts all lines, and returns those that are not blank. The text of a line that is too long is skipped and not kept
//! in memory. Pure; knows nothing of JSON.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// A line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NumberedLine {
    /// The line's number, from 1. Blank lines count.
    pub(super) number: u64,
    /// The line; `None` if it is too long.
    pub(super) text: Option<Bytes>,
}

/// Splits a stream at its line feeds.
#[derive(Debug)]
pub(super) struct Splitter {
    bytes_max: usize,
    /// The part of the last piece that has not been searched yet.
    piece: Bytes,
    held: BytesMut,
    /// Whether the held bytes are all blank. Stored, so that a long line is not searched twice.
    held_blank: bool,
    /// Whether the current line is too long. It is then counted, but not kept.
    skipping: bool,
    number: u64,
    barren: u64,
}

impl Splitter {
    /// Lines may have at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        let (piece, held) = (Bytes::new(), BytesMut::new());
        Self { bytes_max, piece, held, held_blank: true, skipping: false, number: 0, barren: 0 }
    }

    /// Returns the number of lines that have begun so far, including blank ones.
    pub(super) fn lines(&self) -> u64 {
        self.number + u64::from(self.begun())
    }

    /// Returns the number of lines that have ended, including blank ones.
    pub(super) fn ended(&self) -> u64 {
        self.number
    }

    /// Whether a line has begun but not ended.
    pub(super) fn begun(&self) -> bool {
        self.skipping || !self.held.is_empty()
    }

    /// Returns the number of held bytes. They belong to the line that has not ended.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of bytes since the last returned line. They are blank lines or a line that is too long. Such
    /// bytes produce no answer, so only this number limits them.
    pub(super) fn barren(&self) -> u64 {
        self.barren
    }

    /// Takes the next piece. All lines of the last piece must have been returned.
    pub(super) fn feed(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "lines of the last piece would be lost");
        self.piece = piece;
    }

    /// Returns the next line that ends in the piece. On `None`, the rest of the piece is kept as the beginning of a
    /// line.
    pub(super) fn next_line(&mut self) -> Option<NumberedLine> {
        while let Some(at) = memchr(b'\n', &self.piece) {
            if !self.begun() && at <= self.bytes_max && blank(&self.piece[..at]) {
                self.number += 1;
                self.barren += at as u64 + 1;
                self.piece.advance(at + 1);
                continue;
            }
            let tail = self.piece.split_to(at);
            self.piece.advance(1);
            if let Some(line) = self.complete(tail) {
                return Some(line);
            }
        }
        let rest = std::mem::take(&mut self.piece);
        self.keep(&rest);
        None
    }

    /// Returns the last line, if the stream does not end with a line feed.
    pub(super) fn end(&mut self) -> Option<NumberedLine> {
        if !self.begun() {
            return None;
        }
        self.complete(Bytes::new())
    }

    fn complete(&mut self, tail: Bytes) -> Option<NumberedLine> {
        self.number += 1;
        let number = self.number;
        // A line within one piece is a slice of that piece. Only a line that spans several pieces is copied.
        let (text, blank) = if self.begun() {
            self.keep(&tail);
            let kept = !std::mem::take(&mut self.skipping);
            (kept.then(|| self.held.split().freeze()), kept && self.held_blank)
        } else {
            let blank = blank(&tail);
            ((tail.len() <= self.bytes_max).then_some(tail), blank)
        };
        (self.held, self.held_blank) = (BytesMut::new(), true);
        if blank && let Some(text) = &text {
            self.barren += text.len() as u64 + 1;
            return None;
        }
        self.barren = 0;
        Some(NumberedLine { number, text })
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.skipping || self.held.len() + piece.len() > self.bytes_max {
            self.skipping |= !piece.is_empty();
            self.barren += piece.len() as u64;
            self.held = BytesMut::new();
        } else {
            self.held.extend_from_slice(piece);
            self.held_blank &= blank(piece);
        }
    }
}

fn blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &[u8], piece: usize, max: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut splitter = Splitter::new(max);
        let mut lines = Vec::new();
        for piece in text.chunks(piece.max(1)) {
            splitter.feed(Bytes::copy_from_slice(piece));
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
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
    fn what_comes_to_no_answer_is_counted() {
        let mut splitter = Splitter::new(10);
        for (piece, ended, barren) in
            [("\n\n \r\n", 3, 5), ("  ", 3, 5), (" \n", 4, 9), ("a\n\n", 6, 1), ("0123456789x", 6, 12)]
        {
            splitter.feed(Bytes::from_static(piece.as_bytes()));
            while splitter.next_line().is_some() {}
            assert_eq!((splitter.ended(), splitter.barren()), (ended, barren), "{piece:?}");
        }
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
            splitter.feed(Bytes::from_static(b"0123456789"));
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
            assert!(splitter.held() <= 10);
        }
        assert_eq!((lines.len(), splitter.barren()), (0, 9_990), "all but what was kept at first");
        splitter.feed(Bytes::from_static(b"\nshort\n"));
        lines.extend(std::iter::from_fn(|| splitter.next_line()));
        assert_eq!(splitter.barren(), 0);
        assert_eq!(lines[0], NumberedLine { number: 1, text: None });
        assert_eq!(lines[1], NumberedLine { number: 2, text: Some(Bytes::from_static(b"short")) });
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
