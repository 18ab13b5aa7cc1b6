//! Canonical text -> tokens. A token begins with a letter or a number and takes the marks, letters and numbers that
//! follow; in scripts written without spaces each letter or number with its marks is a token. Knows nothing of hashes:
//! it hands out bytes. Tokens that span two pieces are held in a buffer of at most [`TOKEN_BYTES_MAX`] bytes.

use crate::normalise::ascii_len;
use crate::unicode::{Class, Table};

/// A longer token is cut at the last character boundary not beyond this, and the rest goes on as a new token.
pub const TOKEN_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    No,
    /// Takes marks, letters and numbers.
    Word,
    /// One letter of an unspaced script: takes marks.
    Single,
}

/// Cuts canonical text, given in pieces, into tokens.
pub(crate) struct Tokeniser {
    table: &'static Table,
    running: Running,
    /// The part of the running token that earlier pieces held.
    held: Vec<u8>,
}

impl Tokeniser {
    pub(crate) fn new(table: &'static Table) -> Self {
        Self { table, running: Running::No, held: Vec::with_capacity(TOKEN_BYTES_MAX) }
    }

    /// Ready for another text.
    pub(crate) fn begin(&mut self, table: &'static Table) {
        self.table = table;
        self.running = Running::No;
        self.held.clear();
    }

    /// Gives each token that ends in this piece to `token`.
    #[inline]
    pub(crate) fn push(&mut self, piece: &str, mut token: impl FnMut(&[u8])) {
        let bytes = piece.as_bytes();
        let (mut at, mut start) = (0, 0);
        while at < bytes.len() {
            let ascii_end = at + ascii_len(&bytes[at..]);
            while at < ascii_end {
                let block = &bytes[at..ascii_end.min(at + BLOCK)];
                if self.running != Running::No && self.held.len() + (at - start) + BLOCK > TOKEN_BYTES_MAX {
                    // The token may have to be cut: look closely.
                    for &b in block {
                        let class = if b.is_ascii_alphanumeric() { Class::Letter } else { Class::Other };
                        self.step(bytes, &mut start, at, 1, class, false, &mut token);
                        at += 1;
                    }
                    continue;
                }
                if self.running == Running::Single {
                    self.end(&bytes[start..at], &mut token); // no mark is ASCII
                    self.running = Running::No;
                }
                let words = word_mask(block);
                let before = words << 1 | u64::from(self.running == Running::Word);
                let mut changes = (words ^ before) & (u64::MAX >> (BLOCK - block.len()));
                while changes != 0 {
                    let change = at + changes.trailing_zeros() as usize;
                    changes &= changes - 1;
                    if self.running == Running::Word {
                        self.end(&bytes[start..change], &mut token);
                        self.running = Running::No;
                    } else {
                        start = change;
                        self.running = Running::Word;
                    }
                }
                at += block.len();
            }
            for c in piece[at..].chars() {
                if c.is_ascii() {
                    break;
                }
                let entry = self.table.get(c);
                self.step(bytes, &mut start, at, c.len_utf8(), entry.class(), entry.is_unspaced(), &mut token);
                at += c.len_utf8();
            }
        }
        if self.running != Running::No {
            self.held.extend_from_slice(&bytes[start..]);
        }
    }

    /// Takes one character of `len` bytes at `at`; the running token began at `start`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn step(
        &mut self,
        bytes: &[u8],
        start: &mut usize,
        at: usize,
        len: usize,
        class: Class,
        unspaced: bool,
        token: &mut impl FnMut(&[u8]),
    ) {
        let begins = matches!(class, Class::Letter | Class::Number);
        let goes_on = match self.running {
            Running::No => false,
            Running::Word => class == Class::Mark || begins && !unspaced,
            Running::Single => class == Class::Mark,
        };
        if goes_on {
            if self.held.len() + (at - *start) + len > TOKEN_BYTES_MAX {
                self.end(&bytes[*start..at], token);
                *start = at;
            }
            return;
        }
        if self.running != Running::No {
            self.end(&bytes[*start..at], token);
        }
        *start = at;
        self.running = match (begins, unspaced) {
            (false, _) => Running::No,
            (true, false) => Running::Word,
            (true, true) => Running::Single,
        };
    }

    /// Gives the token that the end of the text ends.
    pub(crate) fn finish(&mut self, mut token: impl FnMut(&[u8])) {
        if self.running != Running::No {
            self.end(&[], &mut token);
            self.running = Running::No;
        }
    }

    #[inline(always)]
    fn end(&mut self, tail: &[u8], token: &mut impl FnMut(&[u8])) {
        if self.held.is_empty() {
            token(tail);
        } else {
            self.held.extend_from_slice(tail);
            token(&self.held);
            self.held.clear();
        }
    }
}

/// Bytes of ASCII that are classified at a time, one bit each.
const BLOCK: usize = 64;

/// Which of at most 64 bytes of ASCII are letters or digits.
#[inline(always)]
fn word_mask(block: &[u8]) -> u64 {
    let mut mask = 0;
    let (eights, rest) = block.as_chunks::<8>();
    for (i, eight) in eights.iter().enumerate() {
        mask |= word_mask_of_eight(u64::from_le_bytes(*eight)) << (8 * i);
    }
    if !rest.is_empty() {
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        mask |= word_mask_of_eight(u64::from_le_bytes(eight)) << (8 * eights.len());
    }
    mask
}

/// The same for eight bytes in a word. Every byte is below 0x80, so no addition carries over into the next one.
#[inline(always)]
fn word_mask_of_eight(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let at_least = |bytes: u64, least: u8| bytes + ONES * u64::from(0x80 - least);
    let lower = eight | (0x20 * ONES);
    let letters = at_least(lower, b'a') & !at_least(lower, b'z' + 1);
    let digits = at_least(eight, b'0') & !at_least(eight, b'9' + 1);
    let found = ((letters | digits) & HIGH) >> 7;
    // Byte i's lowest bit comes to stand at bit 56 + i.
    found.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Fold;

    fn tokens(pieces: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut tokeniser = Tokeniser::new(Table::of(Fold::NfkcCasefold));
        let mut take = |bytes: &[u8]| found.push(std::str::from_utf8(bytes).expect("cut at characters").to_owned());
        pieces.iter().for_each(|piece| tokeniser.push(piece, &mut take));
        tokeniser.finish(&mut take);
        found
    }

    #[test]
    fn the_mask_of_a_block_is_what_the_standard_library_says() {
        let ascii: Vec<u8> = (0..128).chain((0..128).rev()).collect();
        for len in 0..=BLOCK {
            for block in ascii.windows(len.max(1)) {
                let block = &block[..len];
                let expected = block.iter().rev().fold(0, |mask, b| mask << 1 | u64::from(b.is_ascii_alphanumeric()));
                assert_eq!(word_mask(block), expected, "{block:?}");
            }
        }
    }

    #[test]
    fn words_end_where_neither_mark_letter_nor_number_follows() {
        assert_eq!(
            tokens(&["don't stop, 3.5 a_b नमस्ते x\u{301}y"]),
            ["don", "t", "stop", "3", "5", "a", "b", "नमस्ते", "x\u{301}y"]
        );
        assert_eq!(tokens(&["\u{301} ❤️☀️ - "]), [""; 0], "a mark begins no token, and a symbol is none");
    }

    #[test]
    fn unspaced_scripts_give_one_token_a_letter_with_its_marks() {
        assert_eq!(tokens(&["ภาษาไทย"]), ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]);
        assert_eq!(tokens(&["ที่นี่"]), ["ที่", "นี่"]);
        assert_eq!(tokens(&["web漢字kana"]), ["web", "漢", "字", "kana"]);
        assert_eq!(tokens(&["スーパー"]), ["ス", "ー", "パ", "ー"]);
        assert_eq!(tokens(&["ភាសា"]), ["ភា", "សា"]);
        assert_eq!(tokens(&["မြန်မာ"]), ["မြ", "န်", "မာ"]);
        assert_eq!(tokens(&["ລາວ"]), ["ລ", "າ", "ວ"]);
        assert_eq!(tokens(&["o\u{2bc}zbek"]), ["o\u{2bc}zbek"], "shared with Thai, yet no end of a word");
        assert_eq!(tokens(&["한국어 텍스트"]), ["한국어", "텍스트"]);
    }

    #[test]
    fn a_long_token_is_cut_at_a_character_and_nothing_is_dropped() {
        let long = "é".repeat(300);
        let cut = tokens(&[&format!("x{long}")]);
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [255, 256, 90]);
        assert_eq!(cut.concat(), format!("x{long}"));
        let ascii = "a".repeat(1000);
        assert_eq!(tokens(&[&ascii]).iter().map(String::len).collect::<Vec<_>>(), [256, 256, 256, 232]);
        assert_eq!(tokens(&[&"a".repeat(256)]).len(), 1);
        let zalgo = format!("字{}b", "\u{301}".repeat(200));
        let cut = tokens(&[&zalgo]);
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [255, 148, 1]);
    }

    #[test]
    fn tokens_do_not_depend_on_how_the_text_is_cut() {
        let long = "ü1x".repeat(200);
        let text = format!("one two, 三四 ภาษาไทย é\u{301}\u{302} {long} ภ{} end", "\u{e34}".repeat(120));
        let whole = tokens(&[&text]);
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(tokens(&single.iter().map(String::as_str).collect::<Vec<_>>()), whole);
        for at in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
            assert_eq!(tokens(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
    }
}
