//! Pieces of bytes -> a temporary file without a name -> the same pieces. The file ends with the process, however that ends.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

use crate::corpus::Shelf;

/// The number of the next file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that is being written, and can be read meanwhile.
pub(in crate::cli) struct SpillFile {
    file: Arc<File>,
    folder: PathBuf,
    length: u64,
}

/// A piece of a file.
#[derive(Clone, Copy)]
pub(in crate::cli) struct Piece {
    at: u64,
    length: u64,
}

/// A file whose bytes are read and written in any order.
pub(in crate::cli) struct ShelfFile {
    file: Arc<File>,
}

/// Pieces of a file, one after another.
#[derive(Clone)]
pub(in crate::cli) struct Pieces {
    file: Arc<File>,
    pieces: VecDeque<Piece>,
}

impl SpillFile {
    pub(in crate::cli) fn create(folder: &Path) -> Result<Self> {
        let make = || {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".hapax-temporary.{}.{number}", std::process::id()));
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
            fs::remove_file(&path).map(|()| file)
        };
        let file = Arc::new(make().with_context(|| cannot_write(folder))?);
        Ok(Self { file, folder: folder.to_owned(), length: 0 })
    }

    pub(in crate::cli) fn into_shelf(self) -> ShelfFile {
        ShelfFile { file: self.file }
    }

    /// Writes bytes to the end of the file.
    pub(in crate::cli) fn append(&mut self, bytes: &[u8]) -> Result<Piece> {
        let piece = Piece { at: self.length, length: bytes.len() as u64 };
        self.file.write_all_at(bytes, self.length).with_context(|| cannot_write(&self.folder))?;
        self.length += piece.length;
        Ok(piece)
    }

    /// Reads bytes that were written.
    pub(in crate::cli) fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Returns pieces, to be read one after another.
    pub(in crate::cli) fn pieces(&self, pieces: impl IntoIterator<Item = Piece>) -> Pieces {
        Pieces { file: Arc::clone(&self.file), pieces: pieces.into_iter().collect() }
    }
}

impl Piece {
    /// Its place in the file.
    pub(in crate::cli) fn at(self) -> u64 {
        self.at
    }
}

impl Pieces {
    /// Returns a reader with a buffer of `buffer_bytes` bytes.
    pub(in crate::cli) fn read(&self, buffer_bytes: usize) -> BufReader<Self> {
        BufReader::with_capacity(buffer_bytes, self.clone())
    }
}

pub(in crate::cli) fn cannot_write(folder: &Path) -> String {
    format!("cannot write a temporary file into {}", folder.display())
}

impl Shelf for ShelfFile {
    fn read(&self, mut at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.file.read_at(rest, at) {
                Ok(0) => {
                    // Nothing was written there.
                    rest.fill(0);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            at += read as u64;
            rest = &mut rest[read..];
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
}

impl Read for Pieces {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.pieces.front().is_some_and(|piece| piece.length == 0) {
            self.pieces.pop_front();
        }
        let Some(piece) = self.pieces.front_mut() else { return Ok(0) };
        let most = bytes.len().min(usize::try_from(piece.length).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut bytes[..most], piece.at)?;
        (piece.at, piece.length) = (piece.at + read as u64, piece.length - read as u64);
        Ok(read)
    }
}
