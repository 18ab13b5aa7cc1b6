//! Reads numbers, checksums and fixed-size pieces as SQLite writes them to its files.

use std::io::{self, ErrorKind, Read};

/// The byte order of the words that a checksum adds up.
#[derive(Clone, Copy)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(super) fn sum(self, [mut s0, mut s1]: [u32; 2], bytes: &[u8]) -> [u32; 2] {
        for pair in bytes.chunks_exact(8) {
            let [x0, x1] = [0, 4].map(|at| {
                let word = pair[at..at + 4].try_into().expect("4 bytes");
                match self {
                    Self::Little => u32::from_le_bytes(word),
                    Self::Big => u32::from_be_bytes(word),
                }
            });
            s0 = s0.wrapping_add(x0).wrapping_add(s1);
            s1 = s1.wrapping_add(x1).wrapping_add(s0);
        }
        [s0, s1]
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// Fills `bytes` from the file. Returns false if the file ends before `bytes` is full.
pub(super) fn fill(log: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
