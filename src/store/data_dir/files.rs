//! Creates, lists, repairs and removes the files of collections, in steps that a crash cannot leave half done.
//! A file is created under a name that is never opened as a collection, and renamed when it is complete. It is dropped
//! by renaming it to another such name. This file does not know the content of the files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::plain_file::are_of_one_file;
use crate::types::CollectionName;

/// The suffix of a collection's file.
pub const SUFFIX: &str = ".sqlite";
const CREATING: &str = ".creating";
const LOADING: &str = ".loading";
const SPOOL: &str = ".spool";
const DROPPED: &str = ".dropped";
const REPAIRED: &str = ".repaired";
const RECOVERING: &str = ".recovering";
const DAMAGED: &str = ".damaged-";
/// The suffix of the file with the records that a repair set aside. It follows the name of the damaged file.
const RECORDS: &str = ".jsonl";
/// The suffix of that file until the repair is certain.
const SETTING_ASIDE: &str = ".setting-aside";
/// The suffixes of the files that SQLite keeps next to a database, and of the note of `log/moved.rs`.
const COMPANIONS: [&str; 4] = ["-wal", "-shm", "-journal", MOVED];
/// The suffix of the note that all frames of an emptied log are in the database.
pub(in crate::store) const MOVED: &str = "-moved";

/// Returns the path of a collection's file.
pub fn path_of(dir: &Path, name: &CollectionName) -> PathBuf {
    dir.join(format!("{name}{SUFFIX}"))
}

/// Returns the name of a collection according to the name of its file. Use it until the name inside the file has been
/// read.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

/// Lists the collections in a directory, sorted by name.
pub fn list(dir: &Path) -> io::Result<Vec<CollectionName>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.extend(entry?.file_name().to_str().and_then(collection_of));
    }
    names.sort();
    Ok(names)
}

/// Creates a directory and its missing parents, readable only by their owner, and syncs them.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        // An interrupted earlier run may have created the directory without this sync. If reading the parent is not
        // permitted, this user did not create the directory.
        return match sync_dir(parent(dir)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    if !parent(dir).is_dir() {
        make_dir(parent(dir))?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_dir(parent(dir)),
    }
}

/// Lists the files that belong to no collection and were not set aside by a repair. Among them are logs whose database
/// is missing.
pub fn strangers(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_str();
        let belongs = |companion: &str| {
            let base = name.and_then(|name| name.strip_suffix(companion));
            base.is_some_and(|base| collection_of(base).is_some() && dir.join(base).exists())
        };
        let set_aside = name.and_then(|name| name.split_once(DAMAGED));
        let set_aside = set_aside.is_some_and(|(base, _)| collection_of(base).is_some());
        if !belongs("") && !COMPANIONS.into_iter().any(belongs) && !set_aside {
            strangers.push(path);
        }
    }
    strangers.sort();
    Ok(strangers)
}

/// If a file is a log, or another file that SQLite keeps next to a database, returns the collection that it belongs to.
pub fn log_without_database(stranger: &Path) -> Option<CollectionName> {
    let name = stranger.file_name()?.to_str()?;
    COMPANIONS.into_iter().find_map(|companion| collection_of(name.strip_suffix(companion)?))
}

/// Returns the collection in a file of this name; `None` if it is not the name of a collection's file.
fn collection_of(file_name: &str) -> Option<CollectionName> {
    CollectionName::new(file_name.strip_suffix(SUFFIX)?).ok()
}

/// Removes the leftovers of creations and drops that a crash interrupted, and returns their paths. Call it under the
/// data directory's lock, before any collection is opened.
pub fn clean_leftovers(dir: &Path) -> io::Result<Vec<PathBuf>> {
    finish_repairs(dir)?;
    let mut removed = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = [CREATING, LOADING, SPOOL, RECOVERING, SETTING_ASIDE]
            .into_iter()
            .find_map(|suffix| Some((name.strip_suffix(suffix)?, suffix)));
        if let Some((base, suffix)) = unfinished.filter(|(base, _)| collection_of(base).is_some()) {
            remove_with_companions(&dir.join(base), suffix)?;
        } else if let Some(base) = name.strip_suffix(DROPPED).filter(|base| collection_of(base).is_some()) {
            finish_drop(&dir.join(base))?;
        } else {
            continue;
        }
        removed.push(path);
    }
    if !removed.is_empty() {
        sync_dir(dir)?;
    }
    Ok(removed)
}

/// Finishes the repairs that a crash interrupted. The caller holds the data directory's lock.
pub fn finish_repairs(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(base) = name.strip_suffix(REPAIRED).filter(|base| base.ends_with(SUFFIX)) {
            let path = dir.join(base);
            tracing::warn!(path = %path.display(), "finishing a repair that a crash interrupted");
            let last = damaged(&path, last_damaged(&path)?.max(1));
            // Once the records that this repair set aside have their final name, they have the highest number.
            let has_number = !setting_aside(&path).exists() && (!last.exists() || is_same(&path, &last));
            let kept_as = if has_number { last } else { next_damaged(&path)? };
            install_repaired(&path, &kept_as)?;
        }
    }
    Ok(())
}

/// Returns the name under which `path` is created until it is complete.
pub(in crate::store) fn creating(path: &Path) -> PathBuf {
    with_suffix(path, CREATING)
}

/// Returns the name under which a load builds `path` until it is complete.
pub(in crate::store) fn loading(path: &Path) -> PathBuf {
    with_suffix(path, LOADING)
}

/// Creates an empty temporary file on the file system of `path`, and removes its name at once. Its space is freed when
/// it is closed. For each `path`, only one call may run at a time.
pub fn spool(path: &Path) -> io::Result<File> {
    let path = with_suffix(path, SPOOL);
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    remove_if_there(&path)?;
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Removes what a load has built for `path`.
pub(in crate::store) fn discard_loading(path: &Path) -> io::Result<()> {
    remove_with_companions(path, LOADING)
}

/// Gives the final name to the file that a load has built and synced.
pub(in crate::store) fn finish_loading(path: &Path) -> io::Result<()> {
    install(&loading(path), path)
}

pub(in crate::store) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes leftovers that are in the way of creating `path`.
pub(in crate::store) fn prepare_creation(path: &Path) -> io::Result<()> {
    remove_with_companions(path, CREATING)?;
    if is_being_dropped(path) {
        finish_drop(path)?;
    }
    Ok(())
}

/// Returns whether a drop of a collection was interrupted.
pub fn is_being_dropped(path: &Path) -> bool {
    with_suffix(path, DROPPED).exists()
}

/// Returns a write-ahead log or journal without its database. SQLite would replay it into any new database with that
/// name.
pub(in crate::store) fn orphan(path: &Path) -> Option<PathBuf> {
    let of_sqlite = COMPANIONS.into_iter().filter(|&companion| companion != MOVED);
    of_sqlite.map(|companion| with_suffix(path, companion)).find(|companion| companion.exists())
}

/// Syncs the parent directory of `path`, so that the name of the file at `path` is on disk.
pub(in crate::store) fn sync_parent(path: &Path) -> io::Result<()> {
    sync_dir(parent(path))
}

/// Returns the write-ahead log of `path`.
pub fn log(path: &Path) -> PathBuf {
    with_suffix(path, COMPANIONS[0])
}

/// Returns the rollback journal of `path`.
pub(in crate::store) fn journal(path: &Path) -> PathBuf {
    with_suffix(path, COMPANIONS[2])
}

/// Returns the file that SQLite shares between connections to `path`. A killed process leaves it behind.
pub(in crate::store) fn shared(path: &Path) -> PathBuf {
    with_suffix(path, COMPANIONS[1])
}

/// Returns whether a file begins with these bytes.
pub(in crate::store) fn begins_with(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(bytes.len());
    File::open(path)?.take(bytes.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == bytes)
}

/// Syncs the complete file, and gives it its final name.
pub(in crate::store) fn finish_creation(path: &Path) -> io::Result<()> {
    let temporary = creating(path);
    sync(&temporary)?;
    install(&temporary, path)
}

/// Gives the final name to a file whose content is already on disk.
fn install(temporary: &Path, path: &Path) -> io::Result<()> {
    fs::rename(temporary, path)?;
    sync_dir(parent(path)).inspect_err(|_| {
        // If the directory is not synced, a crash may lose the name, and with it every write that was acknowledged.
        // Therefore the file is removed, and the creation fails.
        let _ = fs::remove_file(path);
    })
}

/// Copies a file whose log or journal is damaged, together with its log and its journal. SQLite then works on the copy.
/// Remove the copy with [`discard_copy`].
pub(in crate::store) fn copy_to_recover(path: &Path) -> io::Result<PathBuf> {
    discard_copy(path)?;
    let copy = with_suffix(path, RECOVERING);
    fs::copy(path, &copy)?;
    for companion in [log, journal] {
        if companion(path).exists() {
            fs::copy(companion(path), companion(&copy))?;
        }
    }
    Ok(copy)
}

pub(in crate::store) fn discard_copy(path: &Path) -> io::Result<()> {
    remove_with_companions(path, RECOVERING)
}

/// Returns the next name for the damaged file. Its number is higher than those of earlier repairs.
pub(in crate::store) fn next_damaged(path: &Path) -> io::Result<PathBuf> {
    Ok(damaged(path, last_damaged(path)? + 1))
}

fn damaged(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &format!("{DAMAGED}{number}"))
}

/// Returns the highest number in the names of the files that repairs kept; 0 if there are none.
fn last_damaged(path: &Path) -> io::Result<u64> {
    let kept = with_suffix(Path::new(path.file_name().unwrap_or_default()), DAMAGED);
    let mut last = 0;
    for entry in fs::read_dir(parent(path))? {
        let name = entry?.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(kept.to_str()?));
        let number = rest.and_then(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(last)
}

/// Returns the name of the records that a repair sets aside when it keeps the damaged file as `kept_as`.
pub(in crate::store) fn records_of(kept_as: &Path) -> PathBuf {
    with_suffix(kept_as, RECORDS)
}

/// Returns the name of these records until the repair is certain.
pub(in crate::store) fn setting_aside(path: &Path) -> PathBuf {
    with_suffix(path, SETTING_ASIDE)
}

/// Removes the files that a repair wrote before it failed or was killed.
pub(in crate::store) fn discard_repair(path: &Path) -> io::Result<()> {
    discard_copy(path)?;
    remove_with_companions(path, CREATING)?;
    remove_if_there(&setting_aside(path))
}

/// Replaces the damaged file with the new file, and keeps the damaged file as `kept_as`. The new file is closed, and
/// has the name that [`creating`] returns.
pub(in crate::store) fn finish_repair(path: &Path, kept_as: &Path) -> io::Result<()> {
    let temporary = creating(path);
    File::open(&temporary)?.sync_all()?;
    // From here on, a crash cannot undo the repair: the next process that opens the directory finishes it.
    fs::rename(&temporary, with_suffix(path, REPAIRED))?;
    sync_dir(parent(path))?;
    install_repaired(path, kept_as)
}

/// Finishes a repair. A crash may follow any step, so each step can be repeated.
fn install_repaired(path: &Path, kept_as: &Path) -> io::Result<()> {
    if setting_aside(path).exists() {
        fs::rename(setting_aside(path), records_of(kept_as))?;
        sync_dir(parent(path))?;
    }
    keep(path, kept_as)?;
    for companion in [log, journal] {
        if companion(path).exists() {
            keep(&companion(path), &companion(kept_as))?;
        }
    }
    sync_dir(parent(path))?;
    // SQLite would replay an old log into the new file. Therefore the log is removed, and its removal is synced, before
    // the new file gets its name.
    for companion in COMPANIONS {
        remove_if_there(&with_suffix(path, companion))?;
    }
    sync_dir(parent(path))?;
    fs::rename(with_suffix(path, REPAIRED), path)?;
    sync_dir(parent(path))
}

/// Adds a second name for a file. If the file system has no hard links, makes a copy.
fn keep(path: &Path, kept_as: &Path) -> io::Result<()> {
    if is_same(path, kept_as) {
        return Ok(());
    }
    match fs::hard_link(path, kept_as) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported || error.kind() == io::ErrorKind::PermissionDenied => {
            fs::copy(path, kept_as)?;
            File::open(kept_as)?.sync_all()
        }
        other => other,
    }
}

/// Returns whether two names belong to the same file.
fn is_same(path: &Path, other: &Path) -> bool {
    matches!((fs::metadata(path), fs::metadata(other)), (Ok(one), Ok(two)) if are_of_one_file(&one, &two))
}

/// Removes a collection's file for good. No connection may have it open for writing.
pub(in crate::store) fn remove(path: &Path) -> io::Result<()> {
    fs::rename(path, with_suffix(path, DROPPED))?;
    // From here on, the collection is gone, even after a crash.
    sync_dir(parent(path))?;
    finish_drop(path)?;
    sync_dir(parent(path))
}

/// Removes the rest of a dropped collection. The marker is removed last: as long as it exists, a log left at `path` is
/// known to belong to the dropped collection.
fn finish_drop(path: &Path) -> io::Result<()> {
    for companion in COMPANIONS {
        remove_if_there(&with_suffix(path, companion))?;
    }
    // Without this sync, a power failure could bring the log back without its marker. Such a log belongs to no
    // collection, and no collection can be created with its name.
    sync_dir(parent(path))?;
    remove_if_there(&with_suffix(path, DROPPED))
}

fn remove_with_companions(path: &Path, suffix: &str) -> io::Result<()> {
    let path = with_suffix(path, suffix);
    for companion in COMPANIONS {
        remove_if_there(&with_suffix(&path, companion))?;
    }
    remove_if_there(&path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(in crate::store) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Syncs a directory, so that the names in it are on disk.
pub(in crate::store) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
