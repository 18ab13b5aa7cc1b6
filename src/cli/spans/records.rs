//! The windows that one reading of the files has found, in a temporary file: in the order of the documents, and of the
//! windows in each. They are read once, in the same order.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use crate::corpus::FirstPlace;

const RECORD_BYTES: usize = 20;

/// The records that are being written.
pub(super) struct Records {
    file: BufWriter<File>,
}

/// The records that are being read.
pub(super) struct Recorded {
    file: BufReader<File>,
    next: Option<Record>,
    /// The hashes that this reading has found completely.
    range: RangeInclusive<u64>,
}

/// A window of a document that an earlier document has.
#[derive(Clone, Copy)]
struct Record {
    document: u32,
    window: u32,
    first: FirstPlace,
}

impl Records {
    /// Makes a file without a name, so it ends with the process.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".hapax-spans.{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file) })
    }

    pub(super) fn add(&mut self, document: u32, (window, first): (u32, FirstPlace)) -> io::Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        let numbers = [document, window, first.document, first.from, first.to];
        for (bytes, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        self.file.write_all(&bytes)
    }

    pub(super) fn finish(self, range: RangeInclusive<u64>) -> io::Result<Recorded> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut recorded = Recorded { file: BufReader::with_capacity(1 << 16, file), next: None, range };
        recorded.advance()?;
        Ok(recorded)
    }
}

impl Recorded {
    /// Appends the windows of a document that belong to this reading. `hash`: returns the hash of a window.
    pub(super) fn of(
        &mut self,
        document: u32,
        hash: impl Fn(u32) -> u64,
        found: &mut Vec<(u32, FirstPlace)>,
    ) -> io::Result<()> {
        while let Some(record) = self.next.filter(|record| record.document == document) {
            if self.range.contains(&hash(record.window)) {
                found.push((record.window, record.first));
            }
            self.advance()?;
        }
        Ok(())
    }

    fn advance(&mut self) -> io::Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        self.next = match self.file.read_exact(&mut bytes) {
            Ok(()) => {
                let number =
                    |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().expect("a number has four bytes"));
                let first = FirstPlace { document: number(2), from: number(3), to: number(4) };
                Some(Record { document: number(0), window: number(1), first })
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }
}
