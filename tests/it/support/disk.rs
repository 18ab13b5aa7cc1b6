//! A server's operations on its disk, recorded by `disk.c`, and the possible states after a power failure.
//!
//! A power failure keeps all synced data, and an arbitrary part of the other data. In a file, this part can be any
//! sectors written since the last sync of the file. In a folder, names are created, changed and removed in order, and
//! any number of these changes can be lost, the last ones first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The unit that a disk writes as a whole.
const SECTOR_BYTES: usize = 512;

/// Returns the library that servers preload. It is compiled once for each run.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/disk.c");
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
            .args([&path, &source])
            .args(["-ldl", "-pthread"])
            .status()
            .expect("these tests need a C compiler, cc");
        assert!(compiled.success());
        (dir, path)
    });
    path
}

/// Returns the variables that make a server preload the library.
pub fn preloaded(dir: &Path, notes: &Path) -> [(&'static str, String); 3] {
    [("LD_PRELOAD", library()), ("HAPAX_DISK_DIR", dir), ("HAPAX_DISK_NOTES", notes)]
        .map(|(name, path)| (name, path.to_str().expect("paths of tests are UTF-8").to_owned()))
}

/// One operation of a server, or one that was made to fail.
#[derive(Debug)]
pub struct Operation {
    pub kind: Kind,
    /// The error with which it failed.
    pub error: Option<i32>,
    pub path: PathBuf,
}

#[derive(Debug)]
pub enum Kind {
    Write { offset: u64, data: Vec<u8> },
    Truncate { bytes: u64 },
    Sync,
    Create,
    MakeDir,
    Rename { to: PathBuf },
    Remove,
}

/// Returns the operations noted in a file, in order. If the server was killed, the last note may be incomplete. An
/// incomplete note is left out.
pub fn operations(notes: &Path) -> Vec<Operation> {
    let bytes = fs::read(notes).unwrap_or_default();
    let (mut rest, mut operations) = (&bytes[..], Vec::new());
    while let Some(operation) = take_operation(&mut rest) {
        operations.push(operation);
    }
    operations
}

fn take_operation(rest: &mut &[u8]) -> Option<Operation> {
    let [kind, error, path, other] = [(); 4].map(|()| take(rest, 4)).map(number_of).map(|field| field as usize);
    let [offset, len] = [(); 2].map(|()| take(rest, 8)).map(number_of);
    let path = path_of(take(rest, path)?);
    let other = path_of(take(rest, other)?);
    let data = take(rest, len as usize)?.to_vec();
    let kind = match kind as u8 {
        b'w' => Kind::Write { offset, data },
        b't' => Kind::Truncate { bytes: offset },
        b's' => Kind::Sync,
        b'c' => Kind::Create,
        b'd' => Kind::MakeDir,
        b'r' => Kind::Rename { to: other },
        b'u' => Kind::Remove,
        0 => return None,
        kind => panic!("a note of kind {kind}"),
    };
    let error = (error != 0).then_some(error as i32);
    Some(Operation { kind, error, path })
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(taken)
}

/// Reads a number; 0 at the end of the notes.
fn number_of(bytes: Option<&[u8]>) -> u64 {
    bytes.unwrap_or_default().iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::str::from_utf8(bytes).expect("paths of tests are UTF-8"))
}

/// The files of a folder: their present state, and the state that is certain after a power failure.
pub struct Disk {
    root: PathBuf,
    files: Vec<Content>,
    /// The present names.
    now: BTreeMap<PathBuf, Node>,
    /// The names that are certain after a power failure.
    certain: BTreeMap<PathBuf, Node>,
    /// The changes of names that are not certain yet, by folder, in order.
    pending: BTreeMap<PathBuf, Vec<NameChange>>,
}

#[derive(Clone, Copy)]
enum Node {
    Dir,
    File(usize),
}

#[derive(Default)]
struct Content {
    synced: Vec<u8>,
    pending: Vec<Change>,
}

enum Change {
    Write { offset: u64, data: Vec<u8> },
    Truncate { bytes: u64 },
}

#[derive(Clone)]
enum NameChange {
    Add { path: PathBuf, node: Node },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

/// The fate of unsynced writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// All are lost.
    Lost,
    /// All are kept: only the process has died.
    Kept,
    /// Some are lost, sector by sector, both early and late ones.
    Torn,
}

impl Disk {
    /// Describes a folder that does not exist yet, in a parent folder that exists.
    pub fn new(root: &Path) -> Self {
        let certain = BTreeMap::from([(root.parent().expect("it has a parent").to_owned(), Node::Dir)]);
        Self { root: root.to_owned(), files: Vec::new(), now: certain.clone(), certain, pending: BTreeMap::new() }
    }

    /// Describes a folder that has existed for a long time, so that all of its contents are certain.
    pub fn of(root: &Path) -> Self {
        let mut disk = Self::new(root);
        disk.adopt(root);
        disk.certain = disk.now.clone();
        disk
    }

    fn adopt(&mut self, path: &Path) {
        if path.is_dir() {
            self.now.insert(path.to_owned(), Node::Dir);
            for entry in fs::read_dir(path).unwrap() {
                self.adopt(&entry.unwrap().path());
            }
        } else if !path.to_string_lossy().ends_with("-shm") {
            self.files.push(Content { synced: fs::read(path).unwrap(), pending: Vec::new() });
            self.now.insert(path.to_owned(), Node::File(self.files.len() - 1));
        }
    }

    /// Applies the operations of a server.
    pub fn apply(&mut self, operations: Vec<Operation>) {
        for Operation { kind, path, .. } in operations.into_iter().filter(|operation| operation.error.is_none()) {
            match kind {
                Kind::Write { offset, data } => {
                    if let Some(file) = self.file(&path) {
                        file.pending.push(Change::Write { offset, data });
                    }
                }
                Kind::Truncate { bytes } => {
                    if let Some(file) = self.file(&path) {
                        file.pending.push(Change::Truncate { bytes });
                    }
                }
                Kind::Sync => self.sync(&path),
                Kind::Create => {
                    self.files.push(Content::default());
                    let node = Node::File(self.files.len() - 1);
                    self.rename(NameChange::Add { path, node });
                }
                Kind::MakeDir => self.rename(NameChange::Add { path, node: Node::Dir }),
                Kind::Rename { to } => self.rename(NameChange::Rename { from: path, to }),
                Kind::Remove => self.rename(NameChange::Remove { path }),
            }
        }
    }

    /// Returns a file by its name. A file that has lost its name cannot be found.
    fn file(&mut self, path: &Path) -> Option<&mut Content> {
        match self.now.get(path) {
            Some(&Node::File(file)) => Some(&mut self.files[file]),
            _ => None,
        }
    }

    fn sync(&mut self, path: &Path) {
        if let Some(file) = self.file(path) {
            let Content { synced, pending } = file;
            pending.drain(..).for_each(|change| change.apply(synced, |_| true));
        }
        for change in self.pending.remove(path).unwrap_or_default() {
            change.apply(&mut self.certain);
        }
    }

    fn rename(&mut self, change: NameChange) {
        change.clone().apply(&mut self.now);
        let folder = change.path().parent().expect("a name is in a folder").to_owned();
        self.pending.entry(folder).or_default().push(change);
    }

    /// Returns the number of unsynced changes of files and names.
    pub fn unsynced(&self) -> usize {
        let files = self.now.values().map(|node| match node {
            Node::File(file) => self.files[*file].pending.len(),
            Node::Dir => 0,
        });
        files.sum::<usize>() + self.pending.values().map(Vec::len).sum::<usize>()
    }

    /// Writes a possible state of the folder after a power failure to `target`, which must not exist.
    pub fn fail(&self, unsynced: Unsynced, random: &mut ChaCha8Rng, target: &Path) {
        let mut names = self.certain.clone();
        for changes in self.pending.values() {
            let kept = match unsynced {
                Unsynced::Lost => 0,
                Unsynced::Kept => changes.len(),
                Unsynced::Torn => random.random_range(0..=changes.len()),
            };
            changes[..kept].iter().cloned().for_each(|change| change.apply(&mut names));
        }
        for (path, node) in &names {
            let Ok(inside) = path.strip_prefix(&self.root) else { continue };
            let folder = path.parent().expect("a name is in a folder");
            let target = target.join(inside);
            // If the folder is lost, so are its files.
            if !matches!(names.get(folder), Some(Node::Dir)) || !target.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match *node {
                Node::Dir => fs::create_dir(target).unwrap(),
                Node::File(file) => fs::write(target, self.files[file].after(unsynced, random)).unwrap(),
            }
        }
    }
}

impl Content {
    fn after(&self, unsynced: Unsynced, random: &mut ChaCha8Rng) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let chance = if random.random_bool(0.5) { 0.9 } else { 0.5 };
        for change in &self.pending {
            let mut kept = |_| match unsynced {
                Unsynced::Lost => false,
                Unsynced::Kept => true,
                Unsynced::Torn => random.random_bool(chance),
            };
            change.apply(&mut bytes, &mut kept);
        }
        bytes
    }
}

impl Change {
    /// `kept` decides for each sector whether it was written.
    fn apply(&self, bytes: &mut Vec<u8>, mut kept: impl FnMut(usize) -> bool) {
        match self {
            Self::Write { offset, data } => {
                let (mut at, mut data) = (*offset as usize, &data[..]);
                while !data.is_empty() {
                    let (piece, rest) = data.split_at(data.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
                    if kept(at) {
                        bytes.resize(bytes.len().max(at + piece.len()), 0);
                        bytes[at..at + piece.len()].copy_from_slice(piece);
                    }
                    (at, data) = (at + piece.len(), rest);
                }
            }
            Self::Truncate { bytes: len } => {
                if kept(0) {
                    bytes.resize(*len as usize, 0);
                }
            }
        }
    }
}

impl NameChange {
    fn path(&self) -> &Path {
        match self {
            Self::Add { path, .. } | Self::Remove { path } => path,
            Self::Rename { to, .. } => to,
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Self::Add { path, node } => _ = names.insert(path, node),
            Self::Remove { path } => _ = names.remove(&path),
            Self::Rename { from, to } => {
                if let Some(node) = names.remove(&from) {
                    names.insert(to, node);
                }
            }
        }
    }
}
