//! Text -> canonical text: folding, optional stripping of marks and zeroing of digits, white-space runs to one space,
//! trimmed. A state machine with bounded state: however the text is cut, even inside a code point, the canonical text
//! is the same. Knows nothing of tokens or hashes.
//!
//! `nfkc_casefold` maps each scalar value by NFKC_Casefold (UAX #44) and composes the result (NFC); `nfkc` is NFKC
//! (UAX #15). Runs of more than 30 non-starters are treated as if U+034F stood after every thirtieth (Stream-Safe Text,
//! UAX #15 section 13, counted on the decomposed text so that canonical equivalents agree); nothing is put out for it.

use crate::spec::{Digits, Fold, Marks};
use crate::unicode::{Class, Table};

/// Longest run of non-starters that is reordered and composed as one (UAX #15, section 13).
const NON_STARTERS_MAX: usize = 30;

const BOM: char = '\u{feff}';

/// What to do with bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IllFormed {
    /// Refuse the text.
    Refuse,
    /// Put U+FFFD for each maximal ill-formed subpart, as `String::from_utf8_lossy` does.
    Replace,
}

/// The text is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ill-formed UTF-8 at byte {offset}")]
pub struct NotUtf8 {
    /// Where the ill-formed sequence begins, counted from the start of the text.
    pub offset: u64,
}

/// The options of canonicalisation with their tables.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    table: &'static Table,
    composes: bool,
    strip_marks: bool,
    zero_digits: bool,
    lower_ascii: bool,
}

impl Rules {
    pub(crate) fn new(fold: Fold, marks: Marks, digits: Digits) -> Self {
        Self {
            table: Table::of(fold),
            composes: fold != Fold::None,
            strip_marks: marks == Marks::Strip,
            zero_digits: digits == Digits::Zero,
            lower_ascii: fold == Fold::NfkcCasefold,
        }
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    #[inline(always)]
    fn ascii(&self, b: u8) -> u8 {
        let lower = u8::from(self.lower_ascii & b.is_ascii_uppercase()) << 5;
        if self.zero_digits & b.is_ascii_digit() { b'0' } else { b | lower }
    }
}

/// The white space of ASCII by the White_Space property: U+001C..U+001F are not in it.
#[inline(always)]
const fn is_ascii_space(b: u8) -> bool {
    (b == b' ') | (b.wrapping_sub(0x09) < 5)
}

/// Turns text, given in pieces, into canonical text, appended to a buffer of the caller.
///
/// ```
/// use hapax_core::normalise::Normaliser;
/// use hapax_core::{Digits, Fold, Marks};
///
/// let mut normaliser = Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep);
/// let mut canonical = String::new();
/// normaliser.push("  STRA\u{200b}SSE \n", &mut canonical);
/// normaliser.push("\u{ff11}", &mut canonical);
/// normaliser.finish(&mut canonical);
/// assert_eq!(canonical, "strasse 1");
/// ```
#[derive(Clone)]
pub struct Normaliser {
    rules: Rules,
    /// Last starter, not yet put out: what follows may compose with it.
    starter: Option<char>,
    /// The starter stands for its whole decomposition, which is taken apart only if something may combine with it.
    whole: bool,
    /// Non-starters since the last starter or cut, in the order given.
    marks: [(u8, char); NON_STARTERS_MAX],
    marks_len: usize,
    /// Nothing but a BOM was given yet.
    at_start: bool,
    /// Something was put out.
    started: bool,
    space_pending: bool,
    /// Beginning of a code point whose end has not been given.
    partial: [u8; 4],
    partial_len: usize,
    bytes: u64,
}

impl Normaliser {
    /// Ready for the first piece of a text.
    pub fn new(fold: Fold, marks: Marks, digits: Digits) -> Self {
        Self::with_rules(Rules::new(fold, marks, digits))
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
            partial: [0; 4],
            partial_len: 0,
            bytes: 0,
        }
    }

    /// Ready for another text.
    pub(crate) fn begin(&mut self, rules: Rules) {
        *self = Self::with_rules(rules);
    }

    /// Takes the next piece, cut anywhere. After an error the text is lost: begin anew.
    pub fn push_bytes(&mut self, mut piece: &[u8], ill_formed: IllFormed, out: &mut String) -> Result<(), NotUtf8> {
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
                // The new byte does not go on with what was begun, and is looked at afresh.
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

    /// The end of a text given as bytes: a code point must not stop halfway.
    pub fn finish_bytes(&mut self, ill_formed: IllFormed, out: &mut String) -> Result<(), NotUtf8> {
        if self.partial_len > 0 {
            let offset = self.bytes - self.partial_len as u64;
            self.partial_len = 0;
            self.replace(ill_formed, offset, out)?;
        }
        self.finish(out);
        Ok(())
    }

    fn replace(&mut self, ill_formed: IllFormed, offset: u64, out: &mut String) -> Result<(), NotUtf8> {
        match ill_formed {
            IllFormed::Refuse => Err(NotUtf8 { offset }),
            IllFormed::Replace => {
                self.push("\u{fffd}", out);
                Ok(())
            }
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, mut piece: &str, out: &mut String) {
        if self.at_start && !piece.is_empty() {
            self.at_start = false;
            piece = piece.strip_prefix(BOM).unwrap_or(piece);
        }
        while !piece.is_empty() {
            let (run, rest) = piece.split_at(ascii_len(piece.as_bytes()));
            self.push_ascii(run, out);
            let mut chars = rest.chars();
            // Most text that is not ASCII stays so for a while; a lone space is no reason to change over.
            while let Some(c) = chars.clone().next() {
                if c.is_ascii_graphic() {
                    break;
                }
                chars.next();
                self.push_char(c, out);
            }
            piece = chars.as_str();
        }
    }

    /// The end of the text. The normaliser is then ready for another one.
    pub fn finish(&mut self, out: &mut String) {
        self.settle(out);
        self.begin(self.rules);
    }

    /// ASCII folds bytewise and never composes with what stands before it; only the last byte may take marks.
    fn push_ascii(&mut self, run: &str, out: &mut String) {
        let bytes = run.as_bytes();
        let Some(&last) = bytes.last() else { return };
        self.settle(out);
        let takes_marks = self.rules.composes && !is_ascii_space(last);
        let end = bytes.len() - usize::from(takes_marks);
        let mut at = 0;
        loop {
            let spaces = bytes[at..end].iter().take_while(|&&b| is_ascii_space(b)).count();
            if spaces > 0 {
                self.space_pending = self.started;
                at += spaces;
            }
            if at == end {
                break;
            }
            self.begin_word(out);
            let clean = clean_len(&bytes[at..end]);
            let from = out.len();
            if self.rules.zero_digits {
                out.extend(bytes[at..at + clean].iter().map(|&b| char::from(self.rules.ascii(b))));
            } else {
                out.push_str(&run[at..at + clean]);
                if self.rules.lower_ascii {
                    out[from..].make_ascii_lowercase();
                }
            }
            at += clean;
        }
        if takes_marks {
            self.starter = Some(char::from(self.rules.ascii(last)));
        }
    }

    #[inline]
    fn push_char(&mut self, c: char, out: &mut String) {
        let table = self.rules.table;
        let Some(mapping) = table.mapping(table.get(c)) else { return self.push_mapped(c, out) };
        // Stripping and zeroing look at the parts.
        if let Some(whole) = mapping.whole
            && !self.rules.strip_marks
            && !self.rules.zero_digits
        {
            self.compose_marks();
            self.put_out(out);
            self.starter = Some(whole);
            self.whole = true;
        } else {
            table.mapped(mapping).iter().for_each(|&m| self.push_mapped(m, out));
        }
    }

    /// Takes one scalar value of the mapped and decomposed stream. Hangul syllables come composed: that is equivalent,
    /// because a syllable takes in nothing before it, and a trailing consonant after it composes all the same.
    #[inline]
    fn push_mapped(&mut self, mut c: char, out: &mut String) {
        let entry = self.rules.table.get(c);
        if self.rules.strip_marks && entry.class() == Class::Mark {
            return;
        }
        if entry.class() == Class::Space {
            // Nothing composes with white space, so it need not be held.
            self.settle(out);
            self.space_pending = self.started;
            return;
        }
        if self.rules.zero_digits && entry.is_digit() {
            c = '0';
        }
        if !self.rules.composes {
            self.begin_word(out);
            out.push(c);
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
            && let Some(composite) = self.rules.table.compose(starter, c)
        {
            self.starter = Some(composite);
            return;
        }
        self.put_out(out);
        self.starter = Some(c);
    }

    /// What follows may combine with a part of the starter.
    #[inline]
    fn take_apart(&mut self, out: &mut String) {
        if self.whole
            && let Some(whole) = self.starter.take()
        {
            self.whole = false;
            let table = self.rules.table;
            match table.mapping(table.get(whole)) {
                Some(mapping) => table.mapped(mapping).iter().for_each(|&m| self.push_mapped(m, out)),
                None => self.starter = Some(whole),
            }
        }
    }

    /// Composes and puts out what is pending; what comes next composes with nothing before it.
    fn settle(&mut self, out: &mut String) {
        self.compose_marks();
        self.put_out(out);
        self.starter = None;
    }

    #[inline]
    fn put_out(&mut self, out: &mut String) {
        if let Some(starter) = self.starter {
            self.begin_word(out);
            out.push(starter);
        }
        if self.marks_len > 0 {
            self.begin_word(out);
            out.extend(self.marks[..self.marks_len].iter().map(|&(_, mark)| mark));
            self.marks_len = 0;
        }
        self.whole = false;
    }

    /// Something that is not white space comes next.
    #[inline]
    fn begin_word(&mut self, out: &mut String) {
        if self.space_pending {
            out.push(' ');
            self.space_pending = false;
        }
        self.started = true;
    }

    /// Canonical ordering, then composition with the starter (UAX #15, D117); marks that did not compose are left.
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
            match self.rules.table.compose(starter, mark) {
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

/// How many bytes are ASCII at the beginning.
pub(crate) fn ascii_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = BLOCK * bytes.chunks_exact(BLOCK).take_while(|block| block.is_ascii()).count();
    blocks + bytes[blocks..].iter().take_while(|b| b.is_ascii()).count()
}

/// How many bytes of ASCII at the beginning can be put out as they stand: up to white space that is not one space
/// between two other characters.
fn clean_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let mut at = 0;
    // No early exit inside a block, so that it vectorises.
    while let Some(block) = bytes.get(at..at + BLOCK + 1) {
        let dirty = block.iter().zip(&block[1..]).fold(false, |dirty, (&b, &next)| {
            dirty | (b.wrapping_sub(0x09) < 5) | ((b == b' ') & is_ascii_space(next))
        });
        if dirty {
            break;
        }
        at += BLOCK;
    }
    let is_clean = |at: usize| {
        !is_ascii_space(bytes[at]) || bytes[at] == b' ' && bytes.get(at + 1).is_some_and(|&next| !is_ascii_space(next))
    };
    while at < bytes.len() && is_clean(at) {
        at += 1;
    }
    at
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
                    let mut out = String::new();
                    let mut normaliser = Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep);
                    normaliser.push(&text, &mut out);
                    normaliser.finish(&mut out);
                    assert_eq!(out, plain(&text.to_ascii_lowercase()), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn the_ascii_beginning_is_measured_to_the_byte() {
        for len in 0..100 {
            let mut bytes = vec![b'a'; len];
            assert_eq!(ascii_len(&bytes), len);
            bytes.extend("é and more that is long enough for another block of ASCII".bytes());
            assert_eq!(ascii_len(&bytes), len);
        }
    }
}
