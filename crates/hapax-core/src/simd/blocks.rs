//! What vector instructions do with 64 bytes of text, whichever they are.

/// A loop over text. Its `run`, and all of it that is to be fast, must be `#[inline(always)]`: what is not is compiled
/// without vector instructions.
pub(crate) trait Scan {
    type Output;

    fn run<V: Bytes>(self, vector: V) -> Self::Output;
}

/// 64 bytes of text, a bit for each.
pub(crate) type Block = [u8; 64];

/// What vector instructions do with blocks of text.
pub(crate) trait Bytes: Copy {
    /// Which bytes are ASCII letters or digits, and which are not ASCII.
    fn words(self, block: &Block) -> (u64, u64);

    /// Which bytes are ASCII white space by the White_Space property, and which are not ASCII.
    fn spaces(self, block: &Block) -> (u64, u64);

    /// Moves the bytes whose bits are set to the front of `packed`; what follows them there is of no account.
    fn pack(self, block: &Block, kept: u64, packed: &mut Block);
}

/// Makes the named instructions, and [`Bytes`] of the functions `words`, `spaces` and `pack` beside it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! bytes_by_functions {
    ($name:ident) => {
        /// That there is one says that the processor has the features.
        #[derive(Clone, Copy)]
        pub(super) struct $name(());

        impl $crate::simd::blocks::Bytes for $name {
            #[inline(always)]
            fn words(self, block: &Block) -> (u64, u64) {
                // SAFETY: one of these is made only where the processor has the features.
                unsafe { words(block) }
            }

            #[inline(always)]
            fn spaces(self, block: &Block) -> (u64, u64) {
                // SAFETY: one of these is made only where the processor has the features.
                unsafe { spaces(block) }
            }

            #[inline(always)]
            fn pack(self, block: &Block, kept: u64, packed: &mut Block) {
                // SAFETY: one of these is made only where the processor has the features.
                unsafe { pack(block, kept, packed) }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use bytes_by_functions;

/// For each set of eight, the places of those that are in it, in order.
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
