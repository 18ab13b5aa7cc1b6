//! Opens a file for reading, locks a file, checks whether two names refer to the same file, and recognises a full disk.
//! A pipe or a directory is refused, because opening a pipe would wait until another program writes to it.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two attempts to lock a file.
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// Opens a plain file. Another file may get this path at any time, so the opened file itself is checked.
pub(crate) fn open_plain_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// Returns whether a write failed because the disk, the quota or the file size limit has no room left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Returns whether both are the metadata of the same file.
pub(crate) fn are_of_one_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Locks a file. Waits for at most `wait` for another process, and returns whether the lock is held. The kernel
/// releases the lock when the file is closed or the process ends.
pub(crate) fn lock_within(file: &File, wait: Duration) -> io::Result<bool> {
    let asked = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let left = wait.saturating_sub(asked.elapsed());
                if left.is_zero() {
                    return Ok(false);
                }
                thread::sleep(left.min(LOCK_LOOK));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_and_a_directory_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, file) = (dir.path().join("pipe"), dir.path().join("file"));
        // No process is started for it: one that starts holds the locks of other tests for a moment.
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        std::fs::write(&file, "x").unwrap();
        let refused = [dir.path(), &pipe].map(|path| open_plain_file(path).unwrap_err().to_string());
        assert_eq!(refused, ["it is not a file"; 2]);
        assert!(open_plain_file(&file).is_ok());
    }
}
