//! The `-shm` file that a process leaves when it is killed.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::bytes::{ByteOrder, fill};

/// The size of the header. A `-shm` file contains the header twice.
const SHARED_HEADER_BYTES: usize = 48;
const SHARED_FORMAT: u32 = 3_007_000;

/// The state of the log according to the `-shm` file of a killed process.
pub(super) struct Noted {
    /// The number of committed frames.
    pub(super) frames: u64,
    /// The number of these frames that are on disk in the database.
    pub(super) moved: u64,
    pub(super) salts: [u8; 8],
}

impl Noted {
    /// Reads the file; `None` if it is missing or not valid.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut bytes = [0; 2 * SHARED_HEADER_BYTES + 4];
        let whole = match File::open(path) {
            Ok(mut file) => fill(&mut file, &mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        // The numbers are in the byte order of the machine. The last two numbers of the header are its checksum.
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let header = &bytes[..SHARED_HEADER_BYTES];
        let sum =
            if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little }.sum([0, 0], &header[..40]);
        let sound = whole
            && *header == bytes[SHARED_HEADER_BYTES..2 * SHARED_HEADER_BYTES]
            && number(0) == SHARED_FORMAT
            && sum == [number(40), number(44)];
        Ok(sound.then(|| Self {
            frames: u64::from(number(16)),
            moved: u64::from(number(2 * SHARED_HEADER_BYTES)),
            salts: bytes[32..40].try_into().expect("8 bytes"),
        }))
    }
}
