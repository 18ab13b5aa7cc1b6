//! Canonical text -> tokens. A token begins with a letter or a number and takes the marks, letters and numbers that
//! follow. In scripts written without spaces, each letter or number with its marks is a token. Knows nothing of hashes:
//! it returns the positions of tokens. A token that spans two pieces is kept in a buffer of at most [`TOKEN_BYTES_MAX`]
//! bytes.

use crate::characters::{bytes_from, complete, ideographs, spaced_letters, three_bytes};
use crate::simd::{Block, Bytes, Scan, Simd};
use crate::unicode::{CharEntry, Class, UnicodeTable, decode};

/// A longer token is cut at the last character boundary within this length, and the rest begins a new token.
pub const TOKEN_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    No,
    /// A token that takes marks, letters and numbers.
    Word,
    /// A letter of an unspaced script, which takes marks only.
    Single,
}

/// Cuts canonical text, given in pieces, into tokens.
pub(crate) struct Tokeniser {
    table: &'static UnicodeTable,
    running: Running,
    /// The part of the running token that was in earlier pieces.
    held: Vec<u8>,
}

/// The positions of tokens in a piece, in order. The buffers are reused.
#[derive(Default)]
pub(crate) struct Spans {
    starts: BytePlaces,
    ends: BytePlaces,
}

impl Spans {
    fn begin(&mut self, bytes: usize) {
        assert!(u32::try_from(bytes).is_ok(), "pieces are short");
        self.starts.begin(bytes);
        self.ends.begin(bytes);
    }

    /// The first byte of each token.
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts.places[..self.starts.count]
    }

    /// The byte after each token.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends.places[..self.ends.count]
    }
}

#[derive(Default)]
struct BytePlaces {
    /// Longer than `count`, so that whole blocks can be written.
    places: Vec<u32>,
    count: usize,
}

impl BytePlaces {
    fn begin(&mut self, bytes: usize) {
        // At most one token begins or ends at each byte. For a block, more places may be written than bits are set,
        // which needs the room of one more block.
        if self.places.len() < bytes + 2 * BLOCK {
            self.places.resize(bytes + 2 * BLOCK, 0);
        }
        self.count = 0;
    }

    #[inline(always)]
    fn push(&mut self, place: usize) {
        self.places[self.count] = place as u32;
        self.count += 1;
    }

    /// Adds the places of the set bits, counted from `base`.
    #[inline(always)]
    fn push_bits(&mut self, base: usize, mut bits: u64) {
        // A block of running text seldom has more words than this.
        const AT_ONCE: usize = 10;
        let count = bits.count_ones() as usize;
        let mut at = self.count;
        // Writes this many places, even if fewer bits are set. In a loop over the set bits, the processor would
        // mispredict the end every time.
        while bits != 0 {
            let room: &mut [u32; AT_ONCE] = self.places[at..].first_chunk_mut().expect("there is room for a block");
            for place in room {
                *place = base as u32 + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
            at += AT_ONCE;
        }
        self.count += count;
    }
}

impl Tokeniser {
    pub(crate) fn new(table: &'static UnicodeTable) -> Self {
        Self { table, running: Running::No, held: Vec::with_capacity(2 * TOKEN_BYTES_MAX) }
    }

    /// Makes the tokeniser ready for another text.
    pub(crate) fn begin(&mut self, table: &'static UnicodeTable) {
        self.table = table;
        self.running = Running::No;
        self.held.clear();
    }

    /// Finds the tokens that end in this piece of well-formed UTF-8. The piece must be short enough for 32-bit
    /// positions. If the first token began in an earlier piece, it is passed to `carried` and is not in the spans.
    pub(crate) fn push(&mut self, simd: Simd, text: &[u8], spans: &mut Spans, carried: impl FnOnce(&[u8])) {
        spans.begin(text.len());
        let begun_before = self.running != Running::No;
        if begun_before {
            spans.starts.push(0);
        }
        simd.scan(TokenScan { tokeniser: self, text, spans });
        if begun_before && let Some(&end) = spans.ends().first() {
            self.held.extend_from_slice(&text[..end as usize]);
            carried(&self.held);
            self.held.clear();
            spans.starts.places.copy_within(1..spans.starts.count, 0);
            spans.ends.places.copy_within(1..spans.ends.count, 0);
            spans.starts.count -= 1;
            spans.ends.count -= 1;
        }
        if self.running != Running::No {
            spans.starts.count -= 1;
            let start = spans.starts.places[spans.starts.count] as usize;
            self.held.extend_from_slice(&text[start..]);
        }
    }

    /// If a token is running at the end of the text, passes it to `carried`.
    pub(crate) fn finish(&mut self, carried: impl FnOnce(&[u8])) {
        if self.running != Running::No {
            carried(&self.held);
            self.held.clear();
            self.running = Running::No;
        }
    }
}

/// The number of bytes that are examined together, one bit each.
const BLOCK: usize = size_of::<Block>();

/// A piece that the tokeniser is cutting into tokens.
struct TokenScan<'a> {
    tokeniser: &'a mut Tokeniser,
    text: &'a [u8],
    spans: &'a mut Spans,
}

impl Scan for TokenScan<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Bytes>(mut self, vector: V) {
        let mut at = 0;
        while at < self.text.len() {
            at = self.block(vector, at);
        }
    }
}

/// The classes of the bytes of a block, one bit for each byte.
struct Classes {
    /// Letters and numbers of spaced scripts.
    letters: u64,
    /// Letters and numbers of unspaced scripts.
    unspaced: u64,
    /// The first byte of each character in `unspaced`.
    unspaced_first: u64,
    marks: u64,
    /// The number of bytes of the block that belong to complete characters. The bits of later bytes have no meaning.
    len: usize,
}

#[inline(always)]
fn classes<V: Bytes>(vector: V, table: &UnicodeTable, block: &Block, mut len: usize) -> Classes {
    let (mut letters, mut beyond) = vector.words(block);
    let (mut unspaced, mut unspaced_first, mut marks) = (0, 0, 0);
    if beyond != 0 {
        unspaced_first = ideographs(vector, block) & complete(len, 3);
        unspaced = three_bytes(unspaced_first);
        let spaced = spaced_letters(vector, block) & complete(len, 2);
        letters |= spaced | spaced << 1;
        beyond &= !(unspaced | spaced | spaced << 1);
    }
    while beyond != 0 {
        let first = beyond.trailing_zeros() as usize;
        let (c, bytes) = decode(&block[first..]);
        if first + bytes > len {
            len = first;
            break;
        }
        let bits = bytes_from(first, bytes);
        beyond &= !bits;
        let entry = table.of_code_point(c);
        match entry.class() {
            Class::Letter | Class::Number if entry.is_unspaced() => {
                unspaced |= bits;
                unspaced_first |= 1 << first;
            }
            Class::Letter | Class::Number => letters |= bits,
            Class::Mark => marks |= bits,
            Class::Other | Class::Space => {}
        }
    }
    Classes { letters, unspaced, unspaced_first, marks, len }
}

impl TokenScan<'_> {
    /// Takes the characters that are wholly within the next 64 bytes. Returns the position after them.
    #[inline(always)]
    fn block<V: Bytes>(&mut self, vector: V, at: usize) -> usize {
        let rest = &self.text[at..];
        let mut padded = [0; BLOCK];
        let block = match rest.first_chunk() {
            Some(block) => block,
            None => {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let Classes { letters, unspaced, unspaced_first, marks, len } =
            classes(vector, self.tokeniser.table, block, rest.len().min(BLOCK));
        // Characters are taken one at a time in two cases: there are marks, which belong to a token only after a letter
        // or number; or a token is so long that it may have to be cut.
        let running = self.tokeniser.running;
        if marks != 0 || running != Running::No && self.running_bytes(at) + BLOCK > TOKEN_BYTES_MAX {
            self.characters(at, at + len);
            return at + len;
        }
        let there = u64::MAX >> (BLOCK - len);
        let tokens = (letters | unspaced) & there;
        let before = tokens << 1 | u64::from(running != Running::No);
        let after_unspaced = unspaced << 1 | u64::from(running == Running::Single);
        let starts = tokens & !before | unspaced_first & there | letters & after_unspaced & there;
        let ends = before & (!tokens | starts) & there;
        self.spans.starts.push_bits(at, starts);
        self.spans.ends.push_bits(at, ends);
        let last = 1 << (len - 1);
        self.tokeniser.running = match (tokens & last != 0, unspaced & last != 0) {
            (false, _) => Running::No,
            (true, false) => Running::Word,
            (true, true) => Running::Single,
        };
        at + len
    }

    /// Returns the length of the running token, which has not ended at `at`.
    #[inline(always)]
    fn running_bytes(&self, at: usize) -> usize {
        let starts = self.spans.starts();
        let in_piece = at - starts[starts.len() - 1] as usize;
        // No token has ended in this piece yet: the bytes of earlier pieces belong to this token.
        in_piece + if self.spans.ends.count == 0 { self.tokeniser.held.len() } else { 0 }
    }

    fn characters(&mut self, mut at: usize, end: usize) {
        while at < end {
            let byte = self.text[at];
            let (class, unspaced, bytes) = if byte.is_ascii() {
                (if byte.is_ascii_alphanumeric() { Class::Letter } else { Class::Other }, false, 1)
            } else {
                let (c, bytes) = decode(&self.text[at..]);
                let entry: CharEntry = self.tokeniser.table.of_code_point(c);
                (entry.class(), entry.is_unspaced(), bytes)
            };
            self.character(at, bytes, class, unspaced);
            at += bytes;
        }
    }

    fn character(&mut self, at: usize, bytes: usize, class: Class, unspaced: bool) {
        let begins = matches!(class, Class::Letter | Class::Number);
        let goes_on = match self.tokeniser.running {
            Running::No => false,
            Running::Word => class == Class::Mark || begins && !unspaced,
            Running::Single => class == Class::Mark,
        };
        if goes_on {
            if self.running_bytes(at) + bytes > TOKEN_BYTES_MAX {
                self.spans.ends.push(at);
                self.spans.starts.push(at);
            }
            return;
        }
        if self.tokeniser.running != Running::No {
            self.spans.ends.push(at);
        }
        if begins {
            self.spans.starts.push(at);
        }
        self.tokeniser.running = match (begins, unspaced) {
            (false, _) => Running::No,
            (true, false) => Running::Word,
            (true, true) => Running::Single,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix64;
    use crate::spec::Fold;

    fn tokens(pieces: &[&str]) -> Vec<String> {
        let of = |simd| tokens_with(simd, pieces);
        let tokens = of(Simd::PORTABLE);
        Simd::available().for_each(|simd| assert_eq!(of(simd), tokens, "{simd:?} {pieces:?}"));
        tokens
    }

    fn tokens_with(simd: Simd, pieces: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut take = |bytes: &[u8]| found.push(std::str::from_utf8(bytes).expect("cut at characters").to_owned());
        let (mut tokeniser, mut spans) = (Tokeniser::new(UnicodeTable::of(Fold::NfkcCasefold)), Spans::default());
        for piece in pieces {
            tokeniser.push(simd, piece.as_bytes(), &mut spans, &mut take);
            assert_eq!(spans.starts().len(), spans.ends().len());
            for (start, end) in spans.starts().iter().zip(spans.ends()) {
                take(&piece.as_bytes()[*start as usize..*end as usize]);
            }
        }
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

    /// Cuts a text into tokens by the definition, one character at a time (`docs/spec.md`, section 2).
    fn definition(text: &str) -> Vec<String> {
        let table = UnicodeTable::of(Fold::NfkcCasefold);
        let (mut found, mut token, mut alone) = (Vec::new(), String::new(), false);
        for c in text.chars() {
            let entry = table.get(c);
            let begins = matches!(entry.class(), Class::Letter | Class::Number);
            let goes_on = entry.class() == Class::Mark || begins && !entry.is_unspaced() && !alone;
            if !token.is_empty() && goes_on {
                if token.len() + c.len_utf8() > TOKEN_BYTES_MAX {
                    found.push(std::mem::take(&mut token));
                }
                token.push(c);
                continue;
            }
            if !token.is_empty() {
                found.push(std::mem::take(&mut token));
            }
            if begins {
                token.push(c);
                alone = entry.is_unspaced();
            }
        }
        found.extend(Some(token).filter(|token| !token.is_empty()));
        found
    }

    /// Tests runs of characters that are classified by their bytes alone, of other characters, and of both, at every
    /// place of a block.
    #[test]
    fn tokens_of_every_script_are_those_of_the_definition() {
        const POOLS: [&str; 9] = [
            "abc xyz 019 ,.-'_",
            "éàÿßçœÀĀſƀɏɐɿ×÷",
            "ж\u{45f}ѣ\u{47f}\u{480}\u{482}\u{483}ҋԯαω\u{37e}",
            "一丁龥鿿㐀䶿䷀侀倀",
            "かガー。「」・々〇〻",
            "한국어글각ᄀ",
            "ไทยที่မြန်မာខ្មែរ",
            "\u{301}\u{3099}\u{fe0f}–—“”…",
            "𐀀𠀀𝐀🎉\u{e0100}",
        ];
        let mut generator = SplitMix64::new(31);
        for round in 0..4_000 {
            let mut text = String::new();
            while text.len() < round % 400 {
                let pool: Vec<char> = POOLS[generator.next_u64() as usize % POOLS.len()].chars().collect();
                for _ in 0..=generator.next_u64() % (1 << (round % 6)) {
                    text.push(pool[generator.next_u64() as usize % pool.len()]);
                }
            }
            let expected = definition(&text);
            assert_eq!(tokens(&[&text]), expected, "round {round} of seed 31: {text:?}");
            let (start, end) =
                text.split_at(text.floor_char_boundary(generator.next_u64() as usize % (text.len() + 1)));
            assert_eq!(tokens(&[start, end]), expected, "round {round} of seed 31: {start:?} {end:?}");
        }
    }
}
