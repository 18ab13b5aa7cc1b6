//! Names and directory entries: how a collection's file comes to be and goes, in steps that a crash cannot split.
//! A file is made under a name that is never opened as a collection and renamed when it is whole; it is dropped by a
//! rename to another such name. Knows nothing of what is inside.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::types::CollectionName;

/// The suffix of a collection's file.
pub const SUFFIX: &str = ".sqlite";
const CREATING: &str = ".creating";
const DROPPED: &str = ".dropped";
const REPAIRED: &str = ".repaired";
const DAMAGED: &str = ".damaged-";
/// What SQLite keeps beside a database, and the note of `log/moved.rs`.
const COMPANIONS: [&str; 4] = ["-wal", "-shm", "-journal", MOVED];
/// The note that an emptied log is in the database.
pub(in crate::store) const MOVED: &str = "-moved";

/// Where a collection is kept.
pub fn path_of(dir: &Path, name: &CollectionName) -> PathBuf {
    dir.join(format!("{name}{SUFFIX}"))
}

/// What a file's name says that the collection in it is called: to be used as long as its own word for it is unread.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

/// The collections in a directory, by name.
pub fn list(dir: &Path) -> io::Result<Vec<CollectionName>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.extend(entry?.file_name().to_str().and_then(collection_of));
    }
    names.sort();
    Ok(names)
}

/// Makes a directory and those it is in, where needed, so that a power failure finds them: only their owner may look
/// inside.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        // A life that ended before it got to this may have made it. Who may not look into a directory did not make it.
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

/// What is neither a collection's file nor its log nor set aside by a repair: somebody else's, or a log whose database
/// is gone.
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

/// The collection that this log, or what SQLite keeps beside it, belongs to.
pub fn log_without_database(stranger: &Path) -> Option<CollectionName> {
    let name = stranger.file_name()?.to_str()?;
    COMPANIONS.into_iter().find_map(|companion| collection_of(name.strip_suffix(companion)?))
}

/// The collection that a file of this name holds.
fn collection_of(file_name: &str) -> Option<CollectionName> {
    CollectionName::new(file_name.strip_suffix(SUFFIX)?).ok()
}

/// Removes what a crash left of creations and drops that were under way, and tells what it removed. Call it under the
/// data directory's lock, before any collection is opened.
pub fn clean_leftovers(dir: &Path) -> io::Result<Vec<PathBuf>> {
    finish_repairs(dir)?;
    let mut removed = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(base) = name.strip_suffix(CREATING).filter(|base| collection_of(base).is_some()) {
            remove_with_companions(&dir.join(base), CREATING)?;
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

/// Finishes the repairs that a crash cut off. Under the data directory's lock.
pub fn finish_repairs(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(base) = name.strip_suffix(REPAIRED).filter(|base| base.ends_with(SUFFIX)) {
            let path = dir.join(base);
            tracing::warn!(path = %path.display(), "finishing its repair, which a crash cut off");
            install_repaired(&path, &next_damaged(&path))?;
        }
    }
    Ok(())
}

/// The name under which `path` is made.
pub(in crate::store) fn creating(path: &Path) -> PathBuf {
    with_suffix(path, CREATING)
}

/// Clears the way for making `path`.
pub(in crate::store) fn prepare_creation(path: &Path) -> io::Result<()> {
    remove_with_companions(path, CREATING)?;
    if with_suffix(path, DROPPED).exists() {
        finish_drop(path)?;
    }
    Ok(())
}

/// A write-ahead log or journal without its database. SQLite would replay it into any database of that name.
pub(in crate::store) fn orphan(path: &Path) -> Option<PathBuf> {
    let of_sqlite = COMPANIONS.into_iter().filter(|&companion| companion != MOVED);
    of_sqlite.map(|companion| with_suffix(path, companion)).find(|companion| companion.exists())
}

/// Brings the name of `path` to the disk.
pub(in crate::store) fn sync_parent(path: &Path) -> io::Result<()> {
    sync_dir(parent(path))
}

/// The write-ahead log of `path`.
pub fn log(path: &Path) -> PathBuf {
    with_suffix(path, COMPANIONS[0])
}

/// What SQLite shares between connections to `path`; a process that was killed leaves it behind.
pub(in crate::store) fn shared(path: &Path) -> PathBuf {
    with_suffix(path, COMPANIONS[1])
}

/// Whether a file begins with these bytes.
pub(in crate::store) fn begins_with(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(bytes.len());
    File::open(path)?.take(bytes.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == bytes)
}

/// The whole file takes its name.
pub(in crate::store) fn finish_creation(path: &Path) -> io::Result<()> {
    let temporary = creating(path);
    File::open(&temporary)?.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_dir(parent(path)).inspect_err(|_| {
        // Nothing may be acknowledged in a file whose name is not certain.
        let _ = fs::remove_file(path);
    })
}

/// A name for the damaged file that is not taken.
pub(in crate::store) fn next_damaged(path: &Path) -> PathBuf {
    let mut names = (1u64..).map(|number| with_suffix(path, &format!("{DAMAGED}{number}")));
    names.find(|name| !name.exists()).expect("the numbers do not end")
}

/// The new file, which was made as [`creating`] says and is closed, takes the damaged one's place; that one is kept.
pub(in crate::store) fn finish_repair(path: &Path, kept_as: &Path) -> io::Result<()> {
    let temporary = creating(path);
    File::open(&temporary)?.sync_all()?;
    // From here on a crash cannot undo the repair: whoever opens the directory next finishes it.
    fs::rename(&temporary, with_suffix(path, REPAIRED))?;
    sync_dir(parent(path))?;
    install_repaired(path, kept_as)
}

/// Each step may be the last before a crash, and may be done again.
fn install_repaired(path: &Path, kept_as: &Path) -> io::Result<()> {
    let log = log(path);
    keep(path, kept_as)?;
    if log.exists() {
        keep(&log, &with_suffix(kept_as, COMPANIONS[0]))?;
    }
    sync_dir(parent(path))?;
    // A log that stayed would be played into the new file; so it is gone for certain before that has its name.
    for companion in COMPANIONS {
        remove_if_there(&with_suffix(path, companion))?;
    }
    sync_dir(parent(path))?;
    fs::rename(with_suffix(path, REPAIRED), path)?;
    sync_dir(parent(path))
}

/// A second name for a file; a copy where the file system has no such thing.
fn keep(path: &Path, kept_as: &Path) -> io::Result<()> {
    match fs::hard_link(path, kept_as) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported || error.kind() == io::ErrorKind::PermissionDenied => {
            fs::copy(path, kept_as)?;
            File::open(kept_as)?.sync_all()
        }
        other => other,
    }
}

/// Removes a collection's file for good. Nobody may have it open for writing.
pub(in crate::store) fn remove(path: &Path) -> io::Result<()> {
    fs::rename(path, with_suffix(path, DROPPED))?;
    // From here on the collection is gone, whatever happens.
    sync_dir(parent(path))?;
    finish_drop(path)?;
    sync_dir(parent(path))
}

/// The marker goes last: as long as it is there, a log left at `path` is known to belong to what was dropped.
fn finish_drop(path: &Path) -> io::Result<()> {
    for companion in COMPANIONS {
        remove_if_there(&with_suffix(path, companion))?;
    }
    // Else a power failure could bring the log back, which without its marker would be nobody's and bar the name.
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

/// Brings the names in a directory to the disk.
pub(in crate::store) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
