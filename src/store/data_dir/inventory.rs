//! The collections that a data directory should have: a list beside them, so that a file that vanished while no server
//! ran is missed. In: names that are there, made, dropped. Out: names that were there and are not.
//! The list follows what is on disk and decides nothing: if it cannot be written, something may go unnoticed later.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::types::CollectionName;

/// Its name, in the data directory.
const FILE: &str = "collections.list";
const BEGINS: &str =
    "# Collections of this data directory, written by hapax. A name without its file is missed at the next start.";

#[derive(Debug)]
pub struct Inventory {
    path: PathBuf,
    listed: BTreeSet<CollectionName>,
    missing: BTreeSet<CollectionName>,
}

impl Inventory {
    /// Reads the list, finds what is missing, and adds what is new.
    pub fn open(data_dir: &Path, present: &[CollectionName]) -> io::Result<Self> {
        let path = data_dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut listed: BTreeSet<_> = text.lines().filter_map(|line| CollectionName::new(line).ok()).collect();
        let missing = listed.iter().filter(|name| !present.contains(name)).cloned().collect();
        let before = listed.len();
        listed.extend(present.iter().cloned());
        let inventory = Self { path, listed, missing };
        if inventory.listed.len() > before {
            inventory.write()?;
        }
        Ok(inventory)
    }

    /// Those whose file is gone.
    pub fn missing(&self) -> &BTreeSet<CollectionName> {
        &self.missing
    }

    pub fn add(&mut self, name: &CollectionName) -> io::Result<()> {
        self.missing.remove(name);
        if self.listed.insert(name.clone()) { self.write() } else { Ok(()) }
    }

    /// It is to be dropped, or is missed no more.
    pub fn remove(&mut self, name: &CollectionName) -> io::Result<()> {
        self.missing.remove(name);
        if self.listed.remove(name) { self.write() } else { Ok(()) }
    }

    fn write(&self) -> io::Result<()> {
        let temporary = self.path.with_extension("list.new");
        let mut file = File::create(&temporary)?;
        let names: String = self.listed.iter().map(|name| format!("{name}\n")).collect();
        file.write_all(format!("{BEGINS}\n{names}").as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_its_file_is_missed_until_it_is_dropped_or_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| CollectionName::new(name).unwrap());
        let missing = |present: &[CollectionName]| {
            Inventory::open(dir.path(), present).unwrap().missing().iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(missing(&[a.clone(), b.clone()]), []);
        assert_eq!(missing(&[a.clone(), c.clone()]), std::slice::from_ref(&b));
        assert_eq!(missing(std::slice::from_ref(&a)), [b.clone(), c.clone()]);
        let mut inventory = Inventory::open(dir.path(), std::slice::from_ref(&a)).unwrap();
        inventory.remove(&b).unwrap();
        inventory.add(&c).unwrap();
        assert_eq!(missing(&[a.clone(), c]), []);
        // A list that is spoiled misses less, and nothing else.
        fs::write(dir.path().join(FILE), b"\xff\x00\na\n../x\n").unwrap();
        assert_eq!(missing(&[b]), [a]);
    }
}
