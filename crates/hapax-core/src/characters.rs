//! 64 bytes of UTF-8 -> masks of common characters outside ASCII, whose properties are known without a table. Masks have
//! one bit for each byte, as in `simd`. A test below compares what is claimed here with the table.

use crate::simd::{Block, Bytes};

/// Returns the first bytes of the characters U+4E00 to U+9FFF: letters of an unspaced script that fold to themselves.
/// The last of them may end after the block.
#[inline(always)]
pub(crate) fn ideographs<V: Bytes>(vector: V, block: &Block) -> u64 {
    // U+5000 to U+9FFF, and U+4E00 to U+4FFF, which share their first byte with others.
    let most = vector.in_range(block, 0xe5, 5);
    most | vector.in_range(block, 0xe4, 1) & vector.in_range(block, 0xb8, 8) >> 1
}

/// Returns a mask of all places at which a character of so many bytes can begin and end within the first `len` bytes.
#[inline(always)]
pub(crate) fn complete(len: usize, bytes: usize) -> u64 {
    (1u64 << (len + 1).saturating_sub(bytes)).wrapping_sub(1)
}

/// Returns a mask of all bytes of the characters of three bytes that begin at the set bits.
#[inline(always)]
pub(crate) fn three_bytes(first: u64) -> u64 {
    first | first << 1 | first << 2
}

/// Returns a mask of so many bytes, at most four, from `first` on.
#[inline(always)]
pub(crate) fn bytes_from(first: usize, bytes: usize) -> u64 {
    ((1 << bytes) - 1) << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Scan, Simd};
    use crate::spec::Fold;
    use crate::unicode::{Class, UnicodeTable};

    struct Ideographs<'a>(&'a Block);

    impl Scan for Ideographs<'_> {
        type Output = u64;

        #[inline(always)]
        fn run<V: Bytes>(self, vector: V) -> u64 {
            ideographs(vector, self.0)
        }
    }

    #[test]
    fn ideographs_are_the_characters_that_the_table_says_and_are_found_at_any_place() {
        for c in (0x80..=0xd7ff).chain(0xe000..=0x10_ffff).filter_map(char::from_u32) {
            let is = ('\u{4e00}'..='\u{9fff}').contains(&c);
            if is {
                for fold in [Fold::NfkcCasefold, Fold::Nfkc, Fold::None] {
                    let entry = UnicodeTable::of(fold).get(c);
                    assert!(entry.class() == Class::Letter && entry.is_unspaced() && entry.is_itself(), "{c}");
                }
            }
            let at = c as usize % 64;
            let mut text = [0; 68];
            let bytes = c.encode_utf8(&mut text[at..]).len();
            let block: &Block = text.first_chunk().expect("it is longer");
            let found = ideographs_of(block);
            assert_eq!(found & complete(64, 3), u64::from(is && at + bytes <= 64) << at, "{c:?} at {at}");
        }
    }

    fn ideographs_of(block: &Block) -> u64 {
        let found = Simd::PORTABLE.scan(Ideographs(block));
        Simd::available().for_each(|simd| assert_eq!(simd.scan(Ideographs(block)), found, "{simd:?} {block:x?}"));
        found
    }

    #[test]
    fn masks_of_characters() {
        assert_eq!([complete(64, 3), complete(5, 3), complete(2, 3), complete(1, 2)], [u64::MAX >> 2, 0b111, 0, 0]);
        assert_eq!([three_bytes(0b1001), three_bytes(1 << 62)], [0b11_1111, 0b11 << 62]);
        assert_eq!([bytes_from(0, 1), bytes_from(3, 4), bytes_from(63, 2)], [1, 0b111_1000, 1 << 63]);
    }
}
