//! A file that reserves room on the disk for deletes. Even a delete needs room on the disk, for the write-ahead log.
//! Therefore this file, which occupies real blocks, is removed when the disk is full. From then on, no document is
//! stored until the file can be created again. In: a directory and the wanted size. Out: whether documents may be
//! stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::telemetry::names;

/// The name of the file in the data directory.
const NAME: &str = "reserve";
/// A transaction and its log may need this many bytes, so a smaller reserve would not help.
const BYTES_MIN: u64 = 1 << 20;
/// On a disk with little room, the size of the reserve is the free space divided by this number.
const PARTS: u64 = 4;

/// The room that is reserved on a disk.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    wanted: u64,
    room: Mutex<Room>,
    /// Whether the reserve was given up, so that the remaining room is only for deletes.
    spent: AtomicBool,
}

#[derive(Debug, Default)]
struct Room {
    /// The length of the file; 0 if there is none.
    held: u64,
    /// The length of the file when it was last given up.
    lost: u64,
}

impl Reserve {
    /// `wanted` is the size of the reserve in bytes; 0 means no reserve.
    pub(super) fn new(dir: &Path, wanted: u64) -> Self {
        let (room, spent) = (Mutex::default(), AtomicBool::new(false));
        Self { path: dir.join(NAME), wanted, room, spent }
    }

    /// Creates the file. If it was given up, creates it again once [`Self::needed`] bytes are free. On a disk with
    /// little room, the file is smaller.
    pub(super) fn keep(&self, free: impl Fn() -> Option<u64>) {
        let mut room = self.room.lock();
        let exists = fs::metadata(&self.path).map_or(0, |file| file.len());
        if self.wanted == 0 {
            if exists > 0 {
                self.remove();
            }
            return;
        }
        // An operator may have removed the file. If an earlier process created the file, it may be smaller than
        // `wanted`.
        room.held = exists.min(room.held.max(self.wanted));
        let room_on_disk = free().unwrap_or(0) + exists;
        let size = self.wanted.min(room_on_disk / PARTS);
        let spent = self.spent.load(Ordering::Relaxed);
        let worth_it = if spent { room_on_disk >= needed(room.lost) } else { room.held == 0 || size == self.wanted };
        if (room.held == self.wanted && exists == self.wanted) || size < BYTES_MIN || !worth_it {
            return;
        }
        match self.make(size) {
            Ok(()) => {
                room.held = size;
                self.spent.store(false, Ordering::Relaxed);
                tracing::info!(bytes = size, "keeping room on the disk for deletes (data.reserve_bytes)");
            }
            Err(error) => {
                tracing::warn!(%error, bytes = size, "cannot keep room on the disk for deletes (data.reserve_bytes)");
                self.remove();
                room.held = 0;
            }
        }
    }

    /// Gives the file up, because the disk is full. Returns whether a write that the disk refused may succeed now.
    pub(super) fn give_up(&self) -> bool {
        let mut room = self.room.lock();
        if room.held > 0 {
            self.remove();
            (room.lost, room.held) = (room.held, 0);
            self.spent.store(true, Ordering::Relaxed);
            tracing::error!(
                bytes = room.lost,
                needed_bytes = needed(room.lost),
                "the disk is full; released the room for deletes (data.reserve_bytes); no documents are stored \
                 until `needed_bytes` are free"
            );
        }
        self.is_spent()
    }

    /// Returns whether the remaining room is only for deletes.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// Returns how many bytes must be free before documents are stored again.
    pub(super) fn needed(&self) -> u64 {
        needed(self.room.lock().lost)
    }

    pub(super) fn observe(&self) {
        metrics::gauge!(names::DISK_RESERVE).set(self.room.lock().held as f64);
    }

    fn make(&self, size: u64) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        file.set_len(file.metadata()?.len().min(size))?;
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(&mut file, size)?,
            made => made?,
        }
        file.sync_all()
    }

    /// Truncates the file and removes it. Some file systems free the blocks of a removed file only later, and free them
    /// sooner if the file was truncated first.
    fn remove(&self) {
        let cut = || -> io::Result<()> {
            let file = File::options().write(true).open(&self.path)?;
            file.set_len(0)?;
            file.sync_all()?;
            fs::remove_file(&self.path)
        };
        if let Err(error) = cut()
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the file that keeps room on the disk");
        }
    }
}

/// Returns how many bytes must be free after `lost` bytes were given up. This is more than `lost`, because removing the
/// file has itself freed `lost` bytes.
fn needed(lost: u64) -> u64 {
    lost + lost / 4
}

/// Writes the file. Its bytes are not all zero, because some file systems store zeros without using space.
fn fill(file: &mut File, size: u64) -> io::Result<()> {
    let block: Vec<u8> = (0..BYTES_MIN).map(|at| (at % 251) as u8).collect();
    let mut left = size;
    while left > 0 {
        let piece = left.min(BYTES_MIN);
        file.write_all(&block[..piece as usize])?;
        left -= piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn blocks(dir: &tempfile::TempDir) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(dir.path().join(NAME)).map_or(0, |file| file.blocks() * 512)
    }

    #[test]
    fn the_reserve_has_real_blocks_and_is_made_again_when_more_than_its_size_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(dir.path(), 4 * MIB);
        reserve.keep(|| Some(100 * MIB));
        assert!(blocks(&dir) >= 4 * MIB);
        assert!(!reserve.is_spent());
        assert!(reserve.give_up() && reserve.is_spent());
        assert_eq!((blocks(&dir), reserve.needed()), (0, 5 * MIB));
        reserve.keep(|| Some(4 * MIB));
        assert!(reserve.is_spent() && blocks(&dir) == 0, "the room that is left is for deletes");
        assert!(reserve.give_up(), "a second write may use it too");
        reserve.keep(|| Some(5 * MIB));
        assert!(!reserve.is_spent() && blocks(&dir) >= MIB && blocks(&dir) < 2 * MIB, "a part of what is free");
        reserve.keep(|| Some(16 * MIB));
        assert!(blocks(&dir) >= 4 * MIB, "it grows when there is room");
    }

    #[test]
    fn a_nearly_full_disk_has_a_smaller_reserve_that_grows() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(dir.path(), 4 * MIB);
        reserve.keep(|| Some(3 * MIB));
        assert_eq!(blocks(&dir), 0);
        assert!(!reserve.give_up() && !reserve.is_spent(), "nothing was given up, so nothing is refused");
        reserve.keep(|| Some(8 * MIB));
        assert_eq!(fs::metadata(dir.path().join(NAME)).unwrap().len(), 2 * MIB);
        // The next process finds the file.
        let reserve = Reserve::new(dir.path(), 4 * MIB);
        reserve.keep(|| Some(7 * MIB));
        assert_eq!(fs::metadata(dir.path().join(NAME)).unwrap().len(), 2 * MIB);
        reserve.keep(|| Some(14 * MIB));
        assert!(blocks(&dir) >= 4 * MIB);
        Reserve::new(dir.path(), 0).keep(|| Some(0));
        assert!(!dir.path().join(NAME).exists(), "0 means none");
    }
}
