//! The operations on 64 bytes of text that every kind of vector instructions provides.

/// A loop over text. Its `run`, and all code in it that has to be fast, must be `#[inline(always)]`: other functions
/// are compiled without vector instructions.
pub(crate) trait Scan {
    type Output;

    fn run<V: Bytes>(self, vector: V) -> Self::Output;
}

/// 64 bytes of text. Masks have one bit for each byte.
pub(crate) type Block = [u8; 64];

/// The operations of vector instructions on blocks of text.
pub(crate) trait Bytes: Copy {
    /// Masks of the bytes that are ASCII letters or digits, and of those that are not ASCII.
    fn words(self, block: &Block) -> (u64, u64);

    /// Masks of the bytes that are ASCII white space by the White_Space property, and of those that are not ASCII.
    fn spaces(self, block: &Block) -> (u64, u64);

    /// A mask of the bytes `first` to `first + count - 1`. `count` is 1 to 128, and `first + count - 1` is at most
    /// 0xff.
    fn in_range(self, block: &Block, first: u8, count: u8) -> u64;

    /// Moves the bytes whose bits are set to the front of `packed`; the bytes after them have no meaning.
    fn pack(self, block: &Block, kept: u64, packed: &mut Block);
}

/// Defines a type for the named instructions, and implements [`Bytes`] with the functions `words`, `spaces`,
/// `bytes_in_range` and `pack` of the same module.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! bytes_by_functions {
    ($name:ident) => {
        /// A value of this type exists only if the processor has the features.
        #[derive(Clone, Copy)]
        pub(super) struct $name(());

        impl $crate::simd::blocks::Bytes for $name {
            #[inline(always)]
            fn words(self, block: &Block) -> (u64, u64) {
                // SAFETY: a value of this type is made only if the processor has the features.
                unsafe { words(block) }
            }

            #[inline(always)]
            fn spaces(self, block: &Block) -> (u64, u64) {
                // SAFETY: a value of this type is made only if the processor has the features.
                unsafe { spaces(block) }
            }

            #[inline(always)]
            fn in_range(self, block: &Block, first: u8, count: u8) -> u64 {
                // SAFETY: a value of this type is made only if the processor has the features.
                unsafe { bytes_in_range(block, first, count) }
            }

            #[inline(always)]
            fn pack(self, block: &Block, kept: u64, packed: &mut Block) {
                // SAFETY: a value of this type is made only if the processor has the features.
                unsafe { pack(block, kept, packed) }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use bytes_by_functions;

/// For each byte, the places of its set bits, in order.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) static KEPT: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut kept = 0;
    while kept < 256 {
        let (mut place, mut count) = (0, 0);
        while place < 8 {
            if kept >> place & 1 == 1 {
                table[kept][count] = place;
                count += 1;
            }
            place += 1;
        }
        kept += 1;
    }
    table
};
