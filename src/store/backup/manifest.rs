//! The manifest, which lists the content of a backup. It is JSON that anyone can read, with a checksum over itself, so
//! that every changed byte is noticed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::error::{BackupError, Result};
use super::folder::{PARTIAL, entries};
use super::pace::Pace;
use crate::store::data_dir::files;
use crate::types::{CollectionName, TimestampMs};

pub(super) const FILE: &str = "manifest.json";
/// The newest format, used for backups of a series. Raise it if an older version would misread a backup.
const FORMAT: u64 = 2;
/// The format of all other backups. Versions that do not know series can restore them.
const FORMAT_WITHOUT_SERIES: u64 = 1;
/// The maximum size of a manifest, in bytes. A manifest of ten thousand collections is smaller.
const BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of the backup.
    hapax_backup: u64,
    /// The version of hapax that made the backup.
    pub hapax: String,
    /// The time of the backup, in UTC, as in RFC 3339.
    pub made: String,
    /// The series of the backup. A later backup of the series may remove this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    series: Option<String>,
    /// The collections, sorted by name.
    pub collections: Vec<ManifestEntry>,
    /// The checksum of the written manifest, computed with an empty text in this field.
    xxh3_128: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestEntry {
    pub name: String,
    /// The name of the collection's file in the backup.
    pub file: String,
    pub bytes: u64,
    /// The 128-bit XXH3 checksum of the file.
    pub xxh3_128: String,
    /// The number of documents, links included.
    pub documents: u64,
    /// The last position in the collection's commit order. The copy contains all changes up to this position, and no
    /// later change.
    pub last_seq: u64,
    pub spec: String,
    /// The setting `keep` of the collection: what it stores besides signatures.
    pub keep: String,
}

impl ManifestEntry {
    /// Returns an error if this length and this checksum of the file at `path` differ from those in the manifest.
    pub(super) fn compare(&self, path: &Path, (bytes, sum): &(u64, String)) -> Result<()> {
        if (*bytes, sum) == (self.bytes, &self.xxh3_128) {
            return Ok(());
        }
        let detail = format!("its checksum is {sum}, but the manifest says {}", self.xxh3_128);
        Err(BackupError::Damaged { path: path.to_owned(), detail })
    }
}

impl Manifest {
    pub(super) fn sealed(made: TimestampMs, series: Option<String>, mut collections: Vec<ManifestEntry>) -> Self {
        collections.sort_by(|a, b| a.name.cmp(&b.name));
        let made = jiff::Timestamp::from_millisecond(made.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string();
        let hapax = env!("CARGO_PKG_VERSION").to_owned();
        let hapax_backup = if series.is_some() { FORMAT } else { FORMAT_WITHOUT_SERIES };
        let mut this = Self { hapax_backup, hapax, made, series, collections, xxh3_128: String::new() };
        this.xxh3_128 = this.sum();
        this
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("numbers and strings always serialise");
        bytes.push(b'\n');
        bytes
    }

    fn sum(&self) -> String {
        let unsealed = Self { xxh3_128: String::new(), ..self.clone() };
        hex(xxh3_128(&unsealed.to_bytes()))
    }

    /// Reads and verifies the manifest of the backup in `dir`. Does not look at the other files.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let io = |source| BackupError::Io { path: path.clone(), doing: "reading it", source };
        let foreign = |detail: &str| BackupError::Foreign { dir: dir.to_owned(), detail: detail.to_owned() };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(match () {
                    () if dir.join(PARTIAL).exists() => BackupError::Unfinished { dir: dir.to_owned() },
                    () if dir.is_dir() => foreign("it has no manifest.json"),
                    () => foreign("no such directory"),
                });
            }
            Err(error) => return Err(io(error)),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
        let damaged = |detail: &str| BackupError::Damaged { path: path.clone(), detail: detail.to_owned() };
        // First read the format, because a later version may have written the rest differently.
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| damaged("it is not JSON"))?;
        let found = value.get("hapax_backup").and_then(serde_json::Value::as_u64);
        match found.ok_or_else(|| foreign("its manifest.json was not written by hapax"))? {
            FORMAT_WITHOUT_SERIES..=FORMAT => {}
            0 => return Err(damaged("format 0 does not exist")),
            found => return Err(BackupError::NewerFormat { dir: dir.to_owned(), found, known: FORMAT }),
        }
        let this: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(&error.to_string()))?;
        if this.to_bytes() != bytes || this.sum() != this.xxh3_128 {
            return Err(damaged("its checksum differs"));
        }
        for entry in &this.collections {
            // A checksum shows that the manifest is undamaged, but not that hapax wrote it. No file name may lead out
            // of the directory.
            let named = CollectionName::new(&entry.name).is_ok();
            if !named || entry.file != format!("{}{}", entry.name, files::SUFFIX) {
                return Err(damaged(&format!("`{}` is not the file of a collection", entry.file)));
            }
        }
        Ok(this)
    }

    pub fn series(&self) -> Option<&str> {
        self.series.as_deref()
    }

    pub fn made_at(&self) -> Option<TimestampMs> {
        let made = self.made.parse::<jiff::Timestamp>().ok()?;
        Some(TimestampMs(made.as_millisecond()))
    }

    /// Checks that the directory holds exactly the files of the manifest, each with its length.
    pub(super) fn check_files(&self, dir: &Path) -> Result<()> {
        let io = |source| BackupError::Io { path: dir.to_owned(), doing: "listing it", source };
        let damaged = |name: &str, detail: String| BackupError::Damaged { path: dir.join(name), detail };
        for name in entries(dir).map_err(io)? {
            if name != FILE && !self.collections.iter().any(|entry| entry.file == name) {
                return Err(damaged(&name, "the manifest does not list it".to_owned()));
            }
        }
        for ManifestEntry { file, bytes, .. } in &self.collections {
            match fs::symlink_metadata(dir.join(file)) {
                Ok(there) if !there.is_file() => return Err(damaged(file, "it is not a regular file".to_owned())),
                Ok(there) if there.len() == *bytes => {}
                Ok(there) => {
                    return Err(damaged(file, format!("it has {} bytes, but the manifest says {bytes}", there.len())));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(damaged(file, "it is missing".to_owned()));
                }
                Err(error) => return Err(io(error)),
            }
        }
        Ok(())
    }
}

/// Returns the time of the latest backup under `dir`.
pub fn latest(dir: &Path) -> Option<TimestampMs> {
    let folders = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter_map(|folder| Manifest::read(&folder).ok()?.made_at()).max()
}

/// Returns the length and the checksum of a file.
pub(super) fn sum_of(path: &Path, pace: &Pace) -> io::Result<(u64, String)> {
    read_summed(&mut File::open(path)?, |piece| pace.read(piece.len() as u64))
}

/// Copies a file to a new one, on disk. Calls `written` with the number of bytes so far, and returns the length and the
/// checksum of the bytes that were read.
pub(super) fn copy_summed(from: &Path, to: &Path, mut written: impl FnMut(u64)) -> io::Result<(u64, String)> {
    let (mut target, mut bytes) = (File::create_new(to)?, 0);
    let summed = read_summed(&mut File::open(from)?, |piece| {
        target.write_all(piece)?;
        bytes += piece.len() as u64;
        written(bytes);
        Ok(())
    })?;
    target.sync_all()?;
    Ok(summed)
}

/// Reads to the end, calls `piece_read` with each piece, and returns the length and the checksum.
pub(super) fn read_summed(
    from: &mut impl Read,
    mut piece_read: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, String)> {
    let (mut hasher, mut bytes, mut piece) = (Xxh3::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok((bytes, hex(hasher.digest128()))),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&piece[..read]);
        piece_read(&piece[..read])?;
        bytes += read as u64;
    }
}

fn hex(sum: u128) -> String {
    format!("{sum:032x}")
}
