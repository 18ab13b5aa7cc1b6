//! The options of canonicalisation with their tables, and the folding of a single character.

use crate::simd::{Block, Simd};
use crate::spec::{Digits, Fold, Marks};
use crate::unicode::UnicodeTable;

/// The options of canonicalisation with their tables.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    table: &'static UnicodeTable,
    composes: bool,
    strip_marks: bool,
    zero_digits: bool,
    lower_ascii: bool,
    /// Whether marks and digits are kept. If so, no character has to be decomposed to find them.
    folds_plainly: bool,
    simd: Simd,
}

impl Rules {
    pub(crate) fn new(fold: Fold, marks: Marks, digits: Digits, simd: Simd) -> Self {
        let folds_plainly = fold != Fold::None && marks == Marks::Keep && digits == Digits::Keep;
        Self {
            table: UnicodeTable::of(fold),
            composes: fold != Fold::None,
            strip_marks: marks == Marks::Strip,
            zero_digits: digits == Digits::Zero,
            lower_ascii: fold == Fold::NfkcCasefold,
            folds_plainly,
            simd,
        }
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &'static UnicodeTable {
        self.table
    }

    #[inline(always)]
    pub(super) fn simd(&self) -> Simd {
        self.simd
    }

    /// Whether characters are composed again after decomposing.
    #[inline(always)]
    pub(super) fn composes(&self) -> bool {
        self.composes
    }

    #[inline(always)]
    pub(super) fn strips_marks(&self) -> bool {
        self.strip_marks
    }

    #[inline(always)]
    pub(super) fn zeroes_digits(&self) -> bool {
        self.zero_digits
    }

    /// Returns the folding of an ASCII byte; white space becomes a space. Other bytes stay as they are.
    #[inline(always)]
    fn ascii(&self, b: u8) -> u8 {
        let lower = u8::from(self.lower_ascii & b.is_ascii_uppercase()) << 5;
        let zeroed = if self.zero_digits & b.is_ascii_digit() { b'0' } else { b | lower };
        if is_ascii_space(b) { b' ' } else { zeroed }
    }

    /// Folds each byte of a block as [`Self::ascii`] does. Compilers vectorise this loop.
    #[inline(always)]
    pub(super) fn ascii_block(&self, block: &Block, folded: &mut Block) {
        for (folded, b) in folded.iter_mut().zip(block) {
            *folded = self.ascii(*b);
        }
    }

    /// Whether there are characters outside ASCII that fold plainly.
    #[inline(always)]
    pub(super) fn folds_plainly(&self) -> bool {
        self.folds_plainly
    }

    /// Whether a character outside ASCII folds plainly to itself.
    #[inline(always)]
    pub(super) fn is_itself(&self, c: u32) -> bool {
        self.folds_plainly & self.table.of_code_point(c).is_itself()
    }

    /// Returns the folding of a character outside ASCII, if it folds plainly.
    #[inline(always)]
    pub(super) fn plain(&self, c: u32) -> Option<Plain> {
        let entry = self.table.of_code_point(c);
        if !self.folds_plainly {
            None
        } else if entry.is_itself() {
            Some(Plain::Itself)
        } else if entry.is_one_other() {
            self.table.mapping(entry).and_then(|mapping| mapping.whole).map(Plain::Other)
        } else {
            None
        }
    }
}

/// The result of folding a character, if this result is a single character that never composes with the one before it.
#[derive(Clone, Copy)]
pub(super) enum Plain {
    Itself,
    Other(char),
}

/// Whether the byte is ASCII white space by the White_Space property, which U+001C..U+001F do not have.
#[inline(always)]
const fn is_ascii_space(b: u8) -> bool {
    (b == b' ') | (b.wrapping_sub(0x09) < 5)
}
