//! Makes a backup: copies the files of collections to a directory, and writes the manifest.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copy::CopyLimits;
use super::error::{BackupError, Result};
use super::folder::{PARTIAL, WRITING, entries, is_ours};
use super::manifest::{self, Manifest, ManifestEntry};
use super::pace::Pace;
use super::progress::Progress;
use super::{check_copy, copy, series};
use crate::store::data_dir::files::{self, make_dir, name_of, sync_dir};
use crate::store::error::StoreError;
use crate::store::settings::Opened;
use crate::types::TimestampMs;

/// A backup that is being made. If it is dropped before [`finish`](Self::finish), it removes the files that it wrote.
#[derive(Debug)]
pub struct Backup {
    dir: PathBuf,
    partial: File,
    entries: Vec<ManifestEntry>,
    series: Option<String>,
    limits: CopyLimits,
    progress: Arc<Progress>,
    finished: bool,
}

impl Backup {
    /// Begins a backup in `dir`, and creates `dir` if it is missing (mode 0700). Removes the leftovers of an
    /// interrupted backup. Any other file in `dir` is an error.
    pub fn begin(dir: &Path, limits: CopyLimits, progress: Arc<Progress>) -> Result<Self> {
        let failed = |doing| move |source| BackupError::Io { path: dir.to_owned(), doing, source };
        make_dir(dir).map_err(failed("creating the directory"))?;
        if !fs::symlink_metadata(dir).map_err(failed("examining it"))?.is_dir() {
            return Err(BackupError::NotAFolder { dir: dir.to_owned() });
        }
        let list = || {
            let there = entries(dir).map_err(failed("listing it"))?;
            let taken = there.iter().any(|name| name == manifest::FILE);
            if taken { Err(BackupError::Taken { dir: dir.to_owned() }) } else { Ok(there) }
        };
        let there = list()?;
        let stranger = if there.iter().any(|name| name == PARTIAL) {
            there.iter().find(|name| !is_ours(name))
        } else {
            there.first()
        };
        if let Some(entry) = stranger {
            return Err(BackupError::InTheWay { dir: dir.to_owned(), entry: entry.clone() });
        }
        let marker = dir.join(PARTIAL);
        let partial = OpenOptions::new().write(true).create(true).truncate(false).open(&marker);
        let partial = partial.map_err(failed("writing its marker"))?;
        match partial.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::UnderWay { dir: dir.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed("locking it")(source)),
        }
        // Another process may have finished its backup here, or given it up, before the marker was locked.
        let there = list().inspect_err(|_| drop(fs::remove_file(&marker)))?;
        if !there.iter().any(|name| name == PARTIAL) {
            return Err(BackupError::UnderWay { dir: dir.to_owned() });
        }
        for name in there.iter().filter(|name| *name != PARTIAL) {
            fs::remove_file(dir.join(name)).map_err(failed("removing the leftovers of an interrupted backup"))?;
        }
        partial.sync_all().and_then(|()| sync_dir(dir)).map_err(failed("writing its marker"))?;
        Ok(Self { dir: dir.to_owned(), partial, entries: Vec::new(), series: None, limits, progress, finished: false })
    }

    /// Makes the backup a member of a series. `prune` may remove such a backup later.
    pub fn of_series(mut self, series: &str) -> Result<Self> {
        let failed = |source| BackupError::Io { path: self.dir.clone(), doing: "writing its marker", source };
        series::mark(&mut self.partial, series).map_err(failed)?;
        self.series = Some(series.to_owned());
        Ok(self)
    }

    /// Copies one collection's file in its present state, and checks every row of the copy. Returns the time at which
    /// the collection was created. Returns `None` if `gone` returned true, because the collection was dropped
    /// meanwhile. The backup then does not contain the collection.
    pub fn add(&mut self, source: &Path, gone: impl Fn() -> bool + Send + 'static) -> Result<Option<TimestampMs>> {
        let label = name_of(source);
        let file = format!("{label}{}", files::SUFFIX);
        let target = self.dir.join(&file);
        let failed = |doing| {
            let path = target.clone();
            move |source| BackupError::Io { path, doing, source }
        };
        let units = source_bytes(source);
        let stage = self.progress.stage(units);
        if !copy::copy(source, &target, self.limits, Box::new(gone), &stage)? {
            fs::remove_file(&target).map_err(failed("removing it"))?;
            return Ok(None);
        }
        drop(stage);
        let synced = File::open(&target).and_then(|file| file.sync_all());
        synced.map_err(failed("writing it"))?;
        let stage = self.progress.stage(units);
        let pace = Pace::new(self.limits.bytes_per_second_max, self.progress.clone());
        // The checksum is computed before the other checks, which then find the file in the system's page cache.
        let (bytes, sum) = manifest::sum_of(&target, &pace).map_err(failed("reading it"))?;
        let Opened { meta, last_seq, documents } = check_copy::every_row(&target, bytes, &stage, &pace)?;
        if let Some(detail) = meta.other_than(&label) {
            return Err(StoreError::Damaged { collection: label, record: None, detail }.into());
        }
        self.progress.copied(bytes);
        self.entries.push(ManifestEntry {
            name: label,
            file,
            bytes,
            xxh3_128: sum,
            documents,
            last_seq: last_seq.0,
            spec: meta.spec,
            keep: meta.keep.as_str().to_owned(),
        });
        Ok(Some(meta.created))
    }

    /// Writes the manifest, which makes the backup complete.
    pub fn finish(mut self, made: TimestampMs) -> Result<Manifest> {
        let failed = |source| BackupError::Io { path: self.dir.clone(), doing: "writing the manifest", source };
        let manifest = Manifest::sealed(made, self.series.take(), std::mem::take(&mut self.entries));
        let bytes = manifest.to_bytes();
        let write = |partial: &mut File| {
            let writing = self.dir.join(WRITING);
            let mut file = File::create(&writing)?;
            // Lock the new marker like the old one.
            file.lock()?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&writing, self.dir.join(PARTIAL))?;
            *partial = file;
            // Sync the names of the copies before the manifest gets the name that makes the backup valid.
            sync_dir(&self.dir)?;
            fs::rename(self.dir.join(PARTIAL), self.dir.join(manifest::FILE))?;
            sync_dir(&self.dir)
        };
        write(&mut self.partial).map_err(failed)?;
        self.finished = true;
        self.progress.finish();
        Ok(manifest)
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // The marker is removed last. As long as the marker exists, it shows that the other files belong to this
        // backup.
        let remove = || {
            for name in entries(&self.dir)?.iter().filter(|name| *name != PARTIAL) {
                fs::remove_file(self.dir.join(name))?;
            }
            fs::remove_file(self.dir.join(PARTIAL))?;
            fs::remove_dir(&self.dir)
        };
        if let Err(error) = remove() {
            tracing::warn!(dir = %self.dir.display(), %error, "could not remove the files of an unfinished backup");
        }
    }
}

/// Returns the approximate number of bytes to copy and check. [`Progress`] counts these bytes.
pub fn units(source: &Path) -> u64 {
    2 * source_bytes(source)
}

fn source_bytes(source: &Path) -> u64 {
    [source.to_owned(), files::log(source)].iter().map(|path| fs::metadata(path).map_or(0, |file| file.len())).sum()
}
