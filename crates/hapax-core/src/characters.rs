//! 64 bytes of UTF-8 -> masks of common characters outside ASCII, whose properties are known without a table. Masks
//! have one bit for each byte, as in `simd`. A test below compares the masks with the table.

use crate::simd::{Block, Bytes};

/// Returns the first bytes of the characters U+4E00 to U+9FFF: letters of an unspaced script that fold to themselves.
/// The last character may end after the block.
#[inline(always)]
pub(crate) fn ideographs<V: Bytes>(vector: V, block: &Block) -> u64 {
    // First U+5000 to U+9FFF, then U+4E00 to U+4FFF, whose first byte also begins other characters.
    let most = vector.in_range(block, 0xe5, 5);
    most | vector.in_range(block, 0xe4, 1) & vector.in_range(block, 0xb8, 8) >> 1
}

/// Returns the first bytes of the characters U+00C0 to U+027F and U+0400 to U+047F, except U+00D7 and U+00F7: letters
/// of Latin and Cyrillic. The last character may end after the block.
#[inline(always)]
pub(crate) fn spaced_letters<V: Bytes>(vector: V, block: &Block) -> u64 {
    let all = vector.in_range(block, 0xc3, 7) | vector.in_range(block, 0xd0, 2);
    if all == 0 {
        return 0;
    }
    let signs = vector.in_range(block, 0x97, 1) | vector.in_range(block, 0xb7, 1);
    all & !(vector.in_range(block, 0xc3, 1) & signs >> 1)
}

/// Returns a mask of the places at which a character of `bytes` bytes can begin if it ends within the first `len`
/// bytes.
#[inline(always)]
pub(crate) fn complete(len: usize, bytes: usize) -> u64 {
    (1u64 << (len + 1).saturating_sub(bytes)).wrapping_sub(1)
}

/// Returns a mask of all bytes of three-byte characters. Each set bit of `first` marks the first byte of such a
/// character.
#[inline(always)]
pub(crate) fn three_bytes(first: u64) -> u64 {
    first | first << 1 | first << 2
}

/// Returns a mask of `bytes` bytes, at most four, from `first` on.
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

    struct Found<'a>(&'a Block);

    impl Scan for Found<'_> {
        type Output = [u64; 2];

        #[inline(always)]
        fn run<V: Bytes>(self, vector: V) -> [u64; 2] {
            [ideographs(vector, self.0), spaced_letters(vector, self.0)]
        }
    }

    #[test]
    fn characters_are_what_the_table_says_and_are_found_at_any_place() {
        for c in (0x80..=0xd7ff).chain(0xe000..=0x10_ffff).filter_map(char::from_u32) {
            let is_ideograph = ('\u{4e00}'..='\u{9fff}').contains(&c);
            let is_letter = matches!(c, '\u{c0}'..='\u{27f}' | '\u{400}'..='\u{47f}') && c != '×' && c != '÷';
            for fold in [Fold::NfkcCasefold, Fold::Nfkc, Fold::None] {
                let entry = UnicodeTable::of(fold).get(c);
                if is_ideograph || is_letter {
                    assert!(entry.class() == Class::Letter && entry.is_unspaced() == is_ideograph, "{c}");
                }
                assert!(!is_ideograph || entry.is_itself(), "{c}");
            }
            for at in [0, 30, 61, 62, 63] {
                let mut text = [0; 68];
                let bytes = c.encode_utf8(&mut text[at..]).len();
                let found = found_in(text.first_chunk().expect("it is longer"));
                let [ideographs, letters] = [found[0] & complete(64, 3), found[1] & complete(64, 2)];
                assert_eq!(ideographs, u64::from(is_ideograph && at + bytes <= 64) << at, "{c:?} at {at}");
                assert_eq!(letters, u64::from(is_letter && at + bytes <= 64) << at, "{c:?} at {at}");
            }
        }
    }

    fn found_in(block: &Block) -> [u64; 2] {
        let found = Simd::PORTABLE.scan(Found(block));
        Simd::available().for_each(|simd| assert_eq!(simd.scan(Found(block)), found, "{simd:?} {block:x?}"));
        found
    }

    #[test]
    fn masks_of_characters() {
        assert_eq!([complete(64, 3), complete(5, 3), complete(2, 3), complete(1, 2)], [u64::MAX >> 2, 0b111, 0, 0]);
        assert_eq!([three_bytes(0b1001), three_bytes(1 << 62)], [0b11_1111, 0b11 << 62]);
        assert_eq!([bytes_from(0, 1), bytes_from(3, 4), bytes_from(63, 2)], [1, 0b111_1000, 1 << 63]);
    }
}
