//! Lets only one process use a data directory.
//! In: the directory and how long to wait. Out: a lock that is held until its value is dropped or the process ends.
//! This file does not know what is in the directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::make_dir;
use crate::plain_file::lock_within;

/// The name of the lock file in the data directory.
pub const LOCK_FILE: &str = "LOCK";

/// The reason why the data directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("the data directory {} is in use by {}", dir.display(), holder(.pid))]
    Held {
        dir: PathBuf,
        /// The process that holds the lock, if the lock file says so.
        pid: Option<u32>,
    },
    /// The directory or its lock file cannot be created or locked.
    #[error("cannot lock the data directory {}: {cause}", dir.display())]
    Io { dir: PathBuf, cause: io::Error },
}

fn holder(pid: &Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

/// The lock on a data directory. The kernel releases it when this is dropped or the process ends.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

impl DataDirLock {
    /// Locks `dir`, and creates it if needed (mode 0700). Retries until `wait` is over; with a wait of zero it tries
    /// once.
    pub fn acquire(dir: &Path, wait: Duration) -> Result<Self, LockError> {
        let failed = |cause| LockError::Io { dir: dir.to_owned(), cause };
        make_dir(dir).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(LOCK_FILE))
            .map_err(failed)?;
        if !lock_within(&file, wait).map_err(failed)? {
            return Err(LockError::Held { dir: dir.to_owned(), pid: read_pid(&mut file) });
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_held_directory_is_refused_and_names_its_holder() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data/of/it");
        let lock = DataDirLock::acquire(&dir, Duration::ZERO).unwrap();
        let refused = DataDirLock::acquire(&dir, Duration::from_millis(120)).unwrap_err();
        assert!(matches!(refused, LockError::Held { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
        drop(lock);
        DataDirLock::acquire(&dir, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_waiter_gets_the_lock_when_the_holder_leaves() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DataDirLock::acquire(dir.path(), Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| DataDirLock::acquire(dir.path(), Duration::from_secs(20)));
            thread::sleep(Duration::from_millis(100));
            assert!(!waiter.is_finished());
            drop(lock);
            waiter.join().unwrap().unwrap();
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_new_directory_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("new");
        let _lock = DataDirLock::acquire(&dir, Duration::ZERO).unwrap();
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
