//! The options of canonicalisation with their tables, and how single characters fold by them.

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
    /// Marks and digits stay, so that characters need not be taken apart to see whether they have any.
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

    /// What a byte of ASCII folds to; white space to a space. Other bytes stay as they are.
    #[inline(always)]
    fn ascii(&self, b: u8) -> u8 {
        let lower = u8::from(self.lower_ascii & b.is_ascii_uppercase()) << 5;
        let zeroed = if self.zero_digits & b.is_ascii_digit() { b'0' } else { b | lower };
        if is_ascii_space(b) { b' ' } else { zeroed }
    }

    /// The same for a block; compilers vectorise it.
    #[inline(always)]
    pub(super) fn ascii_block(&self, block: &Block, folded: &mut Block) {
        for (folded, b) in folded.iter_mut().zip(block) {
            *folded = self.ascii(*b);
        }
    }

    /// Whether a character that is not ASCII folds plainly to itself.
    #[inline(always)]
    pub(super) fn is_itself(&self, c: u32) -> bool {
        self.folds_plainly & self.table.of_code_point(c).is_itself()
    }

    /// How a character that is not ASCII folds, if plainly.
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

/// A character that nothing before it composes with, and that is not made of several.
#[derive(Clone, Copy)]
pub(super) enum Plain {
    Itself,
    Other(char),
}

/// The white space of ASCII by the White_Space property: U+001C..U+001F are not in it.
#[inline(always)]
const fn is_ascii_space(b: u8) -> bool {
    (b == b' ') | (b.wrapping_sub(0x09) < 5)
}
