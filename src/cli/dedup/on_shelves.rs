//! The documents of a group that does not fit into memory -> decisions. Everything is in temporary files: with components, a
//! document takes twelve bytes of memory, and otherwise none. It takes longer than in memory: each list and each compared
//! signature is read from a file, mostly from the cache of the system.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use indicatif::ProgressBar;

use super::report::Original;
use super::results::Results;
use super::settings::Ways;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::refuse_interrupted;
use crate::cli::corpus::rank::Rank;
use crate::cli::corpus::signing::Document;
use crate::cli::spill::documents::{DAMAGED, FileNames, StoredDocuments};
use crate::cli::spill::file::{ShelfFile, SpillFile, cannot_write};
use crate::cli::spill::lists::SharedLists;
use crate::corpus::{Decided, Decision, Duplicate, Link, Shelf as _, Shelved, ShelvedComponents};

/// The folder for temporary files, the memory that may be taken, and the progress of the decisions.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    pub folder: &'a Path,
    pub bytes: usize,
    pub bar: &'a ProgressBar,
}

/// The names of documents, and what else is known of them.
struct Names<'a> {
    files: &'a FileNames,
    texts: SpillFile,
    /// For each document: the place and the length of its names, its rank, and the number of documents that were not read.
    rows: ShelfFile,
    count: u32,
}

const ROW_WORDS: usize = 6;
const ROW_BYTES: usize = 8 * ROW_WORDS;

impl<'a> Names<'a> {
    fn create(files: &'a FileNames, folder: &Path) -> Result<Self> {
        let rows = SpillFile::create(folder)?.into_shelf();
        Ok(Self { files, texts: SpillFile::create(folder)?, rows, count: 0 })
    }

    fn add(&mut self, file: usize, named: &Named, rank: Rank, unread: u64) -> Result<()> {
        let mut text = Vec::new();
        FileNames::write_names(file, &named.origin, named.id.as_ref(), &mut text);
        let at = self.texts.append(&text)?.at();
        let [first, high, low] = rank.words();
        let row = [at, text.len() as u64, unread, first, high, low].map(u64::to_ne_bytes).concat();
        self.rows.write(u64::from(self.count) * ROW_BYTES as u64, &row).context(DAMAGED)?;
        self.count += 1;
        Ok(())
    }

    fn row(&self, number: u32) -> Result<[u64; ROW_WORDS]> {
        let mut row = [0; ROW_BYTES];
        self.rows.read(u64::from(number) * ROW_BYTES as u64, &mut row).context(DAMAGED)?;
        Ok([0, 1, 2, 3, 4, 5].map(|at| u64::from_ne_bytes(row[8 * at..][..8].try_into().expect("eight bytes"))))
    }

    /// Returns the rank as numbers that are compared one after another.
    fn rank(&self, number: u32) -> Result<[u64; 3]> {
        let [.., first, high, low] = self.row(number)?;
        Ok([first, high, low])
    }

    fn of(&self, number: usize) -> Result<(usize, Named)> {
        let [at, length, ..] = self.row(number as u32)?;
        let mut text = vec![0; length as usize];
        self.texts.read_at(at, &mut text).context(DAMAGED)?;
        let (file, named, _) = self.files.read_names(&text).context(DAMAGED)?;
        Ok((file, named))
    }
}

fn shelved(ways: &Ways, folder: &Path) -> Result<Shelved<ShelfFile>> {
    let shelf = || SpillFile::create(folder).map(SpillFile::into_shelf);
    Ok(Shelved::new(ways.signer.clone(), ways.matching, ways.limits, [shelf()?, shelf()?, shelf()?]))
}

/// Decides on documents in their order: each is kept if it repeats no kept one.
pub(super) fn star(
    ways: &Ways,
    (files, mut documents): (&FileNames, StoredDocuments),
    Room { folder, bytes, bar }: Room<'_>,
    results: &mut Results,
    stop: &AtomicBool,
) -> Result<()> {
    let mut lists = SharedLists::of(documents.again(), (files, &ways.signer), (folder, bytes), stop)?;
    let (mut known, mut names) = (shelved(ways, folder)?, Names::create(files, folder)?);
    let mut number = 0;
    while let Some(Document { file, origin, id, signed, .. }) = documents.next(files, &ways.signer)? {
        refuse_interrupted(stop)?;
        let decided = known.decide(&signed, &lists.of_document(number)?);
        let Decided { decision, unread } = decided.with_context(|| cannot_write(folder))?;
        let named = Named { origin, id };
        match decision {
            Decision::Kept => {
                results.kept(file, &named, unread);
                names.add(file, &named, Rank::default(), 0)?;
            }
            Decision::Empty => results.empty(file, &named),
            Decision::Duplicate(duplicate) => {
                let (of_file, kept) = names.of(duplicate.of)?;
                let original = Original { file: of_file, kept: &kept, similar_to: None, duplicate };
                results.duplicate(file, &named, original, unread);
            }
        }
        number += 1;
        bar.inc(1);
    }
    results.report_mut().check()
}

/// Joins documents to components, and keeps the document of the highest rank of each. Of equal ranks, it is the first one.
pub(super) fn components(
    ways: &Ways,
    (files, mut documents): (&FileNames, StoredDocuments),
    Room { folder, bytes, bar }: Room<'_>,
    results: &mut Results,
    stop: &AtomicBool,
) -> Result<()> {
    let mut lists = SharedLists::of(documents.again(), (files, &ways.signer), (folder, bytes), stop)?;
    let links = SpillFile::create(folder)?.into_shelf();
    let mut components = ShelvedComponents::new(shelved(ways, folder)?, links);
    let mut names = Names::create(files, folder)?;
    while let Some(Document { file, origin, id, rank, signed, .. }) = documents.next(files, &ways.signer)? {
        refuse_interrupted(stop)?;
        let entered = components.enter(&signed, &lists.of_document(names.count)?);
        let unread = entered.with_context(|| cannot_write(folder))?.unwrap_or_default();
        names.add(file, &Named { origin, id }, rank, unread)?;
        bar.inc(1);
    }
    drop(lists);
    let kept = kept(&mut components, &names, results)?;
    for number in 0..names.count {
        if number % 1000 == 0 {
            refuse_interrupted(stop)?;
        }
        let (file, named) = names.of(number as usize)?;
        let (of, unread) = (kept[components.component(number) as usize], names.row(number)?[2]);
        match components.link(number).context(DAMAGED)?.filter(|_| of != number) {
            None => results.kept(file, &named, unread),
            Some(Link { to, same_content, similarity }) => {
                let duplicate = Duplicate { of: of as usize, same_content, similarity };
                let ((of_file, kept), (_, similar)) = (names.of(of as usize)?, names.of(to)?);
                let original = Original { file: of_file, kept: &kept, similar_to: Some(&similar), duplicate };
                results.duplicate(file, &named, original, unread);
            }
        }
    }
    results.report_mut().check()
}

/// Returns the document of each component that is kept, at the number of the component.
fn kept(components: &mut ShelvedComponents<ShelfFile>, names: &Names<'_>, results: &mut Results) -> Result<Vec<u32>> {
    let mut kept: Vec<u32> = (0..components.documents()).collect();
    let mut sizes = vec![0u32; kept.len()];
    for number in 0..components.documents() {
        let component = components.component(number) as usize;
        sizes[component] += 1;
        if names.rank(number)? > names.rank(kept[component])? {
            kept[component] = number;
        }
    }
    results.tally_mut().components(sizes.into_iter().filter(|&size| size > 0).map(u64::from));
    Ok(kept)
}
