//! Canonical text -> tokens. A token begins with a letter or a number and takes the marks, letters and numbers that
//! follow; in scripts written without spaces each letter or number with its marks is a token. Knows nothing of hashes:
//! it hands out bytes. Tokens that span two pieces are held in a buffer of at most [`TOKEN_BYTES_MAX`] bytes.

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
    pub(crate) fn new(table: &'static Table, mut held: Vec<u8>) -> Self {
        held.clear();
        Self { table, running: Running::No, held }
    }

    /// Gives each token that ends in this piece to `token`.
    #[inline]
    pub(crate) fn push(&mut self, piece: &str, mut token: impl FnMut(&[u8])) {
        let bytes = piece.as_bytes();
        let (mut at, mut start) = (0, 0);
        while at < bytes.len() {
            let limit = start + TOKEN_BYTES_MAX - self.held.len();
            if self.running == Running::No {
                while at < bytes.len() && bytes[at].is_ascii() && !bytes[at].is_ascii_alphanumeric() {
                    at += 1;
                }
                start = at;
            } else if self.running == Running::Word {
                let until = limit.min(bytes.len());
                while at < until && bytes[at].is_ascii_alphanumeric() {
                    at += 1;
                }
            }
            if at == bytes.len() {
                break;
            }
            let (class, unspaced, len) = if bytes[at].is_ascii() {
                let class = if bytes[at].is_ascii_alphanumeric() { Class::Letter } else { Class::Other };
                (class, false, 1)
            } else {
                let c = piece[at..].chars().next().expect("not at the end");
                let entry = self.table.get(c);
                (entry.class(), entry.is_unspaced(), c.len_utf8())
            };
            let begins = matches!(class, Class::Letter | Class::Number);
            let goes_on = match self.running {
                Running::No => false,
                Running::Word => class == Class::Mark || begins && !unspaced,
                Running::Single => class == Class::Mark,
            };
            if goes_on {
                if at + len > limit {
                    self.end(&bytes[start..at], &mut token);
                    start = at;
                }
            } else {
                if self.running != Running::No {
                    self.end(&bytes[start..at], &mut token);
                }
                start = at;
                self.running = match (begins, unspaced) {
                    (false, _) => Running::No,
                    (true, false) => Running::Word,
                    (true, true) => Running::Single,
                };
            }
            at += len;
        }
        if self.running != Running::No {
            self.held.extend_from_slice(&bytes[start..]);
        }
    }

    /// Gives the token that the end of the text ends.
    pub(crate) fn finish(&mut self, mut token: impl FnMut(&[u8])) {
        if self.running != Running::No {
            self.end(&[], &mut token);
            self.running = Running::No;
        }
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.held
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Fold;

    fn tokens(pieces: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut tokeniser = Tokeniser::new(Table::of(Fold::NfkcCasefold), Vec::new());
        let mut take = |bytes: &[u8]| found.push(std::str::from_utf8(bytes).expect("cut at characters").to_owned());
        pieces.iter().for_each(|piece| tokeniser.push(piece, &mut take));
        tokeniser.finish(&mut take);
        found
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
