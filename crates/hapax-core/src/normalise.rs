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
    b == b' ' || matches!(b, 0x09..=0x0d)
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
            let ascii = piece.bytes().position(|b| !b.is_ascii()).unwrap_or(piece.len());
            let (run, rest) = piece.split_at(ascii);
            self.push_ascii(run.as_bytes(), out);
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
        *self = Self::with_rules(self.rules);
    }

    /// ASCII folds bytewise and never composes with what stands before it; only the last byte may take marks.
    fn push_ascii(&mut self, run: &[u8], out: &mut String) {
        let Some((&last, body)) = run.split_last() else { return };
        self.settle(out);
        let body = if self.rules.composes { body } else { run };
        let mut words = body.split(|&b| is_ascii_space(b));
        // Between two pieces of the split stands white space.
        let mut word = words.next().unwrap_or_default();
        loop {
            if !word.is_empty() {
                if self.space_pending {
                    out.push(' ');
                    self.space_pending = false;
                }
                self.started = true;
                let rules = self.rules;
                out.extend(word.iter().map(|&b| char::from(rules.ascii(b))));
            }
            match words.next() {
                Some(next) => {
                    self.space_pending = self.started;
                    word = next;
                }
                None => break,
            }
        }
        if self.rules.composes {
            self.starter = Some(char::from(self.rules.ascii(last)));
        }
    }

    #[inline]
    fn push_char(&mut self, c: char, out: &mut String) {
        let table = self.rules.table;
        match table.mapping(table.get(c)) {
            None => self.push_mapped(c, out),
            Some(mapped) => mapped.iter().for_each(|&m| self.push_mapped(m, out)),
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
        if self.rules.zero_digits && entry.is_digit() {
            c = '0';
        }
        if !self.rules.composes {
            self.emit(c, out);
            return;
        }
        let ccc = entry.combining_class();
        if ccc != 0 {
            if self.marks_len == NON_STARTERS_MAX {
                self.settle(out);
            }
            self.marks[self.marks_len] = (ccc, c);
            self.marks_len += 1;
            return;
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

    /// Composes and puts out what is pending; what comes next composes with nothing before it.
    fn settle(&mut self, out: &mut String) {
        self.compose_marks();
        self.put_out(out);
        self.starter = None;
    }

    fn put_out(&mut self, out: &mut String) {
        if let Some(starter) = self.starter {
            self.emit(starter, out);
        }
        for i in 0..self.marks_len {
            self.emit(self.marks[i].1, out);
        }
        self.marks_len = 0;
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

    #[inline]
    fn emit(&mut self, c: char, out: &mut String) {
        let space =
            if c.is_ascii() { is_ascii_space(c as u8) } else { self.rules.table.get(c).class() == Class::Space };
        if space {
            self.space_pending = self.started;
            return;
        }
        if self.space_pending {
            out.push(' ');
            self.space_pending = false;
        }
        self.started = true;
        out.push(c);
    }
}
