//! Names the backups of a series, and removes the oldest ones. A backup of the series `nightly` is named
//! `nightly-2026-11-21T020000Z`. When a new backup is complete, the oldest backups of the series are removed. A
//! complete backup is removed only if its manifest names the series. An incomplete backup is removed only if its marker
//! names the series, or if it was interrupted before the marker could name one. A removal begins by renaming the
//! manifest. If the removal is interrupted, the rest is no longer a backup, and the next removal deletes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use jiff::fmt::strtime;

use super::folder::{PARTIAL, WRITING, entries, is_ours};
use super::manifest::{self, Manifest};
use crate::store::data_dir::files::{sync_dir, sync_parent};
use crate::types::TimestampMs;

/// The format of the time in the name of a directory, after the name of the series and a dash.
const TIME: &str = "%Y-%m-%dT%H%M%SZ";
/// The maximum number of bytes after the name of the series in a directory's name: a dash, the time, a number.
pub const SUFFIX_BYTES_MAX: usize = 1 + 18 + 4;

/// Returns a free name in `dir` for the next backup of the series. If several backups are made in one second, each
/// later one gets the next number.
pub fn dated(dir: &Path, series: &str, at: TimestampMs) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let name = format!("{series}-{}", at.strftime(TIME));
    let number_of = |taken: &String| match taken.strip_prefix(&name)? {
        "" => Some(1),
        numbered => numbered.strip_prefix('-')?.parse::<u32>().ok(),
    };
    match entries(dir).unwrap_or_default().iter().filter_map(number_of).max() {
        Some(highest) => format!("{name}-{}", highest.saturating_add(1)),
        None => name,
    }
}

/// Removes the oldest complete backups of the series in `dir` until `keep` are left, but never `newest`. Also removes
/// the interrupted backups of the series. If `keep` is 0, all complete backups stay. Returns the names of the complete
/// backups that were removed. If a backup cannot be removed, it stays and a warning is logged.
pub fn prune(dir: &Path, series: &str, keep: usize, newest: &str) -> Vec<String> {
    let mut whole = Vec::new();
    for name in entries(dir).unwrap_or_default() {
        let folder = dir.join(&name);
        let is_folder = fs::symlink_metadata(&folder).is_ok_and(|folder| folder.is_dir());
        if name == newest || !is_folder || !is_dated(&name, series) {
            continue;
        }
        match Manifest::read(&folder) {
            Ok(manifest) if manifest.series() == Some(series) => whole.push((manifest.made_at(), name, manifest)),
            Ok(_) => {}
            Err(_) => warn_if_failed(&folder, remove_rest(&folder, series)),
        }
    }
    if keep == 0 {
        return Vec::new();
    }
    // Newest first. The backup `newest` is not in the list.
    whole.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    let mut removed = Vec::new();
    for (_, name, manifest) in whole.into_iter().skip(keep - 1) {
        let folder = dir.join(&name);
        let gone = remove(&folder, &manifest);
        if matches!(gone, Ok(true)) {
            removed.push(name);
        }
        warn_if_failed(&folder, gone);
    }
    removed
}

fn warn_if_failed(folder: &Path, removed: io::Result<bool>) {
    let detail = match removed {
        Ok(true) => return,
        Ok(false) => "it contains files that no backup of this series wrote".to_owned(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(path = %folder.display(), detail, "could not remove an old or interrupted backup");
}

/// Returns whether a directory with this name may belong to the series.
fn is_dated(name: &str, series: &str) -> bool {
    let Some(time) = name.strip_prefix(series).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let Some((time, number)) = time.split_once('Z') else { return false };
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = time.len() == 17 && strtime::parse(TIME, format!("{time}Z")).is_ok();
    is_time && (number.is_empty() || number.strip_prefix('-').is_some_and(is_number))
}

/// Removes a complete backup. Returns false if the directory holds a file that the manifest does not list.
pub fn remove(folder: &Path, manifest: &Manifest) -> io::Result<bool> {
    let known = |name: &String| name == manifest::FILE || manifest.collections.iter().any(|entry| entry.file == *name);
    if !entries(folder)?.iter().all(known) {
        return Ok(false);
    }
    // From here on, this is no longer a backup, even after a crash.
    fs::rename(folder.join(manifest::FILE), folder.join(PARTIAL))?;
    sync_dir(folder)?;
    remove_marked(folder)?;
    Ok(true)
}

/// Removes the rest of an interrupted backup of the series, or of an interrupted removal. Returns false if the
/// directory is something else.
fn remove_rest(folder: &Path, series: &str) -> io::Result<bool> {
    let there = entries(folder)?;
    if there.is_empty() {
        // A removal was interrupted before its last step, or a backup at its beginning.
        fs::remove_dir(folder)?;
        return Ok(true);
    }
    if there == [WRITING] {
        // A move was interrupted at its beginning.
        fs::remove_file(folder.join(WRITING))?;
        fs::remove_dir(folder)?;
        return Ok(true);
    }
    if !there.iter().any(|name| name == PARTIAL) || !there.iter().all(|name| is_ours(name)) {
        return Ok(false);
    }
    let marker = OpenOptions::new().read(true).write(true).open(folder.join(PARTIAL))?;
    if marker.try_lock().is_err() {
        // A backup is being written here.
        return Ok(true);
    }
    let marked: Option<serde_json::Value> = serde_json::from_reader(&marker).ok();
    // If an empty marker is the only file, the backup was interrupted before it could write the series. Nothing except
    // the marker can be lost.
    let just_begun = there.len() == 1 && marker.metadata()?.len() == 0;
    if !just_begun && marked.and_then(|marked| Some(marked.get("series")?.as_str()? == series)) != Some(true) {
        return Ok(false);
    }
    remove_marked(folder)?;
    Ok(true)
}

/// Removes a directory with a marker. The marker is removed last: as long as it exists, it shows that the other files
/// belong to a backup.
fn remove_marked(folder: &Path) -> io::Result<()> {
    for name in entries(folder)?.iter().filter(|name| *name != PARTIAL) {
        fs::remove_file(folder.join(name))?;
    }
    fs::remove_file(folder.join(PARTIAL))?;
    fs::remove_dir(folder)?;
    sync_parent(folder)
}

/// Writes the series into the marker of a backup. The marker exists until the backup is complete.
pub(super) fn mark(partial: &mut File, series: &str) -> io::Result<()> {
    use std::io::Write as _;
    partial.set_len(0)?;
    partial.write_all(serde_json::json!({ "series": series }).to_string().as_bytes())?;
    partial.sync_all()
}

/// Splits a path into its parent directory and its last name.
pub fn split(path: &Path) -> Option<(PathBuf, String)> {
    let name = path.file_name()?.to_str()?.to_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((parent.to_owned(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_makes_a_name_one_of_the_series() {
        let dir = tempfile::tempdir().unwrap();
        let at = TimestampMs(1_795_399_200_000);
        let first = dated(dir.path(), "nightly", at);
        assert_eq!(first, "nightly-2026-11-23T020000Z");
        fs::create_dir(dir.path().join(&first)).unwrap();
        let second = dated(dir.path(), "nightly", at);
        assert_eq!(second, format!("{first}-2"));
        assert!(second.len() <= "nightly".len() + SUFFIX_BYTES_MAX);
        for name in [&first, &second] {
            assert!(is_dated(name, "nightly"), "{name}");
        }
        for name in [
            "nightly",
            "nightly-",
            "nightly-2",
            "nightly-old",
            "nightly-2026-11-23",
            "nightly-2026-11-23T020000",
            "nightly-x-2026-11-23T020000Z",
            "nightly-2026-13-23T020000Z",
            "nightly-2026-11-23T020000Z-x",
            "weekly-2026-11-23T020000Z",
        ] {
            assert!(!is_dated(name, "nightly"), "{name}");
        }
    }
}
