//! The list of the collections that a data directory should have. It shows if a file disappeared while no server ran.
//! In: the names that exist, are created or are dropped. Out: the names that are listed but missing. The list only
//! records names, and does not decide which files are used. If it cannot be written, a later loss may stay unnoticed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::types::CollectionName;

/// The name of the list in the data directory.
const FILE: &str = "collections.list";
const BEGINS: &str =
    "# Collections of this data directory, written by hapax. If the file of a name is missing, a start reports it.";

#[derive(Debug)]
pub struct Inventory {
    path: PathBuf,
    listed: BTreeSet<CollectionName>,
    missing: BTreeSet<CollectionName>,
}

impl Inventory {
    /// Reads the list, finds the missing collections, and adds the new ones.
    pub fn open(data_dir: &Path, present: &[CollectionName]) -> io::Result<Self> {
        let path = Self::path_in(data_dir);
        let mut listed = read(&path)?;
        let missing = absent(&listed, present);
        let before = listed.len();
        listed.extend(present.iter().cloned());
        let inventory = Self { path, listed, missing };
        if inventory.listed.len() > before {
            inventory.write()?;
        }
        Ok(inventory)
    }

    /// Returns the path of the list.
    pub fn path_in(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    /// Returns the listed collections whose file is missing, and changes nothing.
    pub fn missing_of(data_dir: &Path, present: &[CollectionName]) -> io::Result<BTreeSet<CollectionName>> {
        Ok(absent(&read(&Self::path_in(data_dir))?, present))
    }

    /// Returns the collections whose file is missing.
    pub fn missing(&self) -> &BTreeSet<CollectionName> {
        &self.missing
    }

    pub fn add(&mut self, name: &CollectionName) -> io::Result<()> {
        self.missing.remove(name);
        if self.listed.insert(name.clone()) { self.write() } else { Ok(()) }
    }

    /// Removes a name from the list. Call this before a collection is dropped, or when the missing collection need not
    /// be reported any longer.
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

fn read(path: &Path) -> io::Result<BTreeSet<CollectionName>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    Ok(text.lines().filter_map(|line| CollectionName::new(line).ok()).collect())
}

fn absent(listed: &BTreeSet<CollectionName>, present: &[CollectionName]) -> BTreeSet<CollectionName> {
    listed.iter().filter(|name| !present.contains(name)).cloned().collect()
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
        // With a damaged list, fewer collections are reported as missing. Nothing else fails.
        fs::write(dir.path().join(FILE), b"\xff\x00\na\n../x\n").unwrap();
        assert_eq!(missing(&[b]), [a]);
    }
}
