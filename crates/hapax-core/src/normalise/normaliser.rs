//! Pieces of text -> canonical text: the state machine that holds back, composes and writes characters.

use super::plain_run::fold_plain;
use super::rules::Rules;
use super::utf8::{IllFormed, NotUtf8};
use crate::simd::{Block, Simd};
use crate::spec::{Digits, Fold, Marks};
use crate::unicode::{Class, decode};

/// The longest run of non-starters that is reordered and composed as one (UAX #15, section 13).
const NON_STARTERS_MAX: usize = 30;

/// The number of bytes of text whose plain characters are written in one go. Room for all these bytes is made in the
/// output first.
const PLAIN_BYTES_MAX: usize = 4096;
/// The number of bytes that are written in one go if recent runs were short.
const PLAIN_BYTES_MIN: usize = 128;

const BOM: char = '\u{feff}';

/// Turns text, given in pieces, into canonical text, which it appends to the caller's buffer.
///
/// ```
/// use hapax_core::normalise::Normaliser;
/// use hapax_core::{Digits, Fold, Marks};
///
/// let mut normaliser = Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep);
/// let mut canonical = Vec::new();
/// normaliser.push("  STRA\u{200b}SSE \n", &mut canonical);
/// normaliser.push("\u{ff11}", &mut canonical);
/// normaliser.finish(&mut canonical);
/// assert_eq!(canonical, b"strasse 1");
/// ```
#[derive(Clone)]
pub struct Normaliser {
    rules: Rules,
    /// The last starter, not yet written: a following character may compose with it.
    starter: Option<char>,
    /// Whether `starter` is not decomposed yet. It is decomposed only if a following character may combine with a part
    /// of it.
    whole: bool,
    /// The non-starters since the last starter or cut, in the order of the text.
    marks: [(u8, char); NON_STARTERS_MAX],
    marks_len: usize,
    /// Whether the text so far is empty, or only a BOM.
    at_start: bool,
    /// Whether anything was written.
    started: bool,
    space_pending: bool,
    /// The number of bytes of text to make room for at once.
    plain_bytes: usize,
    /// The beginning of a code point whose end has not arrived.
    partial: [u8; 4],
    partial_len: usize,
    bytes: u64,
}

impl Normaliser {
    /// Makes a normaliser that is ready for the first piece of a text.
    pub fn new(fold: Fold, marks: Marks, digits: Digits) -> Self {
        Self::with_rules(Rules::new(fold, marks, digits, Simd::best()))
    }

    pub(crate) fn with_rules(rules: Rules) -> Self {
        Self {
            rules,
            starter: None,
            whole: false,
            marks: [(0, '\0'); NON_STARTERS_MAX],
            marks_len: 0,
            at_start: true,
            started: false,
            space_pending: false,
            plain_bytes: PLAIN_BYTES_MAX,
            partial: [0; 4],
            partial_len: 0,
            bytes: 0,
        }
    }

    /// Makes the normaliser ready for another text.
    pub(crate) fn begin(&mut self, rules: Rules) {
        *self = Self::with_rules(rules);
    }

    /// Takes the next piece. A piece may begin or end anywhere, even inside a character. After an error the text is
    /// lost, and `begin` has to be called.
    pub fn push_bytes(&mut self, mut piece: &[u8], ill_formed: IllFormed, out: &mut Vec<u8>) -> Result<(), NotUtf8> {
        let end = self.bytes + piece.len() as u64;
        while self.partial_len > 0 && !piece.is_empty() {
            self.partial[self.partial_len] = piece[0];
            let held = self.partial;
            match std::str::from_utf8(&held[..=self.partial_len]) {
                Ok(text) => {
                    self.partial_len = 0;
                    piece = &piece[1..];
                    self.push(text, out);
                }
                Err(error) if error.error_len().is_none() => {
                    self.partial_len += 1;
                    piece = &piece[1..];
                }
                // The new byte does not continue the sequence that was begun, so it is read again as the start of
                // another sequence.
                Err(_) => {
                    let offset = end - (piece.len() + self.partial_len) as u64;
                    self.partial_len = 0;
                    self.replace(ill_formed, offset, out)?;
                }
            }
        }
        while !piece.is_empty() {
            match std::str::from_utf8(piece) {
                Ok(text) => {
                    self.push(text, out);
                    break;
                }
                Err(error) => {
                    let (good, rest) = piece.split_at(error.valid_up_to());
                    self.push(std::str::from_utf8(good).expect("valid up to here"), out);
                    match error.error_len() {
                        Some(len) => {
                            self.replace(ill_formed, end - rest.len() as u64, out)?;
                            piece = &rest[len..];
                        }
                        None => {
                            self.partial[..rest.len()].copy_from_slice(rest);
                            self.partial_len = rest.len();
                            break;
                        }
                    }
                }
            }
        }
        self.bytes = end;
        Ok(())
    }

    /// Ends a text given as bytes. It is an error if the last code point is incomplete.
    pub fn finish_bytes(&mut self, ill_formed: IllFormed, out: &mut Vec<u8>) -> Result<(), NotUtf8> {
        if self.partial_len > 0 {
            let offset = self.bytes - self.partial_len as u64;
            self.partial_len = 0;
            self.replace(ill_formed, offset, out)?;
        }
        self.finish(out);
        Ok(())
    }

    fn replace(&mut self, ill_formed: IllFormed, offset: u64, out: &mut Vec<u8>) -> Result<(), NotUtf8> {
        match ill_formed {
            IllFormed::Refuse => Err(NotUtf8 { offset }),
            IllFormed::Replace => {
                self.push("\u{fffd}", out);
                Ok(())
            }
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str, out: &mut Vec<u8>) {
        let mut text = piece.as_bytes();
        if self.at_start && !text.is_empty() {
            self.at_start = false;
            text = piece.strip_prefix(BOM).unwrap_or(piece).as_bytes();
        }
        while !text.is_empty() {
            text = &text[self.push_plain(text, out)..];
            while text.first().is_some_and(|first| !first.is_ascii()) {
                let (c, bytes) = decode(text);
                if self.rules.plain(c).is_some() {
                    break;
                }
                self.push_char(char::from_u32(c).expect("a `str` holds scalar values"), out);
                text = &text[bytes..];
            }
        }
    }

    /// Ends the text. The normaliser is then ready for another one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.settle(out);
        self.begin(self.rules);
    }

    /// Writes the plain characters at the front of the text: those that fold to themselves or to one other character
    /// and never compose. Most texts have no other characters. The last plain character is held back, because marks may
    /// follow it. Returns the number of bytes taken from the text.
    fn push_plain(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        if !text[0].is_ascii() && self.rules.plain(decode(text).0).is_none() {
            return 0;
        }
        self.settle(out);
        let from = out.len();
        if self.space_pending {
            out.push(b' ');
        }
        let mut len = text.len().min(self.plain_bytes);
        while text.get(len).is_some_and(|byte| byte & 0xc0 == 0x80) {
            len -= 1;
        }
        let text = &text[..len];
        let to = out.len();
        out.resize(to + text.len() + 2 * size_of::<Block>(), 0);
        let (taken, written) = fold_plain(self.rules, text, &mut out[to..], to > from || !self.started);
        // If runs are short, making room for long ones costs more than the runs themselves.
        self.plain_bytes =
            if taken == text.len() { PLAIN_BYTES_MAX.min(2 * self.plain_bytes) } else { PLAIN_BYTES_MIN };
        out.truncate(to + written);
        self.space_pending = out.len() > from && out.ends_with(b" ");
        if self.space_pending {
            out.pop();
        }
        if out.len() > from {
            self.started = true;
            if self.rules.composes() && !self.space_pending {
                let first = out.len() - 1 - out.iter().rev().take_while(|&b| b & 0xc0 == 0x80).count();
                let c = if out[first].is_ascii() { u32::from(out[first]) } else { decode(&out[first..]).0 };
                self.starter = char::from_u32(c);
                self.whole = true;
                out.truncate(first);
            }
        }
        taken
    }

    #[inline]
    fn push_char(&mut self, c: char, out: &mut Vec<u8>) {
        let table = self.rules.table();
        let Some(mapping) = table.mapping(table.get(c)) else { return self.push_mapped(c, out) };
        // To strip marks or set digits to zero, the decomposed form is needed.
        if let Some(whole) = mapping.whole
            && !self.rules.strips_marks()
            && !self.rules.zeroes_digits()
        {
            self.compose_marks();
            self.put_out(out);
            self.starter = Some(whole);
            self.whole = true;
        } else {
            table.mapped(mapping).iter().for_each(|&m| self.push_mapped(m, out));
        }
    }

    /// Takes one scalar value of the mapped and decomposed stream. Hangul syllables arrive composed. This is
    /// equivalent, because a syllable does not compose with anything before it, and it still composes with a trailing
    /// consonant after it.
    #[inline]
    fn push_mapped(&mut self, mut c: char, out: &mut Vec<u8>) {
        let entry = self.rules.table().get(c);
        if self.rules.strips_marks() && entry.class() == Class::Mark {
            return;
        }
        if entry.class() == Class::Space {
            // Nothing composes with white space, so it is never held back.
            self.settle(out);
            self.space_pending = self.started;
            return;
        }
        if self.rules.zeroes_digits() && entry.is_digit() {
            c = '0';
        }
        if !self.rules.composes() {
            self.begin_word(out);
            push_char_to(out, c);
            return;
        }
        let ccc = entry.combining_class();
        if ccc != 0 {
            self.take_apart(out);
            if self.marks_len == NON_STARTERS_MAX {
                self.settle(out);
            }
            self.marks[self.marks_len] = (ccc, c);
            self.marks_len += 1;
            return;
        }
        if entry.composes_backward() {
            self.take_apart(out);
        }
        self.compose_marks();
        if entry.composes_backward()
            && self.marks_len == 0
            && let Some(starter) = self.starter
            && let Some(composite) = self.rules.table().compose(starter, c)
        {
            self.starter = Some(composite);
            return;
        }
        self.put_out(out);
        self.starter = Some(c);
    }

    /// Prepares for a following character that may combine with a part of the starter.
    #[inline]
    fn take_apart(&mut self, out: &mut Vec<u8>) {
        if self.whole
            && let Some(whole) = self.starter.take()
        {
            self.whole = false;
            let table = self.rules.table();
            match table.mapping(table.get(whole)) {
                Some(mapping) => table.mapped(mapping).iter().for_each(|&m| self.push_mapped(m, out)),
                None => self.starter = Some(whole),
            }
        }
    }

    /// Composes and writes the pending characters. The following character must not compose with anything before it.
    fn settle(&mut self, out: &mut Vec<u8>) {
        self.compose_marks();
        self.put_out(out);
        self.starter = None;
    }

    #[inline]
    fn put_out(&mut self, out: &mut Vec<u8>) {
        if let Some(starter) = self.starter {
            self.begin_word(out);
            push_char_to(out, starter);
        }
        if self.marks_len > 0 {
            self.begin_word(out);
            self.marks[..self.marks_len].iter().for_each(|&(_, mark)| push_char_to(out, mark));
            self.marks_len = 0;
        }
        self.whole = false;
    }

    /// Prepares for a following character that is not white space.
    #[inline]
    fn begin_word(&mut self, out: &mut Vec<u8>) {
        if self.space_pending {
            out.push(b' ');
            self.space_pending = false;
        }
        self.started = true;
    }

    /// Puts the marks in canonical order, and then composes them with the starter (UAX #15, D117). Marks that do not
    /// compose stay in `marks`.
    fn compose_marks(&mut self) {
        let marks = &mut self.marks[..self.marks_len];
        if marks.is_empty() {
            return;
        }
        marks.sort_by_key(|&(ccc, _)| ccc); // stable, as canonical ordering must be
        let Some(mut starter) = self.starter else { return };
        let mut kept = 0;
        for i in 0..marks.len() {
            let (ccc, mark) = marks[i];
            let blocked = kept > 0 && marks[kept - 1].0 >= ccc;
            match self.rules.table().compose(starter, mark) {
                Some(composite) if !blocked => starter = composite,
                _ => {
                    marks[kept] = (ccc, mark);
                    kept += 1;
                }
            }
        }
        self.starter = Some(starter);
        self.marks_len = kept;
    }
}

fn push_char_to(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_found_at_every_place_of_a_block() {
        let plain = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        for len in [1, 31, 32, 33, 64, 65, 100] {
            for at in 0..len {
                for odd in [" ", "  ", "\n", " \n", "\n ", "\t\t", " \r\n ", "\x0c"] {
                    let mut text = "Some words Apart ".repeat(10);
                    text.truncate(len);
                    text.insert_str(at, odd);
                    let mut out = Vec::new();
                    let mut normaliser = Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep);
                    normaliser.push(&text, &mut out);
                    normaliser.finish(&mut out);
                    assert_eq!(out, plain(&text.to_ascii_lowercase()).as_bytes(), "{text:?}");
                }
            }
        }
    }
}
